"""Element types, named as in the field's compilers: f32, i64, bool."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from rooftile.core.errors import UnsupportedType

DType = str
"""One of the names in `DTYPES`."""


@dataclass(frozen=True)
class TypeInfo:
    """What the compiler needs to know of an element type. `kind`: float, int, uint or bool."""

    kind: str
    itemsize: int
    numpy: npt.DTypeLike


DTYPES: dict[DType, TypeInfo] = {
    "f64": TypeInfo("float", 8, np.float64),
    "f32": TypeInfo("float", 4, np.float32),
    "f16": TypeInfo("float", 2, np.float16),
    "bf16": TypeInfo("float", 2, ml_dtypes.bfloat16),
    "i64": TypeInfo("int", 8, np.int64),
    "i32": TypeInfo("int", 4, np.int32),
    "i16": TypeInfo("int", 2, np.int16),
    "i8": TypeInfo("int", 1, np.int8),
    "u64": TypeInfo("uint", 8, np.uint64),
    "u32": TypeInfo("uint", 4, np.uint32),
    "u16": TypeInfo("uint", 2, np.uint16),
    "u8": TypeInfo("uint", 1, np.uint8),
    "bool": TypeInfo("bool", 1, np.bool_),
}
_BY_NUMPY = {np.dtype(info.numpy): name for name, info in DTYPES.items()}


def itemsize(dtype: DType) -> int:
    """Bytes of one element."""
    return DTYPES[dtype].itemsize


def kind(dtype: DType) -> str:
    """float, int, uint or bool."""
    return DTYPES[dtype].kind


def to_numpy(dtype: DType) -> np.dtype[np.generic]:
    """The numpy dtype that holds `dtype`."""
    return np.dtype(DTYPES[dtype].numpy)


def from_numpy(dtype: npt.DTypeLike) -> DType:
    """The name of a numpy dtype; UnsupportedType if there is none."""
    found = _BY_NUMPY.get(np.dtype(dtype).newbyteorder("="))
    if found is None:
        raise UnsupportedType(f"arrays of {np.dtype(dtype)} are not supported; cast them first")
    return found


def identity(op: str, dtype: DType) -> float:
    """What a reduction of no elements gives: 0, 1, or the least or greatest value of the type."""
    if op in ("sum", "prod"):
        return float(op == "prod")
    if kind(dtype) == "float":
        return -np.inf if op == "max" else np.inf
    if dtype == "bool":
        return op == "min"
    limits: Any = np.iinfo(to_numpy(dtype))
    return int(limits.min if op == "max" else limits.max)
