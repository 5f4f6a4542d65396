"""A value in registers, and its LLVM types."""

from __future__ import annotations

from dataclasses import dataclass

from rooftile.codegen.llvm.writer import Writer, number
from rooftile.core.dtype import DType

SCALAR_TYPES = {
    "f64": "double",
    "f32": "float",
    "f16": "float",
    "bf16": "float",
    "i64": "i64",
    "i32": "i32",
    "i16": "i16",
    "i8": "i8",
    "u64": "i64",
    "u32": "i32",
    "u16": "i16",
    "u8": "i8",
    "bool": "i1",
}
"""Types of scalars in registers."""
SUFFIX = {"f64": "f64", "f32": "f32", "f16": "f32", "bf16": "f32"}
HALVES = frozenset(("f16", "bf16"))


@dataclass(frozen=True)
class Val:
    """`name` is an SSA name or literal; `width` lanes, 0 for a scalar."""

    name: str
    dtype: DType
    width: int = 0

    @property
    def type(self) -> str:
        """Its LLVM type."""
        return llvm_type(self.dtype, self.width)

    def __str__(self) -> str:
        return f"{self.type} {self.name}"


def llvm_type(dtype: DType, width: int = 0) -> str:
    """The LLVM type of a scalar or of a vector of `width` lanes."""
    scalar = SCALAR_TYPES[dtype]
    return f"<{width} x {scalar}>" if width else scalar


def constant(value: float, dtype: DType, width: int = 0) -> Val:
    """A literal, repeated over the lanes."""
    text = number(value, dtype)
    if width:
        text = f"splat ({SCALAR_TYPES[dtype]} {text})"
    return Val(text, dtype, width)


def splat(writer: Writer, value: Val, width: int) -> Val:
    """A scalar in every lane; a vector as it is."""
    if value.width or not width:
        return value
    if not value.name.startswith("%"):
        return Val(f"splat ({SCALAR_TYPES[value.dtype]} {value.name})", value.dtype, width)
    kind = llvm_type(value.dtype, width)
    first = writer.hoisted(f"insertelement {kind} poison, {value}, i64 0", [value.name])
    name = writer.hoisted(
        f"shufflevector {kind} {first}, {kind} poison, <{width} x i32> zeroinitializer", [first]
    )
    return Val(name, value.dtype, width)


def lane_mask(width: int, lanes: int) -> str:
    """A constant mask of `width` lanes with the first `lanes` set."""
    return "<" + ", ".join(f"i1 {'true' if i < lanes else 'false'}" for i in range(width)) + ">"
