"""Dots whose columns are counted at run time: their right operands with the columns innermost.

A kernel stages an operand that lies across its vectors where it knows how large it is. Where only
a run knows, the operand must come in order; a transpose says so, and is stored.
"""

from __future__ import annotations

from rooftile.core.symbolic import symbolic
from rooftile.ir.graph import Graph, Node, Value
from rooftile.ops.dot import sides
from rooftile.passes.rewrite import Match, rewrite


def columns_innermost(graph: Graph) -> Graph:
    """The graph with a transpose in front of each such operand.

    Pattern: a dot whose right operand has one free dim, of open extent, that is not its last.
    Legal: which dims of an operand are contracted is said by their numbers.
    """
    return rewrite(graph, _rule)


def _rule(match: Match, node: Node) -> Value | None:
    if node.op != "dot":
        return None
    left, right = match.inputs(node)
    batch, free, _ = sides(dict(node.attrs), (left.rank, right.rank))[1]
    if len(free) != 1 or free[0] == right.rank - 1 or not symbolic((right.dims[free[0]],)):
        return None
    perm = tuple(dim for dim in range(right.rank) if dim != free[0]) + free
    place = {dim: number for number, dim in enumerate(perm)}
    moved = match.emit([node], "transpose", right, perm=perm)
    contract = tuple(place[dim] for dim in node.attr("rhs_contract"))
    changed = dict(node.attrs) | {
        "rhs_batch": tuple(place[dim] for dim in batch),
        "rhs_contract": contract,
    }
    return match.emit([node], "dot", left, moved, **changed)
