"""A random ONNX model under construction: nodes are added as they are computed, or turned down.

A node is turned down where its result would be no fair question: not finite, too large for its
type, or a jump (a comparison, a rounding, an index) that rounding errors could decide.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from random import Random
from typing import Any

import numpy as np
from model_reference import evaluate
from model_values import COARSE, RUNS, SUMS, Array, Value, held, noisy
from onnx import ModelProto, helper, numpy_helper

EXTENTS = (1, 2, 3, 5, 7, 4, 8, 11, 16, 17, 33)
MOST_ELEMENTS = 3000
MOST_DIMS = 5
LARGEST = {"float16": 300.0, "float32": 1e4, "float64": 1e4}
SPREAD = {"float16": 0.05, "float32": 1e-3, "float64": 1e-3}
"""Values whose condition is worse, relative to their largest element, say little."""
INPUT_TYPES = ("float32",) * 5 + ("float64", "float16", "int32", "int64", "bool", "uint8", "int8")
OPSETS = (18, 19, 20, 21, 22)
_STEPS = frozenset(("Floor", "Ceil", "Round", "Sign", "Hardmax", "ThresholdedRelu", "Shrink"))
"""Ops whose float results jump."""


@dataclass(frozen=True)
class Made:
    """A model, what it is fed, and what its outputs should be; all values that it computes."""

    model: ModelProto
    feeds: dict[str, Array]
    outputs: tuple[Value, ...]
    values: tuple[Value, ...]


class Maker:
    """Holds the values made so far; steps (functions of a maker) add nodes."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.generator = np.random.default_rng(seed)
        self.opset = self.pick(OPSETS)
        self.nodes: list[Any] = []
        self.values: list[Value] = []
        self.feeds: dict[str, Array] = {}
        self.constants: dict[str, Array] = {}

    # Choices

    def pick(self, items: Sequence[Any]) -> Any:
        """One of the items."""
        return self.random.choice(items)

    def chance(self, count: int) -> bool:
        """True one time in `count`."""
        return self.random.randrange(count) == 0

    def extents(self, rank: int) -> tuple[int, ...]:
        """A shape."""
        found: list[int] = []
        for _ in range(rank):
            room = [n for n in EXTENTS if n * math.prod(found) <= MOST_ELEMENTS]
            found.append(self.pick(room))
        return tuple(found)

    def value(self, fits: Callable[[Value], bool] = lambda value: True) -> Value | None:
        """A value of the model that fits, late ones first; None where none does."""
        found = [value for value in self.values if fits(value)]
        return self.pick(found[-6:] if self.random.random() < 0.7 else found) if found else None

    def float_value(self, least: int = 0, most: int = MOST_DIMS) -> Value | None:
        """A float value with as many dims."""
        return self.value(lambda value: value.is_float and least <= value.rank <= most)

    # Making

    def numbers(self, shape: Sequence[int], dtype: Any) -> Array:
        """Random content: floats around 0, small integers."""
        dtype = np.dtype(dtype)
        if dtype.kind == "f":
            return self.generator.standard_normal(shape).astype(dtype)
        if dtype.kind == "b":
            return self.generator.integers(0, 2, shape).astype(dtype)
        return self.generator.integers(0 if dtype.kind == "u" else -5, 9, shape).astype(dtype)

    def input(self) -> Value:
        """A new input of the model."""
        array = self.numbers(self.extents(self.random.randrange(MOST_DIMS)), self.pick(INPUT_TYPES))
        name = f"in{len(self.feeds)}"
        self.feeds[name] = array
        self.values.append(Value(name, array.dtype, (held(array),) * RUNS))
        return self.values[-1]

    def constant(self, array: Any, dtype: Any = np.int64) -> Value:
        """An initializer; integers where no type is given."""
        array = np.asarray(array).astype(dtype)
        name = f"c{len(self.constants)}"
        self.constants[name] = array
        return Value(name, array.dtype, (held(array),) * RUNS)

    def weights(self, shape: Sequence[int], dtype: Any, scale: float = 1.0) -> Value:
        """An initializer of random numbers."""
        array = self.numbers(shape, dtype)
        return self.constant(array * scale if array.dtype.kind == "f" else array, dtype)

    def add(
        self,
        op: str,
        *inputs: Value | None,
        dtypes: Sequence[Any] | None = None,
        exact: bool = False,
        **attributes: Any,
    ) -> list[Value] | None:
        """The outputs of a new node, of the types given or of the first input's; None if it is
        turned down. An `exact` op moves or picks elements and rounds none.
        """
        first = next(item for item in inputs if item is not None)
        types = [np.dtype(dtype) for dtype in dtypes or (first.dtype,)]
        outputs = [f"v{len(self.nodes)}_{number}" for number in range(len(types))]
        node = helper.make_node(op, [x.name if x else "" for x in inputs], outputs, **attributes)
        with np.errstate(all="ignore"):
            runs = [self._run(node, inputs, types, number, exact) for number in range(RUNS)]
            columns = list(zip(*runs, strict=True))
            if not all(map(_fair, columns, types)) or self._jumps(node, inputs, types, runs[0]):
                return None
        made = [
            Value(name, dtype, column)
            for name, dtype, column in zip(outputs, types, columns, strict=True)
        ]
        self.nodes.append(node)
        self.values += made
        return made

    def _run(
        self, node: Any, inputs: Sequence[Value | None], types: Sequence[Any], run: int, exact: bool
    ) -> list[Array]:
        arrays = [None if x is None else x.runs[run] for x in inputs]
        if not run or exact:
            return evaluate(node, arrays, self.opset)
        steps = _roundings(node.op_type, inputs)
        pairs = zip(inputs, arrays, strict=True)
        arrays = [
            None if x is None or a is None else noisy(a, x.dtype, self.generator, roundings=steps)
            for x, a in pairs
        ]
        results = evaluate(node, arrays, self.opset)
        coarse = max(1.0, inputs[0].largest) if inputs[0] and node.op_type in COARSE else 0.0
        made = zip(results, types, strict=True)
        return [noisy(x, dtype, self.generator, coarse, steps) for x, dtype in made]

    def _jumps(
        self, node: Any, inputs: Sequence[Value | None], types: Sequence[Any], wanted: list[Array]
    ) -> bool:
        """Whether a result that may jump does so under larger errors of what it depends on."""
        jumping = [node.op_type in _STEPS or dtype.kind != "f" for dtype in types]
        if not any(jumping) or not any(x is not None and x.is_float for x in inputs):
            return False
        for run, sign in product(range(1, RUNS), (1, -1)):
            arrays = [None if x is None else x.amplified(run, sign) for x in inputs]
            found = evaluate(node, arrays, self.opset)
            if node.op_type == "Equal":  # true only where nothing is off: near misses count too
                a, b = (x.runs[0] for x in inputs if x is not None)
                found, wanted = [np.less(*arrays)], [np.less(a, b)]
            if any(
                jump and not np.array_equal(got, want)
                for jump, got, want in zip(jumping, found, wanted, strict=True)
            ):
                return True
        return False

    def finish(self) -> Made:
        """The model: what nothing reads is an output, and so are a few others."""
        read = {name for node in self.nodes for name in node.input}
        computed = [value for value in self.values if value.name not in self.feeds]
        outputs = [v for v in computed if v.name not in read or self.chance(6)]
        info = helper.make_tensor_value_info

        def code(dtype: Any) -> int:
            return int(helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))

        graph = helper.make_graph(
            self.nodes,
            "random",
            [info(name, code(x.dtype), x.shape) for name, x in self.feeds.items()],
            [info(v.name, code(v.dtype), v.shape) for v in outputs],
            [numpy_helper.from_array(x, n) for n, x in self.constants.items() if n in read],
        )
        opset = helper.make_opsetid("", self.opset)
        model = helper.make_model(graph, opset_imports=[opset], ir_version=9)
        return Made(model, self.feeds, tuple(outputs), tuple(computed))


