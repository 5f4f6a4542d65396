"""Graph IR: what a model computes. SSA over named tensors, a small set of canonical ops.

The records know nothing of the ops: `rooftile.ops` gives each op its meaning.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from rooftile.core.affine import Affine, Dim
from rooftile.core.dtype import DType, from_numpy
from rooftile.core.errors import InvalidIR
from rooftile.core.symbolic import Sym, Symbols

Array = npt.NDArray[Any]
Attr = Any
"""int, float, bool, str, None, a tuple of these, or a `Graph` (bodies of control flow)."""


@dataclass(frozen=True)
class Value:
    """A tensor: its name, its shape (ints, or affine in symbols) and its element type."""

    name: str
    shape: tuple[Dim, ...]
    dtype: DType

    @property
    def rank(self) -> int:
        """How many dims it has."""
        return len(self.shape)

    @property
    def dims(self) -> tuple[int, ...]:
        """The shape as integers, of which some may be symbols (`rooftile.core.symbolic`).

        InvalidIR for dims that a text gave as names: they stand for no values.
        """
        for extent in self.shape:
            if isinstance(extent, Affine):
                raise InvalidIR(f"%{self.name}: dim {extent} is symbolic here; bind it first")
        return self.shape  # type: ignore[return-value]


@dataclass(frozen=True)
class Node:
    """One canonical op. `inputs` are value names, `origin` the nodes of the model it came from."""

    op: str
    inputs: tuple[str, ...]
    outputs: tuple[Value, ...]
    attrs: tuple[tuple[str, Attr], ...] = ()
    origin: tuple[str, ...] = ()

    @property
    def output(self) -> Value:
        """The output of a node that has one."""
        return self.outputs[0]

    @property
    def name(self) -> str:
        """A node goes by the name of its first output."""
        return self.outputs[0].name

    def attr(self, name: str, default: Attr = None) -> Attr:
        """The attribute `name`, or the default."""
        return dict(self.attrs).get(name, default)


def attrs(**values: Attr) -> tuple[tuple[str, Attr], ...]:
    """Attributes in the form a Node holds: sorted, lists as tuples."""
    return tuple(sorted((name, _frozen(value)) for name, value in values.items()))


def _frozen(value: Attr) -> Attr:
    if isinstance(value, (list, tuple)):
        return tuple(_frozen(item) for item in value)
    return value.item() if isinstance(value, np.generic) else value


@dataclass(frozen=True, eq=False)
class Graph:
    """A model, or the body of a control-flow op. `outputs` name values; nodes are in order."""

    name: str
    inputs: tuple[Value, ...]
    nodes: tuple[Node, ...]
    outputs: tuple[str, ...]
    constants: Mapping[str, Array] = field(default_factory=dict)

    @cached_property
    def values(self) -> Mapping[str, Value]:
        """Every value by name: inputs, constants and node outputs."""
        found = {value.name: value for value in self.inputs}
        for name, array in self.constants.items():
            found[name] = Value(name, tuple(array.shape), from_numpy(array.dtype))
        for node in self.nodes:
            found.update((value.name, value) for value in node.outputs)
        return found

    @cached_property
    def producers(self) -> Mapping[str, Node]:
        """The node that computes each value that is neither input nor constant."""
        return {value.name: node for node in self.nodes for value in node.outputs}

    @cached_property
    def consumers(self) -> Mapping[str, tuple[Node, ...]]:
        """The nodes that read each value, in order, each once."""
        found: dict[str, list[Node]] = {name: [] for name in self.values}
        for node in self.nodes:
            for name in dict.fromkeys(node.inputs):
                found[name].append(node)
        return {name: tuple(nodes) for name, nodes in found.items()}

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Graph):
            return NotImplemented
        mine = (self.name, self.inputs, self.nodes, self.outputs, set(self.constants))
        theirs = (other.name, other.inputs, other.nodes, other.outputs, set(other.constants))
        return mine == theirs and all(
            _same_array(array, other.constants[name]) for name, array in self.constants.items()
        )

    __hash__ = None  # type: ignore[assignment]

    def with_nodes(
        self, nodes: Iterable[Node], constants: Mapping[str, Array] | None = None
    ) -> Graph:
        """The graph with other nodes, and other constants where given."""
        kept = self.constants if constants is None else constants
        return replace(self, nodes=tuple(nodes), constants=dict(kept))


def _same_array(a: Array, b: Array) -> bool:
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


@dataclass(frozen=True)
class Region:
    """A convex set of nodes that one kernel computes.

    `inputs` are read from memory, `outputs` written to it; `choice` holds the algorithm's options
    (staging, packing, split).
    """

    name: str
    nodes: tuple[Node, ...]
    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]
    choice: tuple[tuple[str, Attr], ...] = ()

    @property
    def root(self) -> Node:
        """The node that computes the (first) output."""
        return next(node for node in self.nodes if self.outputs[0] in node.outputs)

    @property
    def origin(self) -> tuple[str, ...]:
        """The nodes of the model that it computes, each once."""
        return tuple(dict.fromkeys(name for node in self.nodes for name in node.origin))


def symbols_in(values: Iterable[Value]) -> Symbols | None:
    """The symbols that the shapes of values are made of; None where all dims are numbers."""
    for value in values:
        for extent in value.shape:
            if isinstance(extent, Sym):
                return extent.symbols
    return None


def walk(graph: Graph) -> Iterator[Graph]:
    """The graph and the bodies inside it."""
    yield graph
    for node in graph.nodes:
        for _, value in node.attrs:
            if isinstance(value, Graph):
                yield from walk(value)


def verify(graph: Graph) -> Graph:
    """The graph itself; InvalidIR where SSA order, names or outputs are broken."""
    known = {value.name for value in graph.inputs} | set(graph.constants)
    if len(known) != len(graph.inputs) + len(graph.constants):
        raise InvalidIR(f"{graph.name}: an input or constant is named twice")
    for node in graph.nodes:
        for name in node.inputs:
            if name not in known:
                raise InvalidIR(f"{graph.name}: %{node.name} reads %{name} before it is computed")
        for value in node.outputs:
            if value.name in known:
                raise InvalidIR(f"{graph.name}: %{value.name} is computed twice")
            known.add(value.name)
    for name in graph.outputs:
        if name not in known:
            raise InvalidIR(f"{graph.name}: output %{name} is never computed")
    return graph
