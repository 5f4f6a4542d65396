"""One ONNX node as its reader sees it: inputs, checked attributes, and canonical ops to emit."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from copy import copy
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from rooftile.core.dtype import itemsize, to_numpy
from rooftile.core.errors import InvalidModel, NeedsHost, UnsupportedOp
from rooftile.core.limits import machine_bytes
from rooftile.core.symbolic import Sym, hint
from rooftile.frontends.onnx.narrow import code_of, widened
from rooftile.frontends.onnx.needs import missing
from rooftile.frontends.onnx.sparse import to_dense
from rooftile.frontends.onnx.tensors import CODES, to_array
from rooftile.ir.graph import Array, Value
from rooftile.ops.builder import Builder
from rooftile.ops.scan_builder import ScanBuilder

Result = Value | tuple[Value, ...]
Enter = Callable[[Any, Sequence[Value], str, "ScanBuilder | None"], tuple[Value, ...]]
"""Reads the nodes of a body on some inputs, under a label; gives its outputs. The nodes are added
to the body of a scan where one is given."""
_FLOAT, _INT, _STRING, _TENSOR, _GRAPH, _FLOATS, _INTS, _STRINGS = 1, 2, 3, 4, 5, 6, 7, 8
_SPARSE = 11


LONGEST = 1000
"""Characters of a message: lists of a hostile file may have millions of numbers."""


class Call:
    """A node to read. Values are the Builder's; a Python number stands for a scalar constant."""

    def __init__(
        self,
        node: Any,
        name: str,
        opset: int,
        inputs: Sequence[Value | None],
        builder: Builder,
        folder: Path | None = None,
        enter: Enter | None = None,
        narrow: dict[str, int] | None = None,
    ) -> None:
        self.node, self.name, self.opset = node, name, opset
        self._enter = enter
        self._narrow = {} if narrow is None else narrow
        self.inputs = tuple(inputs)
        self.builder = builder
        self.folder = folder
        self.outputs = sum(1 for output in node.output if output)
        self._attributes = {item.name: item for item in node.attribute}
        self._read: set[str] = set()

    # Errors

    @property
    def where(self) -> str:
        """The node as messages show it."""
        return f"node {self.name} ({self.node.op_type})"

    def invalid(self, problem: str) -> NoReturn:
        """InvalidModel that names the node."""
        raise InvalidModel(f"{self.where}: {_short(problem)}")

    def unsupported(self, form: str) -> NoReturn:
        """UnsupportedOp that names node, op, domain and opset."""
        domain = self.node.domain or "ai.onnx"
        where = f"{self.where} of {domain} opset {self.opset}"
        raise UnsupportedOp(f"{where}: {_short(form)} is not supported")

    def on_host(self, why: str) -> NoReturn:
        """NeedsHost: the node is read well, but no kernel can compute it."""
        raise NeedsHost(f"{self.where}: {why}")

    def check_size(self, shape: Sequence[int], dtype: str, what: str = "a tensor") -> None:
        """InvalidModel for what this machine cannot hold: to be asked before arrays are made."""
        if math.prod(map(hint, shape)) * itemsize(dtype) > machine_bytes():
            self.invalid(f"{what} of shape {list(shape)} is more than this machine can hold")

    # Inputs

    def input(self, number: int) -> Value:
        """Input `number`, which must be there."""
        found = self.optional(number)
        return self.invalid(f"input {number} is missing") if found is None else found

    def optional(self, number: int) -> Value | None:
        """Input `number`, or None where it is left out."""
        return self.inputs[number] if number < len(self.inputs) else None

    def every(self) -> tuple[Value, ...]:
        """All inputs of a variadic op: at least one, none left out."""
        if not self.inputs:
            self.invalid("it needs at least one input")
        return tuple(self.input(number) for number in range(len(self.inputs)))

    def array(self, number: int, what: str) -> Array:
        """The content of input `number`, which must be known before the run."""
        return self.content(self.input(number), what)

    def content(self, value: Value, what: str) -> Array:
        """The content of a constant; NeedsValue where it is computed at run time."""
        array = self.builder.array(value)
        if array is None:
            domain = self.node.domain or "ai.onnx"
            raise missing(
                f"{self.where} of {domain} opset {self.opset}: {what} that is computed at run time "
                "instead of a constant is not supported",
                value,
                self.builder,
            )
        return array

    def known(self, number: int, what: str) -> Array:
        """The content of input `number`, which may hold symbols, as an array of objects."""
        extents = self.builder.extents.get(self.input(number).name)
        return self.array(number, what) if extents is None else extents

    def input_ints(self, number: int, what: str) -> tuple[int, ...]:
        """The content of input `number` as integers, symbols among them."""
        extents = self.builder.extents.get(self.input(number).name)
        if extents is not None and extents.ndim <= 1:
            return tuple(extents.ravel())
        array = self.array(number, what)
        if array.dtype.kind not in "iu" or array.ndim > 1:
            self.invalid(f"{what} must be a list of integers")
        return tuple(int(item) for item in array.ravel())

    def code(self, number: int) -> int:
        """The TensorProto.DataType of input `number`, which its dtype may hold in a wider type."""
        value = self.input(number)
        return self._narrow.get(value.name) or CODES[value.dtype]

    def narrowed(self, value: Value, code: int) -> Value:
        """The value, taken for one of a narrow type that its dtype holds; no input may be it."""
        self._narrow[value.name] = code
        return value

    def held(self, value: Value) -> Value:
        """A value of a narrow type as one of the dtype that holds it."""
        if value.name not in self._narrow:
            return value
        array = self.builder.array(value)
        if array is not None:
            return self.builder.constant(array)
        return self.emit("reshape", value, shape=value.dims)

    def literal(self, array: Array) -> Value:
        """A constant of any element type."""
        code = code_of(array)
        value = self.builder.constant(widened(array))
        return self.narrowed(value, code) if code else value

    # Attributes

    def has(self, name: str) -> bool:
        """Whether the attribute is given."""
        return name in self._attributes

    def integer(self, name: str, default: int | None = None) -> int:
        """An integer attribute."""
        return int(self._attribute(name, _INT, "i", default))

    def number(self, name: str, default: float | None = None) -> float:
        """A number attribute; a default is rounded to f32 too, as schemas hold it."""
        return float(np.float32(self._attribute(name, _FLOAT, "f", default)))

    def ints(self, name: str, default: Sequence[int] | None = None) -> tuple[int, ...]:
        """A list of integers."""
        return tuple(int(item) for item in self._attribute(name, _INTS, "ints", default))

    def floats(self, name: str, default: Sequence[float] | None = None) -> tuple[float, ...]:
        """A list of numbers."""
        return tuple(float(item) for item in self._attribute(name, _FLOATS, "floats", default))

    def text(self, name: str, default: str | None = None) -> str:
        """A string attribute."""
        found = self._attribute(name, _STRING, "s", default)
        return found.decode("utf-8", "replace") if isinstance(found, bytes) else str(found)

    def texts(self, name: str, default: Sequence[str] | None = None) -> tuple[str, ...]:
        """A list of strings."""
        found = self._attribute(name, _STRINGS, "strings", default)
        return tuple(
            item.decode("utf-8", "replace") if isinstance(item, bytes) else str(item)
            for item in found
        )

    def tensor(self, name: str) -> Array:
        """A tensor attribute."""
        found = self._attribute(name, _TENSOR, "t", None)
        return to_array(found, self.folder, f"in attribute {name} of node {self.name}")

    def sparse_tensor(self, name: str) -> Array:
        """A sparse tensor attribute, made dense."""
        return to_dense(self._attribute(name, _SPARSE, "sparse_tensor", None), self.folder)

    def body(self, name: str) -> Any:
        """A graph attribute, to be entered."""
        return self._attribute(name, _GRAPH, "g", None)

    def enter(
        self, graph: Any, inputs: Sequence[Value], label: str, scan: ScanBuilder | None = None
    ) -> tuple[Value, ...]:
        """The outputs of a body whose nodes are read here, or into a scan, on these inputs."""
        if self._enter is None:
            self.unsupported("a body")
        if len(inputs) != len(graph.input):
            self.invalid(f"its body takes {len(graph.input)} inputs, it is given {len(inputs)}")
        return self._enter(graph, inputs, label, scan)

    def within(self, builder: Builder) -> Call:
        """The same call, emitting into the body that another builder makes."""
        inner = copy(self)
        inner.builder = builder
        return inner

    def ignore(self, *names: str) -> None:
        """Attributes that do not matter to inference."""
        self._read.update(names)

    def leftover(self) -> list[str]:
        """Attributes that nobody asked for: the op is not what its reader takes it for."""
        return sorted(set(self._attributes) - self._read)

    def _attribute(self, name: str, kind: Any, field: str, default: Any) -> Any:
        self._read.add(name)
        found = self._attributes.get(name)
        if found is None:
            return self.invalid(f"attribute {name} is missing") if default is None else default
        if found.type != kind:
            self.invalid(f"attribute {name} has the wrong type; it must be of kind {field!r}")
        return getattr(found, field)

    # Emitting

    def emit(self, op: str, /, *inputs: Value, **attributes: Any) -> Value:
        """A canonical op; constant inputs give a constant."""
        return self.builder.emit(op, *inputs, **attributes)

    def elementwise(self, op: str, *inputs: Value | float) -> Value:
        """An elementwise op on operands of any rank; numbers take the other operands' type."""
        like = next(item for item in reversed(inputs) if isinstance(item, Value))
        values = [
            item if isinstance(item, Value) else self.constant(item, like.dtype) for item in inputs
        ]
        rank = max(value.rank for value in values)
        return self.emit(op, *(self.ranked(value, rank) for value in values))

    def constant(self, value: Any, dtype: str) -> Value:
        """A constant of a dtype, from a number, list or array; an extent of a run as a number."""
        if isinstance(value, Sym):
            return self.cast(self.emit("number", value=value), dtype)
        return self.builder.constant(np.asarray(value).astype(to_numpy(dtype)))

    def ranked(self, value: Value, rank: int) -> Value:
        """The value with dims of 1 in front, as ONNX broadcasts."""
        return self.reshape(value, (1,) * (rank - value.rank) + value.dims)

    def reshape(self, value: Value, shape: Sequence[int]) -> Value:
        """The value under another shape; itself where nothing changes."""
        if tuple(shape) == value.shape:
            return value
        return self.emit("reshape", value, shape=tuple(shape))

    def transpose(self, value: Value, perm: Sequence[int]) -> Value:
        """The value with its dims permuted; itself where nothing changes."""
        if tuple(perm) == tuple(range(value.rank)):
            return value
        return self.emit("transpose", value, perm=tuple(perm))

    def cast(self, value: Value, dtype: str) -> Value:
        """The value in another type; itself where nothing changes."""
        return value if value.dtype == dtype else self.emit("cast", value, dtype=dtype)

    def broadcast(self, value: Value, shape: Sequence[int]) -> Value:
        """The value with dims of 1 grown to `shape`, which has the same rank."""
        if tuple(shape) == value.shape:
            return value
        return self.emit("broadcast", value, shape=tuple(shape))

    # Axes

    def axis(self, axis: int, rank: int) -> int:
        """An axis counted from the front; InvalidModel where it is outside the rank."""
        if not -rank <= axis < max(rank, 1):
            self.invalid(f"axis {axis} is outside a tensor of rank {rank}")
        return axis + rank if axis < 0 else axis

    def axes(self, axes: Sequence[int], rank: int) -> tuple[int, ...]:
        """Axes counted from the front, sorted; none twice."""
        found = sorted(self.axis(axis, rank) for axis in axes)
        if len(set(found)) < len(found):
            self.invalid(f"axes {list(axes)} name an axis twice")
        return tuple(found)


def _short(text: str) -> str:
    """The text, without its middle where it is too long: what is wrong stands at the end."""
    half = LONGEST // 2
    return text if len(text) <= LONGEST else f"{text[:half]} ... {text[-half:]}"
