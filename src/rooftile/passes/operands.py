"""Constants on the right of ops that do not mind the order, so that rules need not look left."""

from __future__ import annotations

from rooftile.ir.graph import Graph, Node, Value
from rooftile.passes.rewrite import COMMUTATIVE, Match, rewrite


def constants_right(graph: Graph) -> Graph:
    """The graph with constants as second operands of add, mul, max, min, eq, and, or.

    Pattern: one of these with a constant on the left only. Legal: always.
    """
    return rewrite(graph, _rule)


def _rule(match: Match, node: Node) -> Value | None:
    if node.op not in COMMUTATIVE:
        return None
    a, b = match.inputs(node)
    if match.array(a) is None or match.array(b) is not None:
        return None
    return match.like([node], [b, a])
