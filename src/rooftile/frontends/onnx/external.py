"""Which files beside the model its tensors lie in."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rooftile.frontends.onnx.load import Model, load


def external_files(model: Model) -> list[str]:
    """The locations of external data that a model names, relative to its folder, each once."""
    proto = load(model).proto
    nodes = [node for function in proto.functions for node in function.node]
    tensors = [*_of_graph(proto.graph), *(t for node in nodes for t in _of_node(node))]
    found = {
        entry.value: None
        for tensor in tensors
        for entry in tensor.external_data
        if entry.key == "location"
    }
    return list(found)


def _of_graph(graph: Any) -> Iterator[Any]:
    yield from graph.initializer
    yield from _parts(graph.sparse_initializer)
    for node in graph.node:
        yield from _of_node(node)


def _of_node(node: Any) -> Iterator[Any]:
    for item in node.attribute:
        yield from (item.t, *item.tensors, *_parts((item.sparse_tensor, *item.sparse_tensors)))
        for graph in (item.g, *item.graphs):
            yield from _of_graph(graph)


def _parts(sparse: Any) -> Iterator[Any]:
    for tensor in sparse:
        yield from (tensor.values, tensor.indices)
