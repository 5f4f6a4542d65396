"""The body of a loop as a graph that can be planned by itself."""

from __future__ import annotations

from dataclasses import replace

from rooftile.ir.graph import Graph, Node
from rooftile.ops.scan import parts_of


def loop_body(node: Node, graph: Graph) -> tuple[Node, Graph]:
    """A scan that captures no constants, and its body, which holds them instead.

    The body names each result once; the scan's own attribute says in which order they are given.
    """
    parts = parts_of(dict(node.attrs))
    body = parts.body
    constants, kept = dict(body.constants), []
    for number, (value, name) in enumerate(zip(body.inputs, node.inputs, strict=True)):
        if number >= parts.captured and name in graph.constants:
            constants[value.name] = graph.constants[name]
        else:
            kept.append((value, name))
    inputs = tuple(value for value, _ in kept)
    outputs = tuple(dict.fromkeys(body.outputs))
    inner = replace(body, inputs=inputs, outputs=outputs, constants=constants)
    return replace(node, inputs=tuple(name for _, name in kept)), inner
