"""A graph of the model with the graphs around it: its nodes in order, and its constants.

Besides initializers, the nodes `Constant` are taken for constants here, so that a part of a graph
knows what is constant outside it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from rooftile.core.errors import InvalidModel, UnsupportedOp
from rooftile.frontends.onnx.bodies import captured
from rooftile.frontends.onnx.calls import Key
from rooftile.frontends.onnx.functions import Function, local_functions
from rooftile.frontends.onnx.inline import inlined
from rooftile.frontends.onnx.load import Loaded
from rooftile.frontends.onnx.nodes import node_names
from rooftile.frontends.onnx.order import in_order
from rooftile.frontends.onnx.sparse import to_dense
from rooftile.frontends.onnx.tensors import ELEMENT_TYPES, to_array
from rooftile.frontends.onnx.weights import array_of_weight, weights_of

STRING = 8
"""TensorProto.STRING."""


@dataclass(frozen=True)
class Result:
    """An output of a graph as it is annotated; None stands for a dim that is open."""

    shape: tuple[int | None, ...]
    dtype: str


class Context:
    """A graph inside `parent`, or the model's own. `label` is put in front of its node names."""

    def __init__(
        self, loaded: Loaded, graph: Any, parent: Context | None = None, label: str = ""
    ) -> None:
        self.loaded, self.graph, self.parent = loaded, graph, parent
        own = node_names(graph.node)
        names = [f"{label}/{name}" for name in own] if label else own
        self.functions: dict[Key, Function] = (
            parent.functions if parent else local_functions(loaded.proto)
        )
        self.nodes, self.names = inlined(graph.node, names, self.functions, loaded.opsets)
        self.inputs = tuple(item.name for item in graph.input if item.name not in self.weights)
        named = [item.name for item in graph.output]
        self.outputs = tuple(named if parent else dict.fromkeys(named))
        """By place for bodies; a model's own are asked for by name, each once."""
        self.inner: dict[int, Any] = {}
        """What was made of the bodies of the node at a place."""
        self._arrays: dict[str, Any] = {}
        self._check()

    @cached_property
    def weights(self) -> dict[str, Any]:
        """The initializers by name."""
        return weights_of(self.graph)

    @cached_property
    def constants(self) -> dict[str, Any]:
        """The nodes `Constant` by the name of what they give."""
        return {
            node.output[0]: node
            for node in self.nodes
            if node.op_type == "Constant" and node.domain in ("", "ai.onnx") and node.output
        }

    @property
    def results(self) -> tuple[Result, ...]:
        """What the file says of its outputs."""
        return tuple(
            Result(
                tuple(
                    extent.dim_value if extent.HasField("dim_value") else None
                    for extent in item.type.tensor_type.shape.dim
                ),
                ELEMENT_TYPES.get(item.type.tensor_type.elem_type, "f32"),
            )
            for item in self.graph.output
        )

    @cached_property
    def captured(self) -> tuple[str, ...]:
        """What it reads from the graphs around it."""
        return tuple(captured(self.graph))

    @cached_property
    def order(self) -> tuple[int, ...]:
        """The places of its nodes, each after what it reads; without those that are constants."""
        given = {*self.inputs, *self.weights, *self.captured}
        found = in_order(self.nodes, self.names, given)
        constant = {id(node) for node in self.constants.values()}
        return tuple(place for place in found if id(self.nodes[place]) not in constant)

    @cached_property
    def makers(self) -> dict[str, int]:
        """The place of the node that computes each value."""
        return {name: place for place in self.order for name in self.nodes[place].output if name}

    def constant(self, name: str) -> Any:
        """The array of a constant, of Python strings where it holds strings; None for others."""
        if name in self._arrays:
            return self._arrays[name]
        if name in self.weights:
            found = _weight(self.weights[name], self.loaded.folder)
        elif name in self.constants:
            found = constant_of(self.constants[name], self.loaded.folder)
        elif name in self.makers or name in self.inputs or self.parent is None:
            return None
        else:
            return self.parent.constant(name)
        self._arrays[name] = found
        return found

    def _check(self) -> None:
        known = {*self.inputs, *self.weights, *self.captured}
        known.update(name for node in self.nodes for name in node.output)
        for name in self.outputs:
            if name not in known:
                raise InvalidModel(f"output {name!r} is not computed by any node")


def _weight(proto: Any, folder: Path | None) -> Any:
    dense = not hasattr(proto, "indices")
    return array_of(proto, folder) if dense else array_of_weight(proto, folder)


def array_of(tensor: Any, folder: Path | None, name: str = "") -> Any:
    """The array in a TensorProto; strings as an array of objects."""
    if tensor.data_type != STRING:
        return to_array(tensor, folder, name)
    texts = [item.decode("utf-8", "replace") for item in tensor.string_data]
    shape = tuple(tensor.dims)
    if any(extent < 0 for extent in shape) or int(np.prod(shape, dtype=object)) != len(texts):
        raise InvalidModel(
            f"tensor {name or tensor.name} has shape {list(shape)} but {len(texts)} strings"
        )
    return np.array(texts, object).reshape(shape)


def constant_of(node: Any, folder: Path | None) -> Any:
    """What a node `Constant` gives."""
    for item in node.attribute:
        if item.name == "value":
            return array_of(item.t, folder, f"in node {node.name or node.output[0]}")
        if item.name == "sparse_value":
            return to_dense(item.sparse_tensor, folder)
        if item.name in ("value_float", "value_floats"):
            return np.array(item.f if item.name == "value_float" else item.floats, np.float32)
        if item.name in ("value_int", "value_ints"):
            return np.array(item.i if item.name == "value_int" else item.ints, np.int64)
        if item.name == "value_string":
            return np.array(item.s.decode("utf-8", "replace"), object)
        if item.name == "value_strings":
            return np.array([text.decode("utf-8", "replace") for text in item.strings], object)
    raise UnsupportedOp(f"node {node.name or node.output[0]} (Constant) holds no tensor")
