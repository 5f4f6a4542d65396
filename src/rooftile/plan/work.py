"""The work of a graph whatever the plan: operations of direct algorithms, compulsory bytes."""

from __future__ import annotations

from rooftile.core.cost import Cost
from rooftile.core.journal import Journal
from rooftile.core.symbolic import hint
from rooftile.ir.graph import Graph, Node, Value, walk
from rooftile.ops import OPS
from rooftile.plan.cost import nbytes


def work(graph: Graph) -> Cost:
    """Operations by dtype; inputs and constants read once, outputs written once.

    A convolution's products with padding do not count, as no kernel has to compute them. Of a
    table that is only gathered from, the rows that are read count.
    """
    flops: dict[str, int] = {}
    for node in graph.nodes:
        inputs = [graph.values[name] for name in node.inputs]
        count = hint(OPS[node.op].flops(dict(node.attrs), inputs, node.outputs))
        if node.op == "conv":
            count = _without_padding(count, node, inputs)
        flops[node.output.dtype] = flops.get(node.output.dtype, 0) + count
    values = graph.values
    read = sum(_read(graph, values[name]) for name in values if name not in graph.producers)
    bodies = [inner for inner in walk(graph) if inner is not graph]
    read += sum(array.nbytes for body in bodies for array in body.constants.values())
    written = sum(nbytes(values[name]) for name in graph.outputs)
    return Cost({dtype: count for dtype, count in flops.items() if count}, read, written)


def record_work(graph: Graph, journal: Journal) -> None:
    """Leave the work of the simplified graph in the journal, for the report."""
    cost = work(graph)
    reason = "operations of the direct algorithms; inputs, outputs and weights once"
    facts = {"flops": dict(cost.flops), "bytes": cost.nbytes}
    journal.add("work", (graph.name,), "counted", reason, **facts)


def _without_padding(count: int, node: Node, inputs: list[Value]) -> int:
    """A conv's operations less those of taps that lie outside the input."""
    x, w = inputs
    for dim, window in enumerate(w.dims[:-2]):
        stride, dilation = node.attr("strides")[dim], node.attr("dilations")[dim]
        low, places = node.attr("pads_low")[dim], hint(node.output.dims[1 + dim])
        room = hint(x.dims[1 + dim])
        inside = 0
        for tap in range(window):  # the places whose index, place * stride - before, is inside
            before = low - tap * dilation
            first, stop = -(-before // stride), -(-(before + room) // stride)
            inside += max(0, min(places, stop) - max(0, first))
        count = count * inside // max(1, places * window)
    return count


def _read(graph: Graph, value: Value) -> int:
    users = graph.consumers[value.name]
    if not users:
        return 0
    gathers = [n for n in users if n.op == "gather" and value.name not in n.inputs[1:]]
    if len(gathers) < len(users):
        return nbytes(value)
    return min(nbytes(value), sum(nbytes(node.output) for node in gathers))
