"""cast: conversion to another element type.

Integers wrap. Floats become integers truncated toward zero; NaN and values outside the range give
what onnxruntime gives on x86: the least i64 or i32, and for narrower types the low bits of that
i32. u32 and u64 convert as i32 and i64, their upper half less 2^31 or 2^63.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rooftile.core.dtype import DType, itemsize, kind, to_numpy
from rooftile.ir.graph import Array, Node, Value
from rooftile.ir.tile import Cast, Const, Map, Tile
from rooftile.ops.base import Body, Index, Op, Type, register
from rooftile.ops.rules import Attrs, arity, element_type, elements


def convert(x: Array, dtype: np.dtype[np.generic]) -> Array:
    """`x` in another numpy type, by the rules above."""
    if dtype.kind == "b":
        return np.asarray(x != 0)
    if x.dtype.kind in "iub" or dtype.kind not in "iu":
        return x.astype(dtype)
    exact = np.trunc(x.astype(np.float64))
    through = np.int64 if dtype.itemsize == 8 else np.int32
    if dtype.kind == "i" or dtype.itemsize < 4:
        return _in_range(exact, through).astype(dtype)
    half = 2.0 ** (8 * dtype.itemsize - 1)
    large = exact >= half
    low = _in_range(np.where(large, exact - half, exact), through).view(dtype)
    return np.asarray(np.where(large, low ^ dtype.type(half), low))


def _in_range(exact: Array, dtype: type[np.int64] | type[np.int32]) -> Array:
    least = np.iinfo(dtype).min
    fits = (exact >= float(least)) & (exact < -float(least))
    return np.asarray(np.where(fits, np.where(fits, exact, 0.0).astype(dtype), dtype(least)))


def _infer(attrs: Attrs, inputs: Sequence[Value]) -> tuple[Type, ...]:
    (x,) = arity("cast", inputs, 1)
    return ((x.shape, element_type("cast", attrs)),)


def _reference(attrs: Attrs, arrays: Sequence[Array]) -> tuple[Array, ...]:
    (x,) = arrays
    if kind(attrs["dtype"]) != "float":
        return (convert(x, to_numpy(attrs["dtype"])),)
    # Which float type a value is held in is the evaluator's choice: float64, or its own.
    return (x.astype(np.float64) if x.dtype.kind in "iub" else x,)


def converted(x: Tile, source: DType, dtype: DType) -> Tile:
    """A tile of type `source` in another type, by the rules above."""
    if dtype == "bool":
        return Map("not", (Map("eq", (x, Const(0, source))),)) if source != "bool" else x
    if kind(source) != "float" or kind(dtype) == "float":
        return x if source == dtype else Cast(x, dtype)
    if source in ("f16", "bf16"):
        x, source = Cast(x, "f32"), "f32"
    if dtype not in ("u32", "u64"):
        return Cast(_tile_in_range(x, source, "i64" if dtype == "i64" else "i32"), dtype)
    bits = 8 * itemsize(dtype) - 1
    half = Const(2.0**bits, source)
    large = Map("le", (half, x))
    halved = Map("where", (large, Map("sub", (x, half)), x))
    low = Cast(_tile_in_range(halved, source, "i64" if dtype == "u64" else "i32"), dtype)
    return Map("where", (large, Map("add", (low, Const(1 << bits, dtype))), low))


def _tile_in_range(x: Tile, source: DType, through: DType) -> Tile:
    least = -(2.0 ** (8 * itemsize(through) - 1))
    above = Map("le", (Const(least, source), x))
    fits = Map("and", (above, Map("lt", (x, Const(-least, source)))))
    return Map("where", (fits, Cast(x, through), Const(int(least), through)))


def conversion_flops(source: DType, dtype: DType) -> int:
    """Operations that `converted` does for an element beside moving it."""
    if dtype == "bool":
        return 2 if source != "bool" else 0
    if kind(source) != "float" or kind(dtype) == "float":
        return 0
    return 9 if dtype in ("u32", "u64") else 4


def _flops(attrs: Attrs, inputs: Sequence[Value], outputs: Sequence[Value]) -> int:
    return conversion_flops(inputs[0].dtype, outputs[0].dtype) * elements(outputs[0])


def _body(node: Node, index: Index, build: Body) -> Tile:
    return converted(build.arg(0, index), build.inputs[0].dtype, node.output.dtype)


register(Op("cast", "elementwise", _infer, _reference, _flops, _body))
