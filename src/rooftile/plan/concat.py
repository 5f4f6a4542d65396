"""Concat without copying: its inputs are computed straight into parts of its buffer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace

from rooftile.core.journal import Journal
from rooftile.core.symbolic import symbolic
from rooftile.ir.graph import Graph, Node, attrs
from rooftile.ops import OPS
from rooftile.ops.reshape import nested
from rooftile.plan.partition import is_alone


@dataclass(frozen=True)
class Part:
    """A value that lives inside `buffer` (a concat's output), from `start` on."""

    buffer: str
    start: tuple[int, ...]


def place_concats(graph: Graph, journal: Journal) -> tuple[Graph, Mapping[str, Part]]:
    """The graph, with copies where an input cannot be computed in place, and who lives where."""
    uses = Counter(name for node in graph.nodes if node.op == "concat" for name in node.inputs)
    nodes: list[Node] = []
    parts: dict[str, Part] = {}
    for node in graph.nodes:
        if node.op != "concat":
            nodes.append(node)
            continue
        axis = node.attr("axis")
        offset = 0
        inputs = []
        for number, name in enumerate(node.inputs):
            reason = _why_not(graph, name, uses[name], axis)
            if reason:
                journal.add("copies", (name, node.name), "copied", reason)
                nodes.append(_copy(graph, name, f"{node.name}.{number}", node.origin))
                name = nodes[-1].name
            value = graph.values.get(name) or nodes[-1].output
            parts[name] = Part(
                node.name, tuple(offset if d == axis else 0 for d in range(value.rank))
            )
            offset += value.dims[axis]
            inputs.append(name)
        nodes.append(replace(node, inputs=tuple(inputs)))
    return graph.with_nodes(nodes), parts


def _why_not(graph: Graph, name: str, uses: int, axis: int) -> str:
    """Why a value cannot be computed inside the buffer; empty where it can."""
    producer = graph.producers.get(name)
    if producer is None:
        return "it is an input or a constant: it lies in memory of its own"
    if producer.op == "concat":
        return "it is a concat itself"
    if any(_is_flat(graph, node) for node in (producer, *graph.consumers[name])):
        return "it is reshaped to dims that are not parts of its own: only whole buffers are"
    open_part = symbolic((graph.values[name].dims[axis],))
    if open_part and producer.op == "reshape":
        return "it is reshaped, and only a run knows the strides that it would have as a part"
    if any(map(is_alone, (producer, *graph.consumers[name]))):
        return f"it is a whole tensor in memory for {producer.op}"
    if OPS[producer.op].program is not None:
        return "it is computed step by step, in memory of its own"
    if name in graph.outputs:
        return "it is an output of the model: it lies in memory of the caller"
    if uses > 1:
        return "it is part of more than one concat"
    if any(_gathers(user, name, axis) for user in graph.consumers[name]):
        return "it is gathered from: the bounds of its indices are those of a buffer of its own"
    return ""


def _is_flat(graph: Graph, node: Node) -> bool:
    """Whether a node is a reshape that can only copy whole memory in order."""
    return node.op == "reshape" and not nested(graph.values[node.inputs[0]].dims, node.output.dims)


def _gathers(node: Node, name: str, axis: int) -> bool:
    """Whether a node picks elements of a value along an axis by computed indices."""
    return OPS[node.op].kind == "gather" and name in node.inputs and node.attr("axis", axis) == axis


def _copy(graph: Graph, name: str, new: str, origin: tuple[str, ...]) -> Node:
    while new in graph.values:
        new += "_"
    value = replace(graph.values[name], name=new)
    return Node("reshape", (name,), (value,), attrs(shape=value.dims), origin)
