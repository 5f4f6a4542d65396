"""Element types: the numbers of ONNX, onnxruntime's names, and what numpy calls them."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from rooftile.core.errors import InvalidOption

_NUMPY: dict[int, tuple[str, Any]] = {
    1: ("float", np.float32),
    2: ("uint8", np.uint8),
    3: ("int8", np.int8),
    4: ("uint16", np.uint16),
    5: ("int16", np.int16),
    6: ("int32", np.int32),
    7: ("int64", np.int64),
    8: ("string", np.object_),
    9: ("bool", np.bool_),
    10: ("float16", np.float16),
    11: ("double", np.float64),
    12: ("uint32", np.uint32),
    13: ("uint64", np.uint64),
    14: ("complex64", np.complex64),
    15: ("complex128", np.complex128),
    16: ("bfloat16", ml_dtypes.bfloat16),
    17: ("float8e4m3fn", ml_dtypes.float8_e4m3fn),
    18: ("float8e4m3fnuz", ml_dtypes.float8_e4m3fnuz),
    19: ("float8e5m2", ml_dtypes.float8_e5m2),
    20: ("float8e5m2fnuz", ml_dtypes.float8_e5m2fnuz),
    21: ("uint4", ml_dtypes.uint4),
    22: ("int4", ml_dtypes.int4),
}
_NUMBERS = {np.dtype(dtype): number for number, (_, dtype) in _NUMPY.items()}


def dtype_of(element_type: npt.DTypeLike | int) -> np.dtype[Any]:
    """numpy's type for a type of numpy or the number of one of ONNX; InvalidOption for others."""
    if isinstance(element_type, int):
        if element_type not in _NUMPY:
            raise InvalidOption(f"{element_type} is not the number of an element type of ONNX")
        return dtype_of(_NUMPY[element_type][1])
    try:
        found: np.dtype[Any] = np.dtype(element_type)
    except TypeError as error:
        raise InvalidOption(f"{element_type!r} is not an element type: {error}") from error
    return found


def number_of(dtype: np.dtype[Any]) -> int:
    """ONNX's number for a type of numpy; 0, which ONNX calls undefined, for others."""
    return _NUMBERS.get(dtype.newbyteorder("="), 0)


def name_of(dtype: np.dtype[Any]) -> str:
    """onnxruntime's name for a type of numpy: "float" for float32."""
    number = number_of(dtype)
    return _NUMPY[number][0] if number else dtype.name
