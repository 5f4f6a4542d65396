"""A softmax that weighs the rows of a dot is divided by its sums behind it. Changes rounding."""

from __future__ import annotations

from rooftile.core.dtype import kind
from rooftile.ir.graph import Graph, Node, Value
from rooftile.ops.dot import sides
from rooftile.passes.rewrite import Match, rewrite


def divide_after_dot(graph: Graph) -> Graph:
    """The graph with dot(e/sum(e), v) written as dot(e, v)/sum(e).

    Pattern: e is exp of something, summed over the dims that are contracted; the quotient is read
    only here, and has more elements than the dot. Legal: floats; the dot is no larger than the sum
    times the largest of v.
    """
    return rewrite(graph, _rule)


def _rule(match: Match, node: Node) -> Value | None:
    if node.op != "dot" or kind(node.output.dtype) != "float":
        return None
    quotient, v = match.inputs(node)
    div = match.producer(quotient, "div")
    if div is None or not match.single_use(quotient):
        return None
    e, total = match.inputs(div)
    reduce, contracted = match.producer(total, "reduce"), node.attr("lhs_contract")
    if reduce is None or match.producer(e, "exp") is None or e.dims != quotient.dims:
        return None
    sums = reduce.inputs[0] == e.name and reduce.attr("op") == "sum"
    if not sums or set(reduce.attr("dims")) != set(contracted):
        return None
    batch, free, _ = sides(dict(node.attrs), (e.rank, v.rank))[0]
    columns = node.output.rank - len(batch) - len(free)
    perm = (*batch, *free, *contracted)
    turned = match.emit([node, div], "transpose", total, perm=perm)
    shape = tuple(total.dims[dim] for dim in (*batch, *free)) + (1,) * columns
    rows = match.emit([node, div], "reshape", turned, shape=shape)
    return match.emit([node, div], "div", match.like([node], [e, v]), rows)
