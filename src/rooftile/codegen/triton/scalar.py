"""Scalar operations, constants and element types as Triton text."""

from __future__ import annotations

import math
from typing import Any, cast

import numpy as np

from rooftile.core.dtype import DType, itemsize, kind, to_numpy
from rooftile.core.errors import NotLowered
from rooftile.ir.tile.scalar import LIBRARY

TYPES: dict[DType, str] = {
    "f64": "tl.float64",
    "f32": "tl.float32",
    "f16": "tl.float16",
    "bf16": "tl.bfloat16",
    "i64": "tl.int64",
    "i32": "tl.int32",
    "i16": "tl.int16",
    "i8": "tl.int8",
    "u64": "tl.uint64",
    "u32": "tl.uint32",
    "u16": "tl.uint16",
    "u8": "tl.uint8",
    "bool": "tl.int1",
}
SIGNATURE: dict[DType, str] = {
    "f64": "fp64",
    "f32": "fp32",
    "f16": "fp16",
    **{name: name for name in TYPES if name[0] in "iu" or name == "bf16"},
    "bool": "i1",
}
"""The names of element types in a compiled kernel's signature."""

INFIX = {
    "add": "+",
    "sub": "-",
    "mul": "*",
    "lt": "<",
    "le": "<=",
    "eq": "==",
    "bitand": "&",
    "bitor": "|",
    "bitxor": "^",
}
_MATH = {
    "sqrt": "tl.sqrt",
    "exp": "tl.exp",
    "log": "tl.log",
    "erf": "tl.erf",
    "floor": "tl.floor",
    "ceil": "tl.ceil",
    "tanh": "libdevice.tanh",
    "round": "libdevice.rint",
    "pow": "libdevice.pow",
    "fmod": "libdevice.fmod",
    **{name: f"libdevice.{name}" for name in LIBRARY},
}
NAN = "propagate_nan=tl.PropagateNan.ALL"


def literal(value: float, dtype: DType) -> str:
    """A Python literal for a constant."""
    if kind(dtype) == "bool":
        return str(bool(value))
    if kind(dtype) != "float":
        return str(int(value))
    value = float(value)
    if math.isfinite(value):
        return repr(value)
    return f'float("{value}")'


def identity(op: str, dtype: DType) -> str:
    """The value that a reduction ignores."""
    if op in ("sum", "prod"):
        return literal(op == "prod", dtype)
    if kind(dtype) == "float":
        return literal(-math.inf if op == "max" else math.inf, dtype)
    limits: Any = np.iinfo(cast(Any, to_numpy(dtype)))
    return str(limits.min if op == "max" else limits.max)


def convert(text: str, source: DType, target: DType) -> str:
    """A value in another element type; `text` is an atom."""
    if source == target:
        return text
    if target == "bool":
        return f"({text} != 0)"
    return f"{text}.to({TYPES[target]})"


def apply(op: str, dtype: DType, args: list[str]) -> tuple[str, bool]:
    """An operation on atoms of type `dtype`, and whether the result is an atom."""
    if op in INFIX:
        return f"{args[0]} {INFIX[op]} {args[1]}", False
    if op in ("max", "min"):
        nan = f", {NAN}" if kind(dtype) == "float" else ""
        return f"tl.{op}imum({bare(args[0])}, {bare(args[1])}{nan})", True
    if op == "where":
        return f"tl.where({', '.join(map(bare, args))})", True
    if op in ("and", "or"):
        return f"{args[0]} {'&' if op == 'and' else '|'} {args[1]}", False
    if op == "not":
        return f"{args[0]} == 0", False
    if op in ("neg", "bitnot"):
        return f"{'-' if op == 'neg' else '~'}{args[0]}", False
    if op in ("shl", "shr"):
        a, b = args
        stays = f"({b} >= 0) & ({b} < {8 * itemsize(dtype)})"
        if op == "shr" and kind(dtype) == "int":
            return f"{a} >> tl.where({stays}, {b}, {8 * itemsize(dtype) - 1})", False
        moved = f"{a} {'<<' if op == 'shl' else '>>'} tl.where({stays}, {b}, 0)"
        return f"tl.where({stays}, {moved}, 0)", True
    if op == "abs":
        return f"tl.abs({bare(args[0])})", True
    if op == "div":
        return _divide(dtype, args)
    if op == "pow" and kind(dtype) != "float":
        raise NotLowered("pow of integers has no Triton form")
    wide = "f32" if dtype in ("f16", "bf16") else dtype
    text = f"{_MATH[op]}({', '.join(bare(convert(arg, dtype, wide)) for arg in args)})"
    return convert(text, wide, dtype), True


def bare(text: str) -> str:
    """The text without parentheses around the whole of it."""
    if not (text.startswith("(") and text.endswith(")")):
        return text
    depth = 0
    for at, sign in enumerate(text):
        depth += (sign == "(") - (sign == ")")
        if depth == 0 and at < len(text) - 1:
            return text
    return text[1:-1]


def _divide(dtype: DType, args: list[str]) -> tuple[str, bool]:
    a, b = args
    if kind(dtype) == "float":
        if dtype in ("f16", "bf16"):
            wide = [convert(text, dtype, "f32") for text in args]
            return convert(f"({wide[0]} / {wide[1]})", "f32", dtype), True
        return f"{a} / {b}", False
    return f"tl.where({b} == 0, 0, {a} // tl.where({b} == 0, 1, {b}))", True
