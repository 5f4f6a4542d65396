"""Broadcasts that elementwise ops make unnecessary: these broadcast implicitly."""

from __future__ import annotations

import numpy as np

from rooftile.ir.graph import Array, Graph, Node, Value
from rooftile.passes.rewrite import Match, is_elementwise, rewrite


def drop_broadcasts(graph: Graph) -> Graph:
    """The graph without broadcasts that feed elementwise ops.

    Pattern: an elementwise op with an operand that is a broadcast, or a constant that
    repeats along a dim. Legal: always; where the result would shrink, it is broadcast instead.
    """
    return rewrite(graph, _rule)


def _rule(match: Match, node: Node) -> Value | None:
    if not is_elementwise(node):
        return None
    before = match.inputs(node)
    after = [_smaller(match, value) for value in before]
    if after == before:
        return None
    shape = tuple(
        max((value.dims[dim] for value in after), key=lambda extent: extent != 1)
        for dim in range(node.output.rank)
    )
    result = match.like([node], after)
    if shape == node.output.shape:
        return result
    return match.emit([node], "broadcast", result, shape=node.output.shape)


def _smaller(match: Match, value: Value) -> Value:
    broadcast = match.producer(value, "broadcast")
    if broadcast is not None:
        return match.value(broadcast.inputs[0])
    array = match.array(value)
    if array is None:
        return value
    shrunk = _without_repeats(array)
    return value if shrunk.size == array.size else match.constant(shrunk, value.dtype)


def _without_repeats(array: Array) -> Array:
    """The array with each dim along which it repeats one slice, bit by bit, cut to that slice."""
    bits = array.view(f"u{array.dtype.itemsize}") if array.dtype.kind != "b" else array
    for dim, extent in enumerate(array.shape):
        if extent > 1 and np.all(bits == bits.take([0], dim)):
            bits, array = bits.take([0], dim), array.take([0], dim)
    return array
