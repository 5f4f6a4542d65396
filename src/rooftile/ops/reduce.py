"""reduce: sum, prod, max or min over dims, which stay with size 1. Max and min propagate NaN."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from rooftile.core.dtype import from_numpy, identity
from rooftile.ir.graph import Array, Node, Value
from rooftile.ir.tile import Tile
from rooftile.ops.base import Body, Index, Op, Type, register
from rooftile.ops.rules import Attrs, arity, attribute, dims_of, elements, integers, need, of_kind

UFUNCS = {"sum": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum}


def operation(op: str, attrs: Attrs, allowed: Sequence[str]) -> str:
    """The attribute `op`, one of those allowed."""
    name = attribute(op, attrs, "op")
    need(name in allowed, op, f"op {name!r} must be one of {', '.join(allowed)}")
    return str(name)


def _infer(attrs: Attrs, inputs: Sequence[Value]) -> tuple[Type, ...]:
    (x,) = arity("reduce", inputs, 1)
    if operation("reduce", attrs, tuple(UFUNCS)) in ("sum", "prod"):
        of_kind("reduce", x, "float", "int", "uint")
    dims = integers("reduce", attrs, "dims")
    dims_of("reduce", "dims", dims, x.rank)
    shape = tuple(1 if dim in dims else extent for dim, extent in enumerate(x.shape))
    return ((shape, x.dtype),)


def _reference(attrs: Attrs, arrays: Sequence[Array]) -> tuple[Array, ...]:
    (x,) = arrays
    start: Any = x.dtype.type(identity(attrs["op"], from_numpy(x.dtype)))
    reduced = UFUNCS[attrs["op"]].reduce(
        x, axis=tuple(attrs["dims"]), dtype=x.dtype, keepdims=True, initial=start
    )
    return (np.asarray(reduced),)


def _flops(attrs: Attrs, inputs: Sequence[Value], outputs: Sequence[Value]) -> int:
    return elements(inputs[0])


def _body(node: Node, index: Index, build: Body) -> Tile:
    dims = node.attr("dims")
    if not dims:
        return build.arg(0, index)
    rest = tuple(part for dim, part in enumerate(index) if dim not in dims)
    return build.reduced(node.attr("op"), dims, rest)


register(Op("reduce", "reduce", _infer, _reference, _flops, _body))
