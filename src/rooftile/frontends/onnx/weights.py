"""The initializers of a graph, dense and sparse, and which of them a run may override."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import onnx

from rooftile.core.errors import InvalidModel
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
    return Loaded(_without(loaded.proto, names), loaded.folder)


def replaced(model: Model, arrays: Mapping[str, Array]) -> Loaded:
    """The model with other contents of some of its initializers; names that it lacks are left out.

    InvalidModel for another shape or type than the initializer has.
    """
    loaded = load(model)
    weights = weights_of(loaded.proto.graph)
    own = {name: array for name, array in arrays.items() if name in weights}
    made = [onnx.numpy_helper.from_array(array, name) for name, array in own.items()]
    for tensor in made:
        _check_alike(tensor, weights[tensor.name])
    proto = _without(loaded.proto, frozenset(own))
    proto.graph.initializer.extend(made)
    return Loaded(proto, loaded.folder)


def _without(given: Any, names: frozenset[str]) -> Any:
    """A copy of a ModelProto that lacks some initializers."""
    proto = type(given)()
    proto.CopyFrom(given)
    for field in (proto.graph.initializer, proto.graph.sparse_initializer):
        kept = [item for item in field if _name(item) not in names]
        del field[:]
        field.extend(kept)
    return proto


def _check_alike(tensor: Any, weight: Any) -> None:
    values = weight.values if hasattr(weight, "indices") else weight
    wanted = (values.data_type, list(weight.dims))
    if (tensor.data_type, list(tensor.dims)) != wanted:
        raise InvalidModel(
            f"initializer {tensor.name!r} is given type {tensor.data_type} and shape "
            f"{list(tensor.dims)}, the model has type {wanted[0]} and shape {wanted[1]}"
        )


def _name(proto: Any) -> str:
    return str(proto.values.name if hasattr(proto, "indices") else proto.name)
