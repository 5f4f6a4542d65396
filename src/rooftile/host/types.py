"""Element types by the number that ONNX gives them."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from rooftile.core.errors import InvalidInput

STRING = 8
_TYPES: dict[int, Any] = {
    1: np.float32,
    2: np.uint8,
    3: np.int8,
    4: np.uint16,
    5: np.int16,
    6: np.int32,
    7: np.int64,
    9: np.bool_,
    10: np.float16,
    11: np.float64,
    12: np.uint32,
    13: np.uint64,
    16: ml_dtypes.bfloat16,
}


def element(number: int) -> np.dtype[Any]:
    """The numpy type; InvalidInput for one that is not known."""
    if number not in _TYPES:
        raise InvalidInput(f"element type {number} is not known")
    found: np.dtype[Any] = np.dtype(_TYPES[number])
    return found
