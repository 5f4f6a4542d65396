"""Element types of less than a byte, or of a byte that is a float: held in a wider type.

A graph of canonical ops knows nothing of them: their values are those of f32, i8 or u8, the reader
keeps account of which value stands for which type, and what casts to them rounds accordingly.
Sessions take and give arrays of the types themselves.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

from rooftile.core.dtype import DType
from rooftile.core.errors import InvalidModel
from rooftile.ir.graph import Array


@dataclass(frozen=True)
class Narrow:
    """A type that is held in `wide`. `bits`: of one element in a file.

    Of a float: `mantissa` bits, the exponent `least` of the smallest normal number, the `largest`
    finite number; `zero` whether there is a -0, `infinite` whether there is an infinity.
    """

    name: str
    wide: DType
    numpy: np.dtype[Any]
    bits: int
    mantissa: int = 0
    least: int = 0
    largest: float = 0.0
    zero: bool = True
    infinite: bool = False

    @property
    def is_float(self) -> bool:
        """Whether it is no integer."""
        return self.wide == "f32"


def _type(name: str) -> np.dtype[Any]:
    found: np.dtype[Any] = np.dtype(getattr(ml_dtypes, name))
    return found


NARROW: dict[int, Narrow] = {
    17: Narrow("float8e4m3fn", "f32", _type("float8_e4m3fn"), 8, 3, -6, 448.0),
    18: Narrow("float8e4m3fnuz", "f32", _type("float8_e4m3fnuz"), 8, 3, -7, 240.0, zero=False),
    19: Narrow("float8e5m2", "f32", _type("float8_e5m2"), 8, 2, -14, 57344.0, infinite=True),
    20: Narrow("float8e5m2fnuz", "f32", _type("float8_e5m2fnuz"), 8, 2, -15, 57344.0, zero=False),
    23: Narrow("float4e2m1", "f32", _type("float4_e2m1fn"), 4, 1, 0, 6.0),
    24: Narrow("float8e8m0", "f32", _type("float8_e8m0fnu"), 8),
    21: Narrow("uint4", "u8", _type("uint4"), 4),
    22: Narrow("int4", "i8", _type("int4"), 4),
    25: Narrow("uint2", "u8", _type("uint2"), 2),
    26: Narrow("int2", "i8", _type("int2"), 2),
}
"""By TensorProto.DataType."""
_CODES = {narrow.numpy: code for code, narrow in NARROW.items()}
_WIDE: dict[DType, Any] = {"f32": np.float32, "u8": np.uint8, "i8": np.int8}
MOVES = frozenset(
    (
        *("Concat", "DepthToSpace", "Expand", "Flatten", "Gather", "GatherElements", "GatherND"),
        *("Identity", "Reshape", "Slice", "SpaceToDepth", "Split", "Squeeze", "Tile", "Transpose"),
        "Unsqueeze",
    )
)
"""Ops whose outputs are of the type of their first input."""
READERS = frozenset(
    (
        "Cast",
        "CastLike",
        "DequantizeLinear",
        "QuantizeLinear",
        "Shape",
        "Size",
        "If",
        "Loop",
        "Scan",
    )
)
"""Other ops that may read them."""


def code_of(array: Array) -> int:
    """The TensorProto.DataType of an array of a narrow type; 0 for others."""
    return _CODES.get(array.dtype, 0)


def widened(array: Array) -> Array:
    """An array of a narrow type in the type that it is held in; others as they are."""
    code = code_of(array)
    return array.astype(_WIDE[NARROW[code].wide]) if code else array


def unpacked(raw: bytes, narrow: Narrow, count: int, where: str) -> Array:
    """The elements in the bytes of a file, the first in the lowest bits."""
    each = 8 // narrow.bits
    if len(raw) != -(-count // each):
        raise InvalidModel(
            f"{where} needs {-(-count // each)} bytes of data but has {len(raw)}; "
            "the file is damaged, export it again"
        )
    data = np.frombuffer(raw, np.uint8)
    if each == 1:
        return data.view(narrow.numpy)
    shifts = np.arange(each, dtype=np.uint8) * narrow.bits
    parts = (data[:, None] >> shifts & ((1 << narrow.bits) - 1)).reshape(-1)[:count]
    if narrow.is_float:
        return np.ascontiguousarray(parts).view(narrow.numpy)
    top = 1 << (narrow.bits - 1)
    signed = parts.astype(np.int16) if narrow.wide == "u8" else (parts ^ top).astype(np.int16) - top
    return signed.astype(narrow.numpy)
