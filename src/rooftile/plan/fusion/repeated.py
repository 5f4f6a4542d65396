"""Small values that are better stored than computed again by what reads them."""

from __future__ import annotations

from rooftile.ir.graph import Graph, Node
from rooftile.machine.model import Machine
from rooftile.ops.reshape import groups
from rooftile.plan.cost import ELEMENTWISE_SHARE
from rooftile.plan.fusion.base import Group
from rooftile.plan.partition import elements

RUNS = "its elements repeat along the rows, which would fall apart into short runs"
AGAIN = "it is one row, which would be computed again for every row"
SMALL = 8
"""How many times its elements a reader must have, for the copy to cost next to nothing."""


def repeats_along_rows(graph: Graph, view: Node, reader: Node) -> bool:
    """Whether a view shows each of its few elements several times in a row: a reader that computes
    it has axes for the runs, and vectors no longer than one of them."""
    if view.op != "reshape" or elements(view.output) * SMALL > elements(reader.output):
        return False
    source = graph.producers.get(view.inputs[0])
    if source is None or source.op != "broadcast":
        return False
    narrow = graph.values[source.inputs[0]].dims
    runs = groups(source.output.dims, view.output.dims)
    return bool(runs) and len(runs[-1][0]) > 1 and narrow[runs[-1][0][-1]] == 1


def is_row_again(graph: Graph, machine: Machine, producer: Group, consumer: Group) -> bool:
    """Whether a row of columns would be computed for each of many rows, in more time than a kernel
    of its own takes."""
    made, most = producer.root.output, consumer.largest
    largest = max((node.output for node in consumer.nodes), key=elements)
    wide = [dim for dim, extent in enumerate(largest.dims) if extent != 1]
    if made.rank != largest.rank or not wide or made.dims[wide[-1]] == 1:
        return False
    work = len(producer.nodes) * max(0, most - elements(made))
    seconds = work / (machine.peak_of("f32") * ELEMENTWISE_SHARE)
    return elements(made) * SMALL <= most and seconds > machine.launch_s
