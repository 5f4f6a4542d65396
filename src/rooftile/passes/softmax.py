"""A softmax divides once for each row. Changes rounding."""

from __future__ import annotations

from rooftile.core.dtype import kind
from rooftile.ir.graph import Graph, Node, Value
from rooftile.passes.rewrite import Match, rewrite


def divide_once(graph: Graph) -> Graph:
    """The graph with e/sum(e) written as e*(1/sum(e)).

    Pattern: e is exp of something less its largest value. Legal: floats; the sum lies between 1 and
    the number of its elements, so its reciprocal neither overflows nor underflows.
    """
    return rewrite(graph, _rule)


def _rule(match: Match, node: Node) -> Value | None:
    if node.op != "div" or kind(node.output.dtype) != "float":
        return None
    weights, total = match.inputs(node)
    reduce, exp = match.producer(total, "reduce"), match.producer(weights, "exp")
    if exp is None or reduce is None or reduce.inputs[0] != weights.name:
        return None
    below = match.producer(match.value(exp.inputs[0]), "sub")
    largest = match.producer(match.value(below.inputs[1]), "reduce") if below else None
    if below is None or largest is None or largest.inputs[0] != below.inputs[0]:
        return None
    dims = {"max": largest.attr("dims"), "sum": reduce.attr("dims")}
    if (largest.attr("op"), reduce.attr("op")) != ("max", "sum") or len(set(dims.values())) > 1:
        return None
    one = match.emit([node], "reshape", match.constant(1.0, total.dtype), shape=(1,) * total.rank)
    return match.emit([node], "mul", weights, match.emit([node], "div", one, total))
