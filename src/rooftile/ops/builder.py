"""A graph under construction: emits canonical ops, infers their types, folds constants."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from rooftile.core.dtype import from_numpy, itemsize, to_numpy
from rooftile.core.dtype import kind as dtype_kind
from rooftile.core.errors import InvalidInput, InvalidModel
from rooftile.core.symbolic import Sym, hint, symbolic
from rooftile.ir.graph import Array, Graph, Node, Value, attrs, verify
from rooftile.ops.base import OPS, Type
from rooftile.ops.extents import as_array, fold_extents

SMALL = 1 << 20
"""Constants of up to this many bytes are folded even where they are larger than their inputs."""
FOLD_BUDGET = 1 << 32
"""Flops plus bytes that one builder spends on folding larger constants."""
MAX_RANK = 32
MAX_BYTES = 1 << 40
"""No tensor of a sane model is larger: one terabyte."""


class Builder:
    """Nodes in order, with the constants that they read.

    `origin` is given to every node emitted until it is set anew. Names are made of the op and a
    number, and never collide with those of `graph`, which the builder may start from.
    """

    def __init__(self, graph: Graph | None = None) -> None:
        self.nodes: list[Node] = []
        self.inputs: list[Value] = list(graph.inputs) if graph else []
        self.constants: dict[str, Array] = dict(graph.constants) if graph else {}
        self.extents: dict[str, Array] = {}
        """Arrays of ints and symbols, under the names of the i64 values that they stand for."""
        self.values: dict[str, Value] = {}
        self.origin: tuple[str, ...] = ()
        self._data: dict[str, Value] = {}
        self._taken: set[str] = set(graph.values) if graph else set()
        self._counts: dict[str, int] = {}
        self._budget = FOLD_BUDGET
        for value in self.inputs:
            self.values[value.name] = value
        for name, array in self.constants.items():
            self.values[name] = Value(name, tuple(array.shape), from_numpy(array.dtype))

    def input(self, name: str, shape: Sequence[int], dtype: str) -> Value:
        """Declare an input of the graph."""
        self._taken.add(name)
        value = Value(name, tuple(shape), dtype)
        self.inputs.append(value)
        self.values[name] = value
        return value

    def constant(self, array: Array, hint: str = "const") -> Value:
        """Add a constant, named after the hint."""
        array = np.asarray(array)
        name = self.fresh(hint)
        self.constants[name] = array
        self.values[name] = Value(name, tuple(array.shape), from_numpy(array.dtype))
        return self.values[name]

    def shape(self, extents: Array | Sequence[int], dtype: str = "i64") -> Value:
        """Extents as a value: a constant where no symbol is among them."""
        array = np.asarray(extents, object)
        if not symbolic(array.flat):
            return self.constant(array.astype(to_numpy(dtype)))
        name = self.fresh("shape")
        self.extents[name] = array
        self.values[name] = Value(name, tuple(array.shape), dtype)
        return self.values[name]

    def known(self, value: Value) -> Array | None:
        """What is in a constant, symbols included: an array of objects where there are any."""
        found = self.extents.get(value.name)
        return self.constants.get(value.name) if found is None else found

    def array(self, value: Value) -> Array | None:
        """What is in a constant; None for a value that is computed at run time.

        Symbols are taken to be the numbers at hand.
        """
        if value.name in self.extents and value.name not in self.constants:
            self.constants[value.name] = as_array(self.extents[value.name], value.dtype)
        return self.constants.get(value.name)

    def reserve(self, names: Iterable[str]) -> None:
        """Keep names from being given to values; `finish` will give them to outputs."""
        self._taken.update(names)

    def fresh(self, hint: str) -> str:
        """A name that nothing has yet."""
        name = hint if hint not in OPS and hint != "const" else ""
        while not name or name in self._taken:
            number = self._counts.get(hint, 0)
            self._counts[hint] = number + 1
            name = f"{hint}_{number}"
        self._taken.add(name)
        return name

    def emit(self, op: str, /, *inputs: Value, **attributes: Any) -> Value:
        """The result of `op`: a new node, or a constant where all inputs are constants."""
        folded = self.folded(op, *inputs, **attributes)
        if folded is not None:
            return folded
        frozen = attrs(**attributes)
        [kind] = OPS[op].infer(dict(frozen), inputs)
        inputs = tuple(self._as_data(item) for item in inputs)
        value = Value(self.fresh(op), kind[0], kind[1])
        names = tuple(item.name for item in inputs)
        return self.append(Node(op, names, (value,), frozen, self.origin))

    def folded(self, op: str, /, *inputs: Value, **attributes: Any) -> Value | None:
        """The result as a constant; None where an input is none, or where it would be too large."""
        frozen = dict(attrs(**attributes))
        [kind] = OPS[op].infer(frozen, inputs)
        _check_size(op, kind)
        if any(item.name in self.extents for item in inputs):
            extents = fold_extents(op, frozen, [self.known(item) for item in inputs], kind)
            if extents is not None:
                return self.shape(extents, kind[1])
        array = self._fold(op, frozen, inputs, kind)
        return None if array is None else self.constant(array)

    def _as_data(self, value: Value) -> Value:
        """The value itself; extents become a tensor that a run computes."""
        if value.name not in self.extents or value.name in self.constants:
            return value
        if value.name not in self._data:
            numbers = self.extents[value.name]
            parts = []
            for extent in numbers.flat:
                if isinstance(extent, Sym):
                    part = self.emit("number", value=extent)
                else:
                    part = self.constant(np.asarray(extent, np.int64))
                parts.append(self.emit("reshape", part, shape=(1,)))
            joined = parts[0] if len(parts) == 1 else self.emit("concat", *parts, axis=0)
            joined = self.emit("reshape", joined, shape=numbers.shape)
            if value.dtype != "i64":
                joined = self.emit("cast", joined, dtype=value.dtype)
            self._data[value.name] = joined
        return self._data[value.name]

    def append(self, node: Node) -> Value:
        """Add a node as it stands; gives its first output."""
        self.nodes.append(node)
        for value in node.outputs:
            self._taken.add(value.name)
            self.values[value.name] = value
        return node.output

    def finish(self, name: str, outputs: Mapping[str, Value]) -> Graph:
        """The graph whose outputs are called as given.

        Each output is computed by a node of that name, or is the input of that name: values are
        renamed, and an output that is another input, a constant or another output as well becomes
        a reshape to its own shape.
        """
        outputs = {wanted: self._as_data(value) for wanted, value in outputs.items()}
        named: dict[str, str] = {}
        mine = {value.name for node in self.nodes for value in node.outputs}
        for wanted, value in outputs.items():
            if value.name in mine and value.name not in named:
                named[value.name] = wanted
        inputs = {value.name for value in self.inputs}
        moved = self._make_way(set(outputs) - set(named.values()))
        nodes = [_renamed(node, named) for node in self.nodes]
        for wanted, value in outputs.items():
            if value.name == wanted and wanted in inputs:
                continue
            if named.get(value.name) != wanted:
                source = named.get(value.name, moved.get(value.name, value.name))
                nodes.append(_copy(wanted, source, value, self.origin))
        used = {read for node in nodes for read in node.inputs}
        constants = {key: array for key, array in self.constants.items() if key in used}
        return verify(Graph(name, tuple(self.inputs), tuple(nodes), tuple(outputs), constants))

    def _make_way(self, wanted: set[str]) -> dict[str, str]:
        """Rename constants whose name an output needs; their new names by the old ones."""
        moved = {name: self.fresh("const") for name in sorted(wanted & set(self.constants))}
        for name, new in moved.items():
            self.constants[new] = self.constants.pop(name)
        self.nodes = [_renamed(node, moved) for node in self.nodes]
        return moved

    def _fold(
        self, op: str, attributes: dict[str, Any], inputs: Sequence[Value], kind: Type
    ) -> Array | None:
        if symbolic(kind[0]) or any(map(_is_open, attributes.values())):
            return None
        arrays = [self.constants.get(value.name) for value in inputs]
        known = [array for array in arrays if array is not None]
        if len(known) < len(arrays):
            return None
        result = Value("result", kind[0], kind[1])
        made = hint(math.prod(result.dims)) * itemsize(kind[1])
        read = sum(array.nbytes for array in known)
        work = made + read + hint(OPS[op].flops(attributes, inputs, (result,)))
        if made > max(SMALL, 2 * read) or work > self._budget:
            return None
        self._budget -= work
        try:
            return evaluate_op(op, attributes, known, kind)
        except InvalidInput:  # an index out of range: an error of the run, if it comes to that
            return None


def _is_open(attribute: Any) -> bool:
    """Whether an attribute holds a number that only a run knows."""
    return symbolic(attribute if isinstance(attribute, tuple) else (attribute,))


def evaluate_op(
    op: str, attributes: Mapping[str, Any], arrays: Sequence[Array], kind: Type
) -> Array:
    """One op on constants: floats in float64, then rounded to the result's dtype; ints exact."""
    rule = OPS[op]
    if rule.kind != "view":
        arrays = [_wide(array) for array in arrays]
    with np.errstate(all="ignore"):
        [result] = rule.reference(attributes, arrays)
        result = np.asarray(result).astype(to_numpy(kind[1]))
    return np.ascontiguousarray(result).reshape(tuple(int(n) for n in kind[0]))  # type: ignore


