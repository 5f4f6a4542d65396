"""Functions: bodies of nodes, from the model itself or from the schemas of ONNX, to read inline.

An op without a reader of its own is read as the nodes of its body. Bodies are read in a scope of
their own, so their names never meet those of the model.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import onnx
from onnx import defs, helper

from rooftile.core.errors import InvalidModel
from rooftile.frontends.onnx.calls import Key, check_calls, shown
from rooftile.frontends.onnx.tensors import ELEMENT_TYPES
from rooftile.ir.graph import Value

MAX_OPSET = (1 << 31) - 1
"""What a schema can be asked for; files may hold larger numbers."""
_CODES = {dtype: code for code, dtype in ELEMENT_TYPES.items()}


@dataclass(frozen=True)
class Function:
    """A body: `defaults` are the attributes of callers that leave them out, by name."""

    key: Key
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    nodes: tuple[Any, ...]
    opsets: Mapping[str, int]
    defaults: Mapping[str, Any]


def local_functions(proto: Any) -> dict[Key, Function]:
    """The functions that a ModelProto defines.

    InvalidModel where one is defined twice, calls itself, or comes to too many nodes.
    """
    found: dict[Key, Function] = {}
    outer = _opsets(proto.opset_import)
    for item in proto.functions:
        function = _function(item, {}, outer)
        if function.key in found:
            raise InvalidModel(f"function {shown(function.key)} is defined twice; rename one")
        found[function.key] = function
    if found:
        check_calls(proto.graph.node, found)
    return found


def standard_function(
    node: Any, domain: str, opsets: Mapping[str, int], inputs: Sequence[Value | None]
) -> Function | None:
    """The body that ONNX's schema of the op gives for these inputs; None where it gives none."""
    opset = opsets[domain]
    try:
        schema = defs.get_schema(node.op_type, max(0, min(opset, MAX_OPSET)), domain)
    except defs.SchemaError:
        return None
    raw = _nearest(schema.function_opset_versions, opset)
    if raw is not None:
        text = schema.get_function_with_opset_version(raw)
    else:
        raw = _nearest(schema.context_dependent_function_opset_versions, opset)
        if raw is None:
            return None
        types = [_type_of(value) for value in inputs]
        try:
            text = schema.get_context_dependent_function_with_opset_version(
                raw, node.SerializeToString(), types
            )
        except Exception as error:  # whatever onnx's C++ throws at a damaged node
            raise InvalidModel(
                f"node {node.name or node.output[:1]} ({node.op_type}) does not fit its function: "
                f"{error}"
            ) from error
    if not text:
        return None
    proto = onnx.FunctionProto()
    proto.ParseFromString(text)
    defaults = {
        name: item.default_value for name, item in schema.attributes.items() if not item.required
    }
    given = {name: value for name, value in defaults.items() if value.name}
    return _function(proto, given, {"": defs.onnx_opset_version(), **opsets})


def has_function(domain: str, op: str, opset: int) -> bool:
    """Whether ONNX's schema of an op gives a body, for some inputs at least."""
    try:
        schema = defs.get_schema(op, max(0, min(opset, MAX_OPSET)), domain)
    except defs.SchemaError:
        return False
    return bool(schema.has_function or schema.has_context_dependent_function)


def body_of(function: Function, node: Any) -> tuple[Any, ...]:
    """The nodes that compute what the caller `node` uses, with its attributes put in.

    Inputs that the caller leaves out are left out of them too.
    """
    missing = {
        name
        for number, name in enumerate(function.inputs)
        if number >= len(node.input) or not node.input[number]
    }
    attributes = dict(function.defaults)
    attributes.update((item.name, item) for item in node.attribute)
    wanted = {name for name, used in zip(function.outputs, node.output, strict=False) if used}
    return tuple(_instance(item, attributes, missing) for item in _needed(function.nodes, wanted))


def _function(proto: Any, defaults: Mapping[str, Any], outer: Mapping[str, int]) -> Function:
    own = {item.name: item for item in proto.attribute_proto}
    return Function(
        (_domain(proto.domain), proto.name, proto.overload),
        tuple(proto.input),
        tuple(proto.output),
        tuple(proto.node),
        {**outer, **_opsets(proto.opset_import)},
        {**defaults, **own},
    )


def _needed(nodes: Sequence[Any], wanted: set[str]) -> list[Any]:
    """The nodes, in order, that the wanted names depend on."""
    producers = {name: number for number, node in enumerate(nodes) for name in node.output if name}
    left, kept = list(wanted), set()
    while left:
        number = producers.get(left.pop())
        if number is not None and number not in kept:
            kept.add(number)
            left += _reads(nodes[number])
    return [nodes[number] for number in sorted(kept)]


def _reads(node: Any) -> Iterator[str]:
    """Every name that a node reads, also inside the graphs that it holds."""
    yield from node.input
    for item in node.attribute:
        for graph in (item.g, *item.graphs):
            yield from (name for inner in graph.node for name in _reads(inner))
            yield from (output.name for output in graph.output)


def _instance(node: Any, attributes: Mapping[str, Any], missing: set[str]) -> Any:
    result = onnx.NodeProto()
    result.CopyFrom(node)
    if missing:
        for number, name in enumerate(node.input):
            if name in missing:
                result.input[number] = ""
    del result.attribute[:]
    for item in node.attribute:
        if item.ref_attr_name:
            given = attributes.get(item.ref_attr_name)
            if given is not None:
                result.attribute.add().CopyFrom(given)
                result.attribute[-1].name = item.name
            continue
        kept = result.attribute.add()
        kept.CopyFrom(item)
        for graph in (kept.g, *kept.graphs) if item.HasField("g") or item.graphs else ():
            nodes = [_instance(inner, attributes, missing) for inner in graph.node]
            del graph.node[:]
            graph.node.extend(nodes)
    return result


def _nearest(versions: Sequence[int], opset: int) -> int | None:
    """The newest body that is not newer than the opset, else the oldest: all mean the same."""
    older = [version for version in versions if version <= opset]
    return max(older) if older else min(versions, default=None)


def _type_of(value: Value | None) -> bytes:
    if value is None:
        return b""
    dims = [extent if isinstance(extent, int) else None for extent in value.shape]
    return bytes(helper.make_tensor_type_proto(_CODES[value.dtype], dims).SerializeToString())


def _opsets(imports: Any) -> dict[str, int]:
    return {_domain(item.domain): int(item.version) for item in imports}


def _domain(name: str) -> str:
    return "" if name == "ai.onnx" else name
