"""SparseTensorProto -> numpy: most elements are 0, the others are listed with their places."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np

from rooftile.core.errors import InvalidModel
from rooftile.frontends.onnx.tensors import MAX_DIMS, to_array
from rooftile.ir.graph import Array

MAX_BYTES = 1 << 31
"""What a dense tensor of a file may take, too."""


def to_dense(sparse: Any, folder: Path | None = None) -> Array:
    """The whole array. `indices` count elements in order, or give a place along each dim.

    InvalidModel for places outside the shape, and for an array that would be larger than MAX_BYTES.
    """
    where = f"sparse tensor {sparse.values.name or '(nameless)'}"
    shape = tuple(int(extent) for extent in sparse.dims)
    values = to_array(sparse.values, folder)
    places = to_array(sparse.indices, folder, f"{sparse.values.name} (indices)")
    count = math.prod(shape)
    if len(shape) > MAX_DIMS or min(shape, default=1) < 1 or count * values.itemsize > MAX_BYTES:
        raise InvalidModel(
            f"{where} has shape {list(shape)}: dims must be positive, at most {MAX_DIMS}, and the "
            f"dense tensor at most {MAX_BYTES} bytes"
        )
    if values.ndim != 1 or places.dtype != np.int64 or places.ndim not in (1, 2):
        raise InvalidModel(f"{where}: its values must be a list, its indices i64 [n] or [n, rank]")
    if places.shape != (len(values), len(shape))[: places.ndim]:
        raise InvalidModel(
            f"{where}: indices {list(places.shape)} do not fit {len(values)} values "
            f"of {list(shape)}"
        )
    limits = (count,) if places.ndim == 1 else shape
    if np.any(places < 0) or np.any(places.reshape(len(values), -1) >= limits):
        raise InvalidModel(f"{where}: an index is outside its shape {list(shape)}")
    if places.ndim == 2:
        places = np.ravel_multi_index(tuple(places.T), shape)
    dense = np.zeros(count, values.dtype)
    dense[places] = values
    return dense.reshape(shape)
