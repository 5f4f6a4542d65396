"""Graphs computed with the ops' references: the float64 truth, and types checked against infer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal

import numpy as np

from rooftile.core.affine import Dim
from rooftile.core.dtype import DType, from_numpy, kind, to_numpy
from rooftile.core.errors import (
    InvalidInput,
    InvalidIR,
    InvalidOption,
    RooftileError,
    UnsupportedOp,
)
from rooftile.ir.graph import Array, Graph, Node, Value
from rooftile.ops.base import OPS, Op, Type

Precision = Literal["f64", "native"]
"""f64: every float is held and computed in float64, casts between float types change nothing.
native: every value is held in its own type; f16 and bf16 compute in f32, as kernels do."""


def find_op(name: str) -> Op:
    """The record of an op; UnsupportedOp if there is none."""
    found = OPS.get(name)
    if found is None:
        raise UnsupportedOp(f"op {name} is not canonical; the ops are {', '.join(sorted(OPS))}")
    return found


def infer_node(op: str, attrs: Mapping[str, Any], inputs: Sequence[Value]) -> tuple[Type, ...]:
    """Shape and dtype of each output; InvalidModel in words of the op where they do not fit."""
    return find_op(op).infer(attrs, inputs)


def check_types(graph: Graph) -> Graph:
    """The graph itself; InvalidIR names the first node whose outputs are not what infer says."""
    for node in graph.nodes:
        try:
            types = infer_node(
                node.op, dict(node.attrs), [graph.values[name] for name in node.inputs]
            )
        except RooftileError as error:
            raise InvalidIR(f"{graph.name}: %{node.name}: {error}") from error
        recorded = tuple((value.shape, value.dtype) for value in node.outputs)
        if recorded != types:
            raise InvalidIR(
                f"{graph.name}: %{node.name} is recorded as {_shown(recorded)}, "
                f"but {node.op} gives {_shown(types)}"
            )
    return graph


def evaluate(
    graph: Graph, inputs: Mapping[str, Array], precision: Precision = "f64"
) -> dict[str, Array]:
    """The graph's outputs by name; InvalidInput for an input that is missing or does not fit.

    Under "f64" float outputs are float64. A value is freed after its last use.
    """
    held = _start(graph, inputs, precision)
    left = {name: len(readers) for name, readers in graph.consumers.items()}
    for node, results in _steps(graph, held, precision):
        held.update(results)
        for name in set(node.inputs):
            left[name] -= 1
        for name in {*node.inputs, *results}:
            if not left[name] and name not in graph.outputs:
                del held[name]
    return {name: held[name] for name in graph.outputs}


def evaluate_all(
    graph: Graph, inputs: Mapping[str, Array], precision: Precision = "f64"
) -> dict[str, Array]:
    """Every value by name: inputs, constants and what the nodes compute."""
    held = _start(graph, inputs, precision)
    for _, results in _steps(graph, held, precision):
        held.update(results)
    return held


def _start(graph: Graph, inputs: Mapping[str, Array], precision: Precision) -> dict[str, Array]:
    """Inputs and constants in the types that the run holds them in."""
    hold = _holder(precision)
    held = {}
    for value in graph.inputs:
        if value.name not in inputs:
            raise InvalidInput(f"{graph.name}: input {value.name} is missing")
        array = np.asarray(inputs[value.name])
        _check_input(value, array)
        held[value.name] = hold(array, value.dtype)
    for name, array in graph.constants.items():
        held[name] = hold(array, from_numpy(array.dtype))
    return held


def _steps(
    graph: Graph, held: Mapping[str, Array], precision: Precision
) -> Iterator[tuple[Node, dict[str, Array]]]:
    """Each node with its results, computed from what `held` has when the node's turn comes."""
    hold = _holder(precision)
    for node in graph.nodes:
        arrays = [_computed_in(held[name]) for name in node.inputs]
        try:
            with np.errstate(all="ignore"):
                results = find_op(node.op).reference(dict(node.attrs), arrays)
        except RooftileError as error:
            raise type(error)(f"{graph.name}: %{node.name}: {error}") from error
        found = {}
        for value, array in zip(node.outputs, results, strict=True):
            if not _fits(array, value.shape):
                raise InvalidIR(
                    f"{graph.name}: %{value.name} is recorded with shape {value.shape}, "
                    f"but {node.op} computed {array.shape}"
                )
            found[value.name] = hold(array, value.dtype)
        yield node, found


def _holder(precision: Precision) -> Callable[[Array, DType], Array]:
    if precision not in ("f64", "native"):
        raise InvalidOption(f"precision {precision!r} must be f64 or native")

    def hold(array: Array, dtype: DType) -> Array:
        wide = precision == "f64" and kind(dtype) == "float"
        with np.errstate(over="ignore"):
            return array.astype(np.float64 if wide else to_numpy(dtype), copy=False)

    return hold


def _computed_in(array: Array) -> Array:
    narrow = kind(from_numpy(array.dtype)) == "float" and array.dtype.itemsize < 4
    return array.astype(np.float32) if narrow else array


def _check_input(value: Value, array: Array) -> None:
    wanted, got = to_numpy(value.dtype), array.dtype
    same_kind = kind(value.dtype) == kind(from_numpy(got))
    if not _fits(array, value.shape) or (got != wanted and not same_kind):
        shape = ",".join(map(str, value.shape))
        raise InvalidInput(
            f"input {value.name} must be {value.dtype}[{shape}], not {got} {list(array.shape)}"
        )


def _fits(array: Array, shape: Sequence[Dim]) -> bool:
    """Whether the array has that shape; a symbolic dim fits every extent."""
    return array.ndim == len(shape) and all(
        not isinstance(want, int) or have == want
        for have, want in zip(array.shape, shape, strict=True)
    )


def _shown(types: Sequence[Type]) -> str:
    return ", ".join(f"{dtype}[{','.join(map(str, shape))}]" for shape, dtype in types)
