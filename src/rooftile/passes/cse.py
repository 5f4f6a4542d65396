"""Common subexpressions: what is computed twice is computed once."""

from __future__ import annotations

from collections.abc import Hashable

from rooftile.ir.graph import Graph, Node, Value
from rooftile.passes.rewrite import COMMUTATIVE, Match, rewrite

SHARED_BYTES = 1 << 16
"""Larger constants are not compared: a file seldom holds the same weights twice."""


def share_common(graph: Graph) -> Graph:
    """The graph with equal small constants, and nodes with equal op, inputs and attributes, shared.

    Legal: always, ops have no side effects and no state.
    """
    constants = _equal_constants(graph)
    found: dict[Hashable, Value] = {}

    def rule(match: Match, node: Node) -> Value | None:
        if any(isinstance(value, Graph) for _, value in node.attrs):
            return None  # bodies are not compared
        names = [constants.get(name, name) for name in node.inputs]
        key = (node.op, tuple(sorted(names) if node.op in COMMUTATIVE else names), node.attrs)
        if key in found:
            return found[key]
        if tuple(names) == node.inputs:
            found[key] = node.output
            return None
        found[key] = match.like([node], [match.value(name) for name in names])
        return found[key]

    return rewrite(graph, rule)


def _equal_constants(graph: Graph) -> dict[str, str]:
    """The first of several equal constants, for each of the others."""
    first: dict[Hashable, str] = {}
    same: dict[str, str] = {}
    for name, array in graph.constants.items():
        if array.nbytes <= SHARED_BYTES:
            kept = first.setdefault((array.dtype, array.shape, array.tobytes()), name)
            if kept != name:
                same[name] = kept
    return same
