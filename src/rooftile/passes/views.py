"""Chains of views become one view."""

from __future__ import annotations

from rooftile.ir.graph import Graph, Node, Value
from rooftile.passes.rewrite import Match, rewrite


def merge_views(graph: Graph) -> Graph:
    """The graph with views of views merged.

    Pattern: reshape of reshape; transpose of transpose; broadcast of broadcast; a transpose that
    moves only dims of size 1, which is a reshape. Legal: always.
    """
    return rewrite(graph, _rule)


def moves_data(perm: tuple[int, ...], shape: tuple[int, ...]) -> bool:
    """Whether a transpose changes the order in memory: not if only dims of 1 change places."""
    wide = [dim for dim in perm if shape[dim] != 1]
    return wide != sorted(wide)


def _rule(match: Match, node: Node) -> Value | None:
    if node.op not in ("reshape", "transpose", "broadcast"):
        return None
    x = match.value(node.inputs[0])
    if node.op == "transpose" and not moves_data(node.attr("perm"), x.dims):
        return match.emit([node], "reshape", x, shape=node.output.shape)
    inner = match.producer(x, node.op)
    if inner is None:
        return None
    source = match.value(inner.inputs[0])
    if node.op == "transpose":
        perm = tuple(inner.attr("perm")[dim] for dim in node.attr("perm"))
        return match.emit([node, inner], "transpose", source, perm=perm)
    return match.emit([node, inner], node.op, source, shape=node.output.shape)
