"""Nodes in order, each handed to its reader, or read as the nodes of its function body."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from rooftile.core.errors import (
    InvalidInput,
    InvalidModel,
    NeedsValue,
    UnsupportedOp,
    UnsupportedType,
)
from rooftile.frontends.onnx.bodies import captured
from rooftile.frontends.onnx.call import Call, Enter, Result
from rooftile.frontends.onnx.calls import MAX_DEPTH, MAX_NODES, Key, key_of, shown
from rooftile.frontends.onnx.functions import Function, body_of, standard_function
from rooftile.frontends.onnx.narrow import MOVES, NARROW, READERS, code_of, widened
from rooftile.frontends.onnx.needs import explained
from rooftile.frontends.onnx.order import in_order
from rooftile.frontends.onnx.registry import Reader, find
from rooftile.frontends.onnx.weights import array_of_weight, weights_of
from rooftile.ir.graph import Array, Value
from rooftile.ops.builder import Builder
from rooftile.ops.scan_builder import ScanBuilder

_DAMAGE = (ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError)
"""What a reader may run into where a file holds what no exporter writes."""


@dataclass
class Scope:
    """Where nodes stand: the values that names stand for, and the opsets that the nodes are of.

    `within` names the function bodies around them, outermost first.
    """

    known: dict[str, Value]
    opsets: Mapping[str, int]
    within: tuple[Key, ...] = field(default=())


class NodeReader:
    """Reads nodes into a builder."""

    def __init__(
        self, builder: Builder, folder: Path | None, functions: Mapping[Key, Function]
    ) -> None:
        self.builder = builder
        self.folder = folder
        self.functions = functions
        self.expanded = Counter[str]()
        self.narrow: dict[str, int] = {}
        """The TensorProto.DataType of values that are held in a wider type, by their names."""

    def model(self, nodes: Sequence[Any], scope: Scope, order: Sequence[int] | None = None) -> None:
        """The nodes of a model, or those of `order`: each is the origin of what it becomes."""
        names = node_names(nodes)
        for number in in_order(nodes, names, scope.known) if order is None else order:
            self.builder.origin = (names[number],)
            try:
                self.node(nodes[number], names[number], scope)
            except (UnsupportedOp, UnsupportedType) as error:
                error.at = number
                if isinstance(error, NeedsValue):
                    explained(error, scope.known, self.builder)
                raise
        self.builder.origin = ()

    def body(
        self, graph: Any, inputs: Sequence[Value], scope: Scope, label: str
    ) -> tuple[Value, ...]:
        """The outputs of a body, whose nodes see the names of the graphs around it."""
        names = [f"{label}/{own}" for own in node_names(graph.node)]
        self._count(len(names), f"node {label}")
        own = {name for node in graph.node for name in node.output}
        known = {name: value for name, value in scope.known.items() if name not in own}
        known.update((item.name, value) for item, value in zip(graph.input, inputs, strict=True))
        for name, proto in weights_of(graph).items():
            known[name] = self.constant(array_of_weight(proto, self.folder))
        inner = Scope(known, scope.opsets, scope.within)
        for number in in_order(graph.node, names, known):
            self.node(graph.node[number], names[number], inner)
        for item in graph.output:
            if item.name not in known:
                raise InvalidModel(f"node {label}: output {item.name!r} is not computed")
        return tuple(known[item.name] for item in graph.output)

    def node(self, node: Any, name: str, scope: Scope) -> None:
        """One node, whose inputs are known; its outputs become known."""
        domain = "" if node.domain == "ai.onnx" else node.domain
        opset = scope.opsets.get(domain)
        key = key_of(node)
        reader = None if opset is None else find(domain, node.op_type, opset)
        if reader is None and key in self.functions:
            self._expand(self.functions[key], node, name, scope)
        elif opset is None:
            raise InvalidModel(
                f"node {name} ({node.op_type}) is of domain {node.domain or 'ai.onnx'!r}, "
                "which the model does not import; add it to opset_import"
            )
        elif reader is not None:
            self._call(reader, node, name, opset, scope)
        else:
            inputs = [scope.known[item] if item else None for item in node.input]
            function = standard_function(node, domain, scope.opsets, inputs)
            if function is None:
                raise UnsupportedOp(
                    f"node {name}: op {node.op_type} of {domain or 'ai.onnx'} opset {opset} "
                    "is not supported"
                )
            self._expand(function, node, name, scope)

    def constant(self, array: Array, hint: str = "const") -> Value:
        """A constant of any element type."""
        return self.stands_for(self.builder.constant(widened(array), hint), code_of(array))

    def stands_for(self, value: Value, code: int) -> Value:
        """The value itself, noted as one of a narrow type if the code is of one."""
        if code in NARROW:
            self.narrow[value.name] = code
        return value

    def _check_narrow(self, call: Call) -> None:
        """UnsupportedType for ops that would take the values for those of the wider type."""
        known = MOVES | READERS
        for value in call.inputs:
            if value is not None and value.name in self.narrow and call.node.op_type not in known:
                name = NARROW[self.narrow[value.name]].name
                raise UnsupportedType(f"{call.where} on {name} is not supported; cast it first")

    def _call(self, reader: Reader, node: Any, name: str, opset: int, scope: Scope) -> None:
        inputs = [scope.known[item] if item else None for item in node.input]
        enter = self._enter(scope)
        call = Call(node, name, opset, inputs, self.builder, self.folder, enter, self.narrow)
        if self.narrow:
            self._check_narrow(call)
        try:
            result = reader(call)
        except (InvalidModel, InvalidInput) as error:
            message = str(error)
            raise InvalidModel(
                message if message.startswith("node ") else f"{call.where}: {message}"
            ) from error
        except _DAMAGE as error:
            raise InvalidModel(
                f"{call.where} cannot be read, its attributes or inputs are damaged: "
                f"{type(error).__name__}: {error}"
            ) from error
        except MemoryError as error:
            raise InvalidModel(
                f"{call.where} asks for more memory than there is: {error}"
            ) from error
        if call.leftover():
            call.unsupported(f"attribute {', '.join(call.leftover())}")
        _name_outputs(node, call, result, scope)
        if self.narrow and node.op_type in MOVES and inputs and inputs[0] is not None:
            for value in (result,) if isinstance(result, Value) else result:
                self.stands_for(value, self.narrow.get(inputs[0].name, 0))

    def _expand(self, function: Function, node: Any, name: str, scope: Scope) -> None:
        """The nodes of the function's body, read in a scope that holds its inputs alone."""
        self._check_depth(function, node, name, scope)
        inputs = zip(function.inputs, node.input, strict=False)
        known = {formal: scope.known[actual] for formal, actual in inputs if actual}
        inner = Scope(known, function.opsets, (*scope.within, function.key))
        nodes = body_of(function, node)
        self._count(len(nodes), f"node {name} ({node.op_type})")
        names = [f"{name}/{own}" for own in node_names(nodes)]
        for number in in_order(nodes, names, known):
            self.node(nodes[number], names[number], inner)
        for formal, actual in zip(function.outputs, node.output, strict=False):
            if actual and formal not in known:
                raise InvalidModel(
                    f"node {name} ({node.op_type}): output {formal!r} is not computed by its "
                    "function"
                )
            if actual:
                scope.known[actual] = known[formal]

    def _enter(self, scope: Scope) -> Enter:
        def enter(
            graph: Any, inputs: Sequence[Value], label: str, scan: ScanBuilder | None
        ) -> tuple[Value, ...]:
            if scan is None:
                return self.body(graph, inputs, scope, label)
            reader = copy(self)
            reader.builder = scan.body
            names = [name for name in captured(graph) if name in scope.known]
            seen = {name: scan.capture(scope.known[name]) for name in names}
            return reader.body(graph, inputs, replace(scope, known=seen), label)

        return enter

    def _count(self, nodes: int, where: str) -> None:
        self.expanded["nodes"] += nodes  # shared with the readers of bodies, whatever they give
        if self.expanded["nodes"] > MAX_NODES:
            raise InvalidModel(
                f"{where}: the functions and bodies of the model come to more than "
                f"{MAX_NODES} nodes"
            )

    def _check_depth(self, function: Function, node: Any, name: str, scope: Scope) -> None:
        where = f"node {name} ({node.op_type})"
        if len(scope.within) >= MAX_DEPTH:
            raise InvalidModel(f"{where}: functions call functions more than {MAX_DEPTH} deep")
        for what, mine, theirs in (
            ("inputs", node.input, function.inputs),
            ("outputs", node.output, function.outputs),
        ):
            if len(mine) > len(theirs):
                raise InvalidModel(
                    f"{where}: it has {len(mine)} {what}, "
                    f"function {shown(function.key)} has {len(theirs)}"
                )


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


def _name_outputs(node: Any, call: Call, result: Result, scope: Scope) -> None:
    values = (result,) if isinstance(result, Value) else result
    for number, name in enumerate(node.output):
        if name and number >= len(values):
            call.unsupported(f"output {number} ({name})")
        if name:
            scope.known[name] = values[number]
