"""Concatenation with blocks of zeros is padding."""

from __future__ import annotations

from rooftile.ir.graph import Graph, Node, Value
from rooftile.passes.rewrite import Match, rewrite


def zero_blocks_to_pad(graph: Graph) -> Graph:
    """The graph with concat(zeros, x..., zeros) written as pad(concat(x...)).

    Pattern: a concat whose first or last operands are constants, or broadcasts of constants, of
    zeros. Legal: the zeros are positive, as pad writes them.
    """
    return rewrite(graph, _rule)


def _rule(match: Match, node: Node) -> Value | None:
    if node.op != "concat":
        return None
    axis, kept = node.attr("axis"), match.inputs(node)
    low, high = [0] * node.output.rank, [0] * node.output.rank
    while len(kept) > 1 and _is_zero(match, kept[0]):
        low[axis] += kept.pop(0).dims[axis]
    while len(kept) > 1 and _is_zero(match, kept[-1]):
        high[axis] += kept.pop().dims[axis]
    if not low[axis] and not high[axis]:
        return None
    x = kept[0] if len(kept) == 1 else match.emit([node], "concat", *kept, axis=axis)
    zero = False if x.dtype == "bool" else 0.0
    return match.emit([node], "pad", x, low=tuple(low), high=tuple(high), value=zero)


def _is_zero(match: Match, value: Value) -> bool:
    broadcast = match.producer(value, "broadcast")
    if broadcast is not None:
        value = match.value(broadcast.inputs[0])
    array = match.array(value)
    return array is not None and array.size > 0 and not any(array.tobytes())
