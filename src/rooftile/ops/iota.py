"""iota: the position along one axis, as a tensor."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rooftile.core.affine import Affine
from rooftile.core.dtype import kind, to_numpy
from rooftile.ir.graph import Array, Node, Value
from rooftile.ir.tile import Cast, Const, Iota, Map, Tile
from rooftile.ops.base import Body, Index, Op, Type, register
from rooftile.ops.rules import Attrs, arity, axis_of, element_type, integers, need, per_element


def _infer(attrs: Attrs, inputs: Sequence[Value]) -> tuple[Type, ...]:
    arity("iota", inputs, 0)
    shape = integers("iota", attrs, "shape", least=0)
    axis_of("iota", attrs, len(shape))
    dtype = element_type("iota", attrs)
    need(dtype != "bool", "iota", "counts in numbers, not in bool")
    return ((shape, dtype),)


def _reference(attrs: Attrs, arrays: Sequence[Array]) -> tuple[Array, ...]:
    shape, axis, dtype = attrs["shape"], attrs["axis"], attrs["dtype"]
    held = np.dtype(np.float64) if kind(dtype) == "float" else to_numpy(dtype)
    along = [1] * len(shape)
    along[axis] = shape[axis]
    return (np.broadcast_to(np.arange(shape[axis]).astype(held).reshape(along), shape),)


def position(index: Affine) -> Tile:
    """The value of an index, as an i64 tile."""
    total: Tile | None = None
    for name, coef in index.terms:
        term: Tile = Iota(name)
        if coef != 1:
            term = Map("mul", (term, Const(coef, "i64")))
        total = term if total is None else Map("add", (total, term))
    if total is None:
        return Const(index.const, "i64")
    return Map("add", (total, Const(index.const, "i64"))) if index.const else total


def _body(node: Node, index: Index, build: Body) -> Tile:
    along = position(index[node.attr("axis")])
    return along if node.output.dtype == "i64" else Cast(along, node.output.dtype)


register(Op("iota", "elementwise", _infer, _reference, per_element(0), _body))
