"""Whole graphs as one region, lowered and held against the evaluator of ops."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from sketch import feeds_of

from rooftile.ir.graph import Graph, Region
from rooftile.ir.tile.interpret import run
from rooftile.ir.tile.verify import verify
from rooftile.lower import Lowered, View, lower
from rooftile.ops.evaluate import evaluate_all


def region_of(graph: Graph, *ops: str) -> Region:
    """All nodes as one region; with `ops`, only nodes of these."""
    nodes = tuple(node for node in graph.nodes if not ops or node.op in ops)
    made = {node.name for node in nodes}
    read = dict.fromkeys(name for node in nodes for name in node.inputs if name not in made)
    outputs = [graph.values[name] for name in graph.outputs if name in made]
    return Region("r", nodes, tuple(graph.values[name] for name in read), tuple(outputs))


def lowered(graph: Graph, views: Mapping[str, View] | None = None) -> Lowered:
    """The graph's one kernel, verified, after asserting that it computes what the ops say."""
    found = lower(region_of(graph), graph.constants, views)
    kernel = verify(found.kernel)
    values = evaluate_all(graph, feeds_of(graph))
    memory = [buf for buf in kernel.bufs if buf.space == "memory"]
    arrays = {}
    for buf, name in zip(memory, found.arguments, strict=True):
        if buf.name not in kernel.outputs:
            arrays[buf.name] = values[name].reshape([int(str(n)) for n in buf.shape])
    results = run(kernel, arrays)
    for buf, name in zip(memory, found.arguments, strict=True):
        if buf.name in kernel.outputs:
            wanted = values[name]
            np.testing.assert_allclose(
                results[buf.name].reshape(wanted.shape), wanted, 1e-9, 1e-9, err_msg=name
            )
    return found
