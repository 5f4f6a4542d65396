"""Outputs that need no kernel: what they hold lies in memory already, under another name."""

from __future__ import annotations

from collections.abc import Mapping

from rooftile.ir.graph import Graph


def output_aliases(graph: Graph) -> Mapping[str, str]:
    """The value in whose memory an output lies, for outputs that only rename other memory.

    Such an output is a reshape of an input, a constant or another output, and nothing reads it.
    The program copies it when the steps are done.
    """
    found: dict[str, str] = {}
    for node in graph.nodes:
        if node.op != "reshape" or node.name not in graph.outputs or graph.consumers[node.name]:
            continue
        source = node.inputs[0]
        if source not in graph.producers or source in graph.outputs:
            found[node.name] = source
    return found
