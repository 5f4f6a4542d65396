"""Which functions call which, looked over before any is expanded: a small file of functions that
call one another ten times each can stand for more nodes than there are atoms."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from rooftile.core.errors import InvalidModel
from rooftile.frontends.onnx.bodies import bodies

Key = tuple[str, str, str]
"""Domain, name and overload of a function."""
MAX_NODES = 100_000
"""How many nodes all bodies of a model may come to."""
MAX_DEPTH = 64
"""How deep functions may call functions."""


class HasNodes(Protocol):
    """A function, as far as its calls matter."""

    @property
    def nodes(self) -> Sequence[Any]:
        """The nodes of its body."""


@dataclass(frozen=True)
class _Size:
    """What a call comes to: `nodes` in all, and how `deep` its calls go."""

    nodes: int
    deep: int


def check_calls(nodes: Sequence[Any], functions: Mapping[Key, HasNodes]) -> None:
    """InvalidModel where a function that the nodes call calls itself, or grows without bound."""
    sizes: dict[Key, _Size] = {}
    total = 0
    for node in _every(nodes):
        if key_of(node) in functions:
            size = _size(key_of(node), functions, sizes)
            where = f"node {node.name or node.op_type} ({node.op_type})"
            if size.deep > MAX_DEPTH:
                raise InvalidModel(f"{where}: functions call functions more than {MAX_DEPTH} deep")
            total += size.nodes
            if total > MAX_NODES:
                raise InvalidModel(
                    f"{where}: the functions of the model come to more than {MAX_NODES} nodes"
                )


def key_of(node: Any) -> Key:
    """The function that a node calls, if there is one."""
    return "" if node.domain == "ai.onnx" else node.domain, node.op_type, node.overload


def shown(key: Key) -> str:
    """A function as messages show it."""
    domain, name, overload = key
    return f"{domain or 'ai.onnx'}.{name}" + (f":{overload}" if overload else "")


def _size(first: Key, functions: Mapping[Key, HasNodes], sizes: dict[Key, _Size]) -> _Size:
    """The size of one function; those that it calls are measured before it."""
    stack, waiting = [first], set()
    while stack:
        key = stack[-1]
        every = list(_every(functions[key].nodes)) if key not in sizes else []
        called = [inner for inner in map(key_of, every) if inner in functions]
        missing = [inner for inner in dict.fromkeys(called) if inner not in sizes]
        if key in sizes or not missing:
            stack.pop()
            waiting.discard(key)
            known = [sizes[inner] for inner in called]
            nodes = len(every) + sum(size.nodes for size in known)
            size = _Size(nodes, 1 + max((size.deep for size in known), default=0))
            sizes.setdefault(key, size)
            continue
        waiting.add(key)
        for inner in missing:
            if inner in waiting:
                raise InvalidModel(f"function {shown(inner)} calls itself")
        stack += missing
    return sizes[first]


def _every(nodes: Sequence[Any]) -> Iterator[Any]:
    """The nodes, and those of the graphs inside them."""
    left = list(reversed(nodes))
    while left:
        node = left.pop()
        yield node
        left += reversed([inner for graph in bodies(node) for inner in graph.node])
