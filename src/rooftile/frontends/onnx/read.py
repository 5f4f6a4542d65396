"""The reader's driver: inputs bound, weights taken, nodes in order, each handed to its reader."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import rooftile.frontends.onnx.families  # noqa: F401  (registers every reader)
from rooftile.core.errors import InvalidInput, InvalidModel, UnsupportedOp
from rooftile.frontends.onnx.call import Call, Result
from rooftile.frontends.onnx.load import Loaded, Model, load
from rooftile.frontends.onnx.order import in_order
from rooftile.frontends.onnx.registry import find
from rooftile.frontends.onnx.signature import Argument, signature_of
from rooftile.frontends.onnx.tensors import element_type, to_array
from rooftile.ir.graph import Graph, Value
from rooftile.ops.builder import Builder

Shapes = Mapping[str, Sequence[int]]


def read(model: Model, shapes: Shapes | None = None) -> Graph:
    """The model as canonical ops.

    `shapes` gives whole shapes of inputs by name, needed where the file leaves dims open. Inputs
    keep their names, outputs are computed by nodes of their names, in the order of the file.
    """
    return _Reader(load(model), shapes or {}).read()


class _Reader:
    def __init__(self, loaded: Loaded, shapes: Shapes) -> None:
        self.loaded = loaded
        self.graph = loaded.proto.graph
        self.shapes = shapes
        self.builder = Builder()
        self.known: dict[str, Value] = {}

    def read(self) -> Graph:
        """The whole graph."""
        self._inputs()
        self._weights()
        nodes = self.graph.node
        names = node_names(nodes)
        self.builder.reserve(item.name for item in self.graph.output)
        for number in in_order(nodes, names, self.known):
            self.builder.origin = (names[number],)
            self._node(nodes[number], names[number])
        self.builder.origin = ()
        return self.builder.finish(self.graph.name or "model", self._outputs())

    def _inputs(self) -> None:
        found = signature_of(self.loaded.proto).inputs
        unknown = sorted(set(self.shapes) - {item.name for item in found})
        if unknown:
            raise InvalidModel(
                f"shapes are given for {', '.join(unknown)}; "
                f"the inputs are {', '.join(item.name for item in found)}"
            )
        symbols = _symbols(found, self.shapes)
        bound = {item.name: _bound(item, self.shapes, symbols) for item in found}
        open_dims = {name: shape for name, shape in bound.items() if None in shape}
        if open_dims:
            raise InvalidModel(_ask(found, open_dims))
        codes = {item.name: item.type.tensor_type.elem_type for item in self.graph.input}
        for item in found:
            if item.name in self.known:
                raise InvalidModel(f"input {item.name!r} is declared twice; rename one")
            if not item.type.startswith("tensor("):
                raise UnsupportedOp(f"input {item.name} is a {item.type}; only tensors can be read")
            dtype = element_type(codes[item.name], f"input {item.name}")
            shape = [extent for extent in bound[item.name] if extent is not None]
            self.known[item.name] = self.builder.input(item.name, shape, dtype)

    def _weights(self) -> None:
        if self.graph.sparse_initializer:
            raise UnsupportedOp("the model has sparse initializers; make them dense")
        for tensor in self.graph.initializer:
            if tensor.name in self.known:
                raise InvalidModel(f"initializer {tensor.name!r} is declared twice; rename one")
            array = to_array(tensor, self.loaded.folder)
            self.known[tensor.name] = self.builder.constant(array, _plain(tensor.name))

    def _node(self, node: Any, name: str) -> None:
        domain = "" if node.domain == "ai.onnx" else node.domain
        opset = self.loaded.opsets.get(domain)
        if opset is None:
            raise InvalidModel(
                f"node {name} ({node.op_type}) is of domain {node.domain or 'ai.onnx'!r}, "
                "which the model does not import; add it to opset_import"
            )
        reader = find(domain, node.op_type, opset)
        if reader is None:
            raise UnsupportedOp(
                f"node {name}: op {node.op_type} of {domain or 'ai.onnx'} opset {opset} "
                "is not supported"
            )
        inputs = [self.known[item] if item else None for item in node.input]
        call = Call(node, name, opset, inputs, self.builder, self.loaded.folder)
        try:
            result = reader(call)
        except (InvalidModel, InvalidInput) as error:
            message = str(error)
            raise InvalidModel(
                message if message.startswith("node ") else f"{call.where}: {message}"
            ) from error
        if call.leftover():
            call.unsupported(f"attribute {', '.join(call.leftover())}")
        self._name_outputs(node, call, result)

    def _name_outputs(self, node: Any, call: Call, result: Result) -> None:
        values = (result,) if isinstance(result, Value) else result
        for number, name in enumerate(node.output):
            if name and number >= len(values):
                call.unsupported(f"output {number} ({name})")
            if name:
                self.known[name] = values[number]

    def _outputs(self) -> dict[str, Value]:
        found: dict[str, Value] = {}
        given = {value.name for value in self.builder.inputs}
        for item in self.graph.output:
            if item.name not in self.known:
                raise InvalidModel(f"output {item.name!r} is not computed by any node")
            if item.name in found or item.name in given:
                raise InvalidModel(
                    f"output {item.name!r} is declared twice, or is an input; rename it"
                )
            found[item.name] = self.known[item.name]
        return found


def node_names(nodes: Sequence[Any]) -> list[str]:
    """The names of the nodes; a nameless one is called after its op and its number."""
    taken = {node.name for node in nodes}
    names: list[str] = []
    for number, node in enumerate(nodes):
        name = node.name or f"{node.op_type}_{number}"
        while not node.name and name in taken:
            name += "_"
        names.append(name)
    return names


def _plain(name: str) -> str:
    """A name without characters that would be hard to read in a printed graph."""
    return re.sub(r"[^\w.:/-]", "_", name)[:200] or "const"


def _symbols(inputs: Sequence[Argument], shapes: Shapes) -> dict[str, int]:
    """Values of symbols that the given shapes fix; a symbol with two values fixes nothing."""
    found: dict[str, set[int]] = {}
    for item in inputs:
        for dim, extent in zip(item.shape, shapes.get(item.name, ()), strict=False):
            if isinstance(dim, str):
                found.setdefault(dim, set()).add(int(extent))
    return {name: min(values) for name, values in found.items() if len(values) == 1}


def _bound(item: Argument, shapes: Shapes, symbols: Mapping[str, int]) -> list[int | None]:
    given = shapes.get(item.name)
    if given is None:
        return [symbols.get(dim) if isinstance(dim, str) else dim for dim in item.shape]
    fits = len(given) == len(item.shape) and all(
        int(extent) >= 0 and (not isinstance(dim, int) or dim in (0, int(extent)))
        for dim, extent in zip(item.shape, given, strict=True)
    )
    if not fits:
        raise InvalidModel(
            f"shape {list(given)} does not fit input {item.name}, which is {_shown(item.shape)}"
        )
    return [int(extent) for extent in given]


def _ask(inputs: Sequence[Argument], missing: Mapping[str, Sequence[int | None]]) -> str:
    shown = [f"{item.name} {_shown(item.shape)}" for item in inputs if item.name in missing]
    return (
        f"the model leaves dims open: give `shapes` for {'; '.join(shown)}, "
        f"for example shapes={{{next(iter(missing))!r}: (...)}}"
    )


def _shown(shape: Sequence[object]) -> str:
    return "[" + ", ".join("?" if dim is None else str(dim) for dim in shape) + "]"
