"""Constant folding: a node whose inputs are all constants is computed now."""

from __future__ import annotations

from rooftile.ir.graph import Graph, Node, Value
from rooftile.passes.rewrite import Match, rewrite


def fold_constants(graph: Graph) -> Graph:
    """The graph without nodes that depend on constants only.

    Legal: the result is not much larger than its inputs (see `Builder.folded`). Floats are
    computed in float64 and rounded once.
    """
    return rewrite(graph, _rule)


def _rule(match: Match, node: Node) -> Value | None:
    inputs = match.inputs(node)
    if any(match.array(value) is None for value in inputs):
        return None
    return match.builder.folded(node.op, *inputs, **dict(node.attrs))
