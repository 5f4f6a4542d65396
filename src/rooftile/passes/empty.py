"""Tensors of no elements: nothing is computed for them, and from them only what is known now."""

from __future__ import annotations

from typing import Any

import numpy as np

from rooftile.core.dtype import identity, to_numpy
from rooftile.core.errors import InvalidModel
from rooftile.ir.graph import Graph, Node, Value
from rooftile.passes.rewrite import Match, rewrite

_PICKS = ("gather", "gather_elements", "gather_nd")


def fold_empty(graph: Graph) -> Graph:
    """The graph without nodes that read or give tensors of no elements.

    Pattern: a result of no elements becomes a constant; a reduction, product, convolution or pad
    of one becomes the value that it gives everywhere; a concat leaves it out. Legal: always.
    InvalidModel where elements are picked from a tensor that has none: no index is right.
    """
    return rewrite(graph, _rule)


def _rule(match: Match, node: Node) -> Value | None:
    result = node.output
    if 0 in result.dims:
        return match.builder.constant(np.zeros(result.dims, to_numpy(result.dtype)))
    inputs = match.inputs(node)
    full = [value for value in inputs if 0 not in value.dims]
    if len(full) == len(inputs):
        return None
    if node.op == "concat":
        return match.emit([node], "concat", *full, axis=node.attr("axis"))
    if node.op in _PICKS and 0 in inputs[0].dims:
        raise InvalidModel(
            f"{', '.join(map(repr, node.origin)) or node.name}: picks from {list(inputs[0].dims)}, "
            f"which has no element; check the shapes that it is computed from"
        )
    fill = _fill(node)
    if fill is None:
        return None
    one = match.constant(np.full((1,) * result.rank, fill), result.dtype)
    return match.emit([node], "broadcast", one, shape=result.dims)


def _fill(node: Node) -> Any:
    """What a node that reads no elements gives everywhere; None where it can give nothing."""
    if node.op in ("reduce", "reduce_window"):
        return identity(node.attr("op"), node.output.dtype)
    if node.op in ("dot", "conv"):
        return 0
    return node.attr("value") if node.op == "pad" else None
