"""Graphs inside nodes: the bodies of If, Loop and Scan, and the outer names that they read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

_GRAPH, _GRAPHS = 5, 10


def bodies(node: Any) -> Iterator[Any]:
    """The graphs that a node holds as attributes."""
    for item in node.attribute:
        if item.type == _GRAPH:
            yield item.g
        elif item.type == _GRAPHS:
            yield from item.graphs


def captured(graph: Any) -> list[str]:
    """The names that a body reads from the graphs around it, each once."""
    own = {info.name for info in graph.input} | {tensor.name for tensor in graph.initializer}
    own.update(sparse.values.name for sparse in graph.sparse_initializer)
    own.update(name for node in graph.node for name in node.output)
    found = [name for node in graph.node for name in reads(node)]
    found += [info.name for info in graph.output]
    return [name for name in dict.fromkeys(found) if name and name not in own]


def reads(node: Any) -> list[str]:
    """The names that a node reads, each once: its inputs, and what its bodies capture."""
    inner = [name for graph in bodies(node) for name in captured(graph)]
    return [name for name in dict.fromkeys((*node.input, *inner)) if name]