def _roundings(op: str, inputs: Sequence[Value | None]) -> float:
    """How many roundings an op may be off: of the partial sums of many terms, all of a row or of
    the window and channels of a conv; or of coordinates as large as an image.
    """
    shapes = [value.shape for value in inputs if value is not None]
    longest = max((*shapes[0], 1))
    if op == "Resize":
        return max(1.0, longest / 2)
    if op not in SUMS:
        return 1.0
    window = math.prod(shapes[1][1:]) if len(shapes) > 1 and len(shapes[1]) > 2 else 1
    return max(1.0, 0.5 * math.sqrt(max(longest, window)))


def _fair(column: Sequence[Array], dtype: Any) -> bool:
    """Whether a value, in all its runs, is worth asking for."""
    value, shape = column[0], column[0].shape
    if any(run.shape != shape for run in column) or len(shape) > MOST_DIMS:
        return False
    if not 0 < value.size <= MOST_ELEMENTS:
        return False
    if dtype.kind != "f":
        return value.dtype == dtype and all(np.array_equal(run, value) for run in column)
    largest = float(np.max(np.abs(value)))
    if not np.isfinite(column).all() or largest > LARGEST[dtype.name]:
        return False
    return bool(np.max(np.abs(np.array(column) - value)) <= SPREAD[dtype.name] * max(largest, 1e-3))
