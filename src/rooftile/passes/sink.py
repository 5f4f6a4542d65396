"""Transposes sink below elementwise ops with constants, so that scales meet their conv or dot."""

from __future__ import annotations

import numpy as np

from rooftile.ir.graph import Graph, Node, Value
from rooftile.passes.rewrite import Match, is_elementwise, rewrite


def sink_transposes(graph: Graph) -> Graph:
    """The graph with elementwise(transpose(x), c) written as transpose(elementwise(x, c')).

    Pattern: one operand is a transpose that is read only here, the others are constants. Legal:
    the transposed operand has the result's shape, so the transpose moves no more data than before.
    """
    return rewrite(graph, _rule)


def _rule(match: Match, node: Node) -> Value | None:
    if not is_elementwise(node):
        return None
    inputs = match.inputs(node)
    computed = [value for value in inputs if match.array(value) is None]
    if len(computed) != 1 or computed[0].shape != node.output.shape:
        return None
    [x] = computed
    transpose = match.producer(x, "transpose")
    if transpose is None or not match.single_use(x):
        return None
    perm = transpose.attr("perm")
    back = tuple(int(dim) for dim in np.argsort(perm))
    source = match.value(transpose.inputs[0])
    moved = [
        source if value is x else match.emit([node], "transpose", value, perm=back)
        for value in inputs
    ]
    result = match.like([node], moved)
    return match.emit([transpose], "transpose", result, perm=perm)
