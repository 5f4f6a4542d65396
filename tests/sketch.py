"""Graphs of canonical ops written by hand, and the check that a pass keeps what they compute."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from rooftile.core.dtype import to_numpy
from rooftile.ir.graph import Graph, Value
from rooftile.ops.builder import Builder
from rooftile.ops.evaluate import check_types, evaluate


class Sketch:
    """`x = sketch.input(2, 3)`; `y = sketch("add", x, 1.0)`; `sketch.graph(y)`.

    A number or list in place of a value is a constant of the rank and dtype of the others.
    """

    def __init__(self) -> None:
        self.builder = Builder()

    def input(self, *shape: int, dtype: str = "f32") -> Value:
        """An input named x0, x1, ..."""
        self.builder.reserve(["y0", "y1", "y2"])
        return self.builder.input(f"x{len(self.builder.inputs)}", shape, dtype)

    def constant(self, content: Any, dtype: str = "f32") -> Value:
        """A constant."""
        return self.builder.constant(np.asarray(content).astype(to_numpy(dtype)))

    def __call__(self, op: str, /, *inputs: Any, **attributes: Any) -> Value:
        like = next((item for item in inputs if isinstance(item, Value)), None)
        self.builder.origin = (f"{op}{len(self.builder.nodes)}",)
        values = []
        for item in inputs:
            if not isinstance(item, Value):
                assert like is not None
                array = np.asarray(item)
                item = self.constant(
                    array.reshape((1,) * (like.rank - array.ndim) + array.shape), like.dtype
                )
            values.append(item)
        return self.builder.emit(op, *values, **attributes)

    def conv(self, x: Value, *window: int, groups: int = 1, **more: Any) -> Value:
        """A convolution with random weights [window..., out] of stride 1 and no padding."""
        *sizes, features = window
        n = len(sizes)
        shape = (*sizes, x.dims[-1] // groups, features)
        attributes = {"strides": (1,) * n, "dilations": (1,) * n, "groups": groups}
        attributes |= {"pads_low": (0,) * n, "pads_high": (0,) * n} | more
        return self("conv", x, self.constant(normal(*shape)), **attributes)

    def dot(self, a: Value, b: Value) -> Value:
        """The last dim of a against the first of b."""
        bound = {"lhs_contract": (a.rank - 1,), "rhs_contract": (0,)}
        return self("dot", a, b, **bound, lhs_batch=(), rhs_batch=())

    def graph(self, *outputs: Value) -> Graph:
        """The graph; its outputs are called y0, y1, ..."""
        named = {f"y{number}": value for number, value in enumerate(outputs)}
        return check_types(self.builder.finish("sketch", named))


def normal(*shape: int, seed: int = 0) -> npt.NDArray[np.float32]:
    """Normal numbers."""
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def feeds_of(graph: Graph, seed: int = 0) -> dict[str, npt.NDArray[Any]]:
    """Normal numbers, or small integers of both signs, for every input."""
    rng, feeds = np.random.default_rng(seed), {}
    for value in graph.inputs:
        kind = to_numpy(value.dtype)
        if kind.kind == "f":
            feeds[value.name] = rng.standard_normal(value.dims).astype(kind)
        else:
            low = 0 if kind.kind in "ub" else -3
            feeds[value.name] = rng.integers(low, 2 if kind.kind == "b" else 9, value.dims).astype(
                kind
            )
    return feeds


def ops(graph: Graph) -> list[str]:
    """The ops in order."""
    return [node.op for node in graph.nodes]


def applied(run: Callable[[Graph], Graph], graph: Graph, rtol: float = 0.0) -> Graph:
    """The pass's result, after asserting types, signature and values (exactly, unless rtol)."""
    result = check_types(run(graph))
    assert result.inputs == graph.inputs and result.outputs == graph.outputs
    feeds = feeds_of(graph)
    before, after = evaluate(graph, feeds), evaluate(result, feeds)
    for name in graph.outputs:
        assert result.values[name] == graph.values[name]
        np.testing.assert_allclose(after[name], before[name], rtol, rtol, err_msg=name)
    return result


def refused(run: Callable[[Graph], Graph], graph: Graph) -> None:
    """Assert that a pass leaves the graph alone: it is the very same object."""
    assert run(graph) is graph
