"""The initializers of a graph, dense and sparse, and which of them a run may override."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rooftile.frontends.onnx.load import Loaded, Model, load
from rooftile.frontends.onnx.signature import Argument, argument_of
from rooftile.frontends.onnx.sparse import to_dense
from rooftile.frontends.onnx.tensors import to_array
from rooftile.ir.graph import Array

FIRST_OVERRIDABLE = 4
"""The version of the format from which on an initializer that is an input as well is a default."""


def weights_of(graph: Any) -> dict[str, Any]:
    """Protos by name, sparse or not; of two of one name the last counts, as for onnxruntime."""
    found = {tensor.name: tensor for tensor in graph.initializer}
    found.update((sparse.values.name, sparse) for sparse in graph.sparse_initializer)
    return found


def array_of_weight(proto: Any, folder: Path | None) -> Array:
    """The array in one of these protos."""
    return to_dense(proto, folder) if hasattr(proto, "indices") else to_array(proto, folder)


def overridable(model: Model) -> list[Argument]:
    """The initializers that a run may give other values, in the order of the file's inputs."""
    loaded = load(model)
    proto = loaded.proto
    if proto.ir_version < FIRST_OVERRIDABLE:
        return []
    weights = weights_of(proto.graph)
    return [argument_of(info) for info in proto.graph.input if info.name in weights]


def overridden(model: Model, names: frozenset[str]) -> Loaded:
    """The model with some of its initializers left to the run: they become inputs."""
    loaded = load(model)
    proto = type(loaded.proto)()
    proto.CopyFrom(loaded.proto)
    for field in (proto.graph.initializer, proto.graph.sparse_initializer):
        kept = [item for item in field if _name(item) not in names]
        del field[:]
        field.extend(kept)
    return Loaded(proto, loaded.folder)


def _name(proto: Any) -> str:
    return str(proto.values.name if hasattr(proto, "indices") else proto.name)
