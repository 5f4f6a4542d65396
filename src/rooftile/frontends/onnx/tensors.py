"""TensorProto -> numpy, without trust: sizes are checked, external data stays in its folder."""

from __future__ import annotations

import math
import mmap
from pathlib import Path
from typing import Any

import numpy as np

from rooftile.core.dtype import DTYPES, DType, to_numpy
from rooftile.core.errors import InvalidModel, UnsupportedType
from rooftile.frontends.onnx.narrow import NARROW, unpacked
from rooftile.ir.graph import Array

ELEMENT_TYPES: dict[int, DType] = {
    1: "f32",
    2: "u8",
    3: "i8",
    4: "u16",
    5: "i16",
    6: "i32",
    7: "i64",
    9: "bool",
    10: "f16",
    11: "f64",
    12: "u32",
    13: "u64",
    16: "bf16",
}
"""TensorProto.DataType -> dtype."""
CODES: dict[DType, int] = {dtype: code for code, dtype in ELEMENT_TYPES.items()}
"""dtype -> TensorProto.DataType."""
_NAMES = {8: "string", 14: "complex64", 15: "complex128"} | {
    code: narrow.name for code, narrow in NARROW.items()
}
_FIELDS = {
    "f32": ("float_data", "f32"),
    "f64": ("double_data", "f64"),
    "i64": ("int64_data", "i64"),
    "u64": ("uint64_data", "u64"),
    "u32": ("uint64_data", "u64"),
}
"""The field that holds a dtype's elements, and the dtype that they are held in there."""
_EXTERNAL = 1
MAX_DIMS = 32
MAX_ELEMENTS = 1 << 48
LONGEST = 200
"""Characters of a file's name in a message."""


def element_type(code: int, where: str) -> DType:
    """The dtype of a TensorProto.DataType; UnsupportedType names `where`."""
    if code not in ELEMENT_TYPES:
        raise UnsupportedType(
            f"{where} has element type {_NAMES.get(code, f'number {code}')}; "
            f"supported are {', '.join(DTYPES)}"
        )
    return ELEMENT_TYPES[code]


def held_type(code: int, where: str) -> DType:
    """The dtype of a TensorProto.DataType, or the one that holds its values."""
    return NARROW[code].wide if code in NARROW else element_type(code, where)


def to_array(tensor: Any, folder: Path | None = None, name: str = "") -> Array:
    """The array in a TensorProto, of a type of ml_dtypes where numpy has none of its own.

    `folder` holds the model and its external data.
    """
    where = f"tensor {name or tensor.name or '(nameless)'}"
    narrow = NARROW.get(tensor.data_type)
    dtype = "u8" if narrow else element_type(tensor.data_type, where)
    shape = tuple(int(extent) for extent in tensor.dims)
    if len(shape) > MAX_DIMS or any(extent < 0 for extent in shape):
        raise InvalidModel(f"{where} has shape {list(shape)}; dims are at most 32, none negative")
    if tensor.HasField("segment"):
        raise InvalidModel(f"{where} is cut into segments; save the model again without them")
    count = math.prod(shape)
    if math.prod(extent for extent in shape if extent) > MAX_ELEMENTS:  # though one may be 0
        raise InvalidModel(f"{where} has shape {list(shape)}, which is too large")
    if narrow is not None:
        return unpacked(_raw(tensor, folder, where), narrow, count, where).reshape(shape)
    if tensor.data_location == _EXTERNAL:
        flat = _from_bytes(_external(tensor, folder, where), dtype, count, where)
    elif tensor.HasField("raw_data"):
        flat = _from_bytes(tensor.raw_data, dtype, count, where)
    else:
        flat = _from_field(tensor, dtype, where)
    if flat.size != count:
        raise InvalidModel(
            f"{where} has shape {list(shape)} but data for {flat.size} elements; "
            "the file is damaged, export it again"
        )
    return flat.reshape(shape)


def _raw(tensor: Any, folder: Path | None, where: str) -> bytes:
    """The bytes of a tensor whose elements may share a byte."""
    if tensor.data_location == _EXTERNAL:
        return bytes(_external(tensor, folder, where))
    if tensor.HasField("raw_data"):
        return bytes(tensor.raw_data)
    return bytes(item & 0xFF for item in tensor.int32_data)


def _from_bytes(raw: bytes | memoryview, dtype: DType, count: int, where: str) -> Array:
    kind = to_numpy(dtype)
    if len(raw) != count * kind.itemsize:
        raise InvalidModel(
            f"{where} needs {count * kind.itemsize} bytes of data but has {len(raw)}; "
            "the file is damaged, export it again"
        )
    if dtype == "bool":
        return np.asarray(np.frombuffer(raw, np.uint8) != 0)
    return np.asarray(np.frombuffer(raw, kind))


def _from_field(tensor: Any, dtype: DType, where: str) -> Array:
    field, held = _FIELDS.get(dtype, ("int32_data", "i64"))
    wide: Array = np.array(getattr(tensor, field), to_numpy(held))
    if dtype in ("f16", "bf16"):  # bit patterns
        return wide.astype(np.uint16).view(to_numpy(dtype))
    return wide.astype(to_numpy(dtype))


def _external(tensor: Any, folder: Path | None, where: str) -> bytes | memoryview:
    """The bytes in a file, which is mapped into memory and not read."""
    facts = {item.key: item.value for item in tensor.external_data}
    location = facts.get("location", "")
    shown = repr(location[:LONGEST])
    if folder is None:
        raise InvalidModel(
            f"{where} lies in another file ({shown}); give the model as a path, not as bytes"
        )
    base = folder.resolve()
    path = _inside(base, location, where)
    try:
        offset, size = int(facts.get("offset", 0)), path.stat().st_size
        length = int(facts.get("length", size - offset))
    except (OSError, ValueError) as error:
        raise InvalidModel(f"{where}: external data {shown} is unreadable: {error}") from error
    if offset < 0 or length < 0 or offset + length > size:
        raise InvalidModel(
            f"{where}: external data {shown} has {size} bytes, "
            f"not the {length} at offset {offset} that the model asks for"
        )
    if not length:
        return b""
    try:
        with path.open("rb") as stream:
            mapped = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
    except (OSError, ValueError) as error:
        raise InvalidModel(f"{where}: external data {shown}: {error}") from error
    return memoryview(mapped)[offset : offset + length]


def _inside(base: Path, location: str, where: str) -> Path:
    refused = InvalidModel(
        f"{where}: external data {location[:LONGEST]!r} "
        "must be a file in the model's folder or below it"
    )
    if not location or "\0" in location or Path(location).is_absolute():
        raise refused
    try:
        path = (base / location).resolve()
        if path.is_relative_to(base) and path.is_file():
            return path
    except (OSError, RuntimeError) as error:  # links in a circle, names that are too long
        raise refused from error
    raise refused
