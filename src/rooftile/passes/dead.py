"""Dead code: nodes and constants that no output needs. Inputs stay: they are the signature."""

from __future__ import annotations

from rooftile.ir.graph import Graph, Node


def remove_dead(graph: Graph) -> Graph:
    """The graph without what no output depends on.

    Pattern: a node none of whose outputs is needed. Legal: always, ops have no side effects.
    """
    needed = set(graph.outputs)
    kept: list[Node] = []
    for node in reversed(graph.nodes):
        if any(value.name in needed for value in node.outputs):
            needed.update(node.inputs)
            kept.append(node)
    constants = {name: array for name, array in graph.constants.items() if name in needed}
    if len(kept) == len(graph.nodes) and len(constants) == len(graph.constants):
        return graph
    return graph.with_nodes(reversed(kept), constants)