def _wide(array: Array) -> Array:
    is_float = dtype_kind(from_numpy(array.dtype)) == "float"
    return array.astype(np.float64) if is_float else array


def _check_size(op: str, kind: Type) -> None:
    shape, dtype = kind
    count = math.prod(extent for extent in shape if isinstance(extent, int))
    if len(shape) > MAX_RANK or count * itemsize(dtype) > MAX_BYTES:
        shown = f"{list(shape[:MAX_RANK])}{'...' if len(shape) > MAX_RANK else ''}"
        raise InvalidModel(f"{op} would give a tensor of shape {shown}, which is too large")


def _renamed(node: Node, names: Mapping[str, str]) -> Node:
    if not any(value.name in names for value in node.outputs) and not any(
        name in names for name in node.inputs
    ):
        return node
    inputs = tuple(names.get(name, name) for name in node.inputs)
    outputs = tuple(
        Value(names.get(value.name, value.name), value.shape, value.dtype) for value in node.outputs
    )
    return Node(node.op, inputs, outputs, node.attrs, node.origin)


def _copy(name: str, source: str, value: Value, origin: tuple[str, ...]) -> Node:
    result = Value(name, value.shape, value.dtype)
    return Node("reshape", (source,), (result,), attrs(shape=value.shape), origin)
