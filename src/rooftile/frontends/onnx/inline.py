"""Calls of a model's own functions replaced by the nodes of their bodies.

Only for models that run in steps: a step may then lie inside a function. Functions of other opsets
than the model's are left as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import onnx

from rooftile.core.errors import InvalidModel
from rooftile.frontends.onnx.calls import MAX_DEPTH, MAX_NODES, Key, key_of, shown
from rooftile.frontends.onnx.functions import Function, body_of

Rename = Callable[[str], str]


def inlined(
    nodes: Sequence[Any],
    names: Sequence[str],
    functions: Mapping[Key, Function],
    opsets: Mapping[str, int],
) -> tuple[list[Any], list[str]]:
    """The nodes and their names, calls replaced; InvalidModel for functions that never end."""
    done: list[Any] = []
    labels: list[str] = []
    stack = [(node, name, 0) for node, name in zip(nodes, names, strict=True)][::-1]
    while stack:
        node, name, depth = stack.pop()
        function = functions.get(key_of(node))
        if function is None or not _fits(function, opsets):
            done.append(node)
            labels.append(name)
            continue
        if depth >= MAX_DEPTH or len(done) + len(stack) > MAX_NODES:
            raise InvalidModel(
                f"node {name} ({node.op_type}): function {shown(function.key)} calls itself, or "
                "functions call functions without end"
            )
        body = _body(function, node, name)
        own = [f"{name}/{inner.name or f'{inner.op_type}_{n}'}" for n, inner in enumerate(body)]
        stack += [(n, label, depth + 1) for n, label in zip(body, own, strict=True)][::-1]
    return done, labels


def _fits(function: Function, opsets: Mapping[str, int]) -> bool:
    used = {"" if node.domain == "ai.onnx" else node.domain for node in function.nodes}
    return all(function.opsets.get(domain) == opsets.get(domain) for domain in used)


def _body(function: Function, node: Any, name: str) -> list[Any]:
    """The nodes of a call, their values renamed to those of the caller, or after the call."""
    if len(node.input) > len(function.inputs) or len(node.output) > len(function.outputs):
        raise InvalidModel(
            f"node {name} ({node.op_type}) has more inputs or outputs than its function"
        )
    given = dict(zip(function.inputs, node.input, strict=False))
    wanted = {
        formal: actual
        for formal, actual in zip(function.outputs, node.output, strict=False)
        if actual and formal not in given
    }

    def rename(own: str) -> str:
        return given.get(own) or wanted.get(own) or (f"{name}/{own}" if own else "")

    found = [_renamed(item, rename) for item in body_of(function, node)]
    for formal, actual in zip(function.outputs, node.output, strict=False):
        if actual and formal in given:
            found.append(onnx.helper.make_node("Identity", [given[formal]], [actual]))
    return found


def _renamed(node: Any, rename: Rename) -> Any:
    result = onnx.NodeProto()
    result.CopyFrom(node)
    result.input[:] = [rename(name) for name in node.input]
    result.output[:] = [rename(name) for name in node.output]
    for item in result.attribute:
        for graph in (*([item.g] if item.HasField("g") else []), *item.graphs):
            inner = [_renamed(own, rename) for own in graph.node]
            del graph.node[:]
            graph.node.extend(inner)
            sparse = (item.values for item in graph.sparse_initializer)
            for info in (*graph.input, *graph.output, *graph.initializer, *sparse):
                info.name = rename(info.name)
    return result
