"""cumulative: sums or products along one axis of all elements up to a place, or before it.

`reverse` runs from the end. Half-precision totals are held in f32.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rooftile.core.affine import Affine, affine
from rooftile.ir.graph import Array, Node, Value
from rooftile.ir.tile import (
    Axis,
    Buf,
    Carry,
    Cast,
    Const,
    For,
    Kernel,
    Let,
    Load,
    Map,
    Ref,
    Store,
    Tile,
)
from rooftile.ops.base import Op, Type, register
from rooftile.ops.reduce import UFUNCS
from rooftile.ops.rules import Attrs, arity, attribute, axis_of, need, of_kind, per_element

COMBINE = {"sum": "add", "prod": "mul"}


def _infer(attrs: Attrs, inputs: Sequence[Value]) -> tuple[Type, ...]:
    (x,) = arity("cumulative", inputs, 1)
    of_kind("cumulative", x, "float", "int", "uint")
    axis_of("cumulative", attrs, x.rank)
    op = attribute("cumulative", attrs, "op")
    need(op in COMBINE, "cumulative", f"op {op!r} must be one of {', '.join(COMBINE)}")
    for name in ("exclusive", "reverse"):
        flag = attribute("cumulative", attrs, name)
        need(isinstance(flag, bool), "cumulative", f"attribute {name} must be true or false")
    return ((x.shape, x.dtype),)


def _reference(attrs: Attrs, arrays: Sequence[Array]) -> tuple[Array, ...]:
    x, axis = np.moveaxis(arrays[0], attrs["axis"], 0), attrs["axis"]
    x = x[::-1] if attrs["reverse"] else x
    total = UFUNCS[attrs["op"]].accumulate(x, axis=0, dtype=x.dtype)
    if attrs["exclusive"]:
        start = np.full_like(x[:1], attrs["op"] == "prod")
        total = np.concatenate([start, total[:-1]])
    total = total[::-1] if attrs["reverse"] else total
    return (np.moveaxis(total, 0, axis),)


def _program(node: Node, inputs: Sequence[Value]) -> Kernel:
    """One program for each place in front of the axis; the places behind it lie in one tile."""
    (x,) = inputs
    axis, dtype = node.attr("axis"), x.dtype
    wide = "f32" if dtype in ("f16", "bf16") else dtype
    names = [f"d{dim}" if extent > 1 else "" for dim, extent in enumerate(x.dims)]
    outer = tuple(Axis(names[d], x.dims[d], "point") for d in range(axis) if names[d])
    inner = tuple(Axis(names[d], x.dims[d]) for d in range(axis + 1, x.rank) if names[d])
    step = Axis("step", x.dims[axis], "point")
    index = [affine(name) if name else Affine() for name in names]
    index[axis] = affine(x.dims[axis] - 1) - "step" if node.attr("reverse") else affine("step")
    item: Tile = Load("x0", tuple(index))
    following = Map(COMBINE[node.attr("op")], (Ref("total"), _cast(item, dtype, wide)))
    stored = Ref("total" if node.attr("exclusive") else "after")
    start = Const(float(node.attr("op") == "prod"), wide, tuple(a.name for a in inner))
    loop = For(
        step,
        (Let("after", following), Store("y0", tuple(index), _cast(stored, wide, dtype))),
        (Carry("total", start, Ref("after")),),
    )
    bufs = (Buf("x0", x.dims, dtype), Buf("y0", x.dims, dtype))
    return Kernel("kernel", bufs, outer, inner, (loop,))


def _cast(tile: Tile, source: str, dtype: str) -> Tile:
    return tile if source == dtype else Cast(tile, dtype)


register(
    Op("cumulative", "program", _infer, _reference, per_element(1), None, _program),
)
