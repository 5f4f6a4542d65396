"""number: one extent as a tensor without dims, for arithmetic on what only a run knows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rooftile.ir.graph import Array, Node, Value
from rooftile.ir.tile import Tile
from rooftile.ops.base import Body, Index, Op, Type, register
from rooftile.ops.rules import Attrs, arity, integer, per_element


def _infer(attrs: Attrs, inputs: Sequence[Value]) -> tuple[Type, ...]:
    arity("number", inputs, 0)
    integer("number", attrs, "value")
    return (((), "i64"),)


def _reference(attrs: Attrs, arrays: Sequence[Array]) -> tuple[Array, ...]:
    return (np.asarray(attrs["value"], np.int64),)


def _body(node: Node, index: Index, build: Body) -> Tile:
    return build.number(node.attr("value"))


register(Op("number", "elementwise", _infer, _reference, per_element(0), _body))
