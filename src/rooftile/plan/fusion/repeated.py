"""Small values whose elements repeat along a row lie in memory, where vectors read them."""

from __future__ import annotations

from rooftile.ir.graph import Graph, Node
from rooftile.ops.reshape import groups
from rooftile.plan.partition import elements

REASON = "its elements repeat along the rows, which would fall apart into short runs"
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
