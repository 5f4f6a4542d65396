"""Linear algebra that needs a choice of rows while it computes."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from rooftile.host.registry import body

Array = npt.NDArray[Any]


@body("Det", why="its matrices are factored with pivots")
def det(x: Array) -> Array:
    """Determinants of the matrices in the last two dims, computed in f64."""
    return np.asarray(np.linalg.det(x.astype(np.float64)).astype(x.dtype))
