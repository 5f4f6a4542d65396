"""scan: a body graph run once for each place along axis 0 of its operands, with carried states.

Inputs: the states that the first iteration sees, then the sliced operands, then captured values,
which every iteration sees whole. The body takes the same in this order, of each sliced operand the
part of its iteration. It gives the states of the next iteration, then the parts that are stacked.
Outputs: the last states, then the stacks along a new axis 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rooftile.core.dtype import from_numpy, itemsize, kind
from rooftile.ir.graph import Array, Graph, Node, Value
from rooftile.ops.base import OPS, Op, Type, register
from rooftile.ops.evaluate import Precision, evaluate
from rooftile.ops.rules import Attrs, attribute, describe, integer, need


@dataclass(frozen=True)
class Parts:
    """A scan's attributes by their meaning.

    `sliced` and `stacked` say for each operand and result whether it runs from the end to the
    start: then the first iteration takes, or makes, the part at the end.
    """

    body: Graph
    trip: int
    carried: int
    sliced: tuple[bool, ...]
    stacked: tuple[bool, ...]

    @property
    def captured(self) -> int:
        """The place of the first captured input."""
        return self.carried + len(self.sliced)


def parts_of(attrs: Attrs) -> Parts:
    """The attributes, checked one by one; InvalidModel where one is not what it must be."""
    body = attribute("scan", attrs, "body")
    need(isinstance(body, Graph), "scan", "attribute body must be a graph")
    trip, carried = integer("scan", attrs, "trip"), integer("scan", attrs, "carried")
    need(trip >= 0 and carried >= 0, "scan", f"trip {trip} and carried {carried} must not be < 0")
    flags = [tuple(map(bool, attribute("scan", attrs, name))) for name in ("sliced", "stacked")]
    return Parts(body, trip, carried, flags[0], flags[1])


def _infer(attrs: Attrs, inputs: Sequence[Value]) -> tuple[Type, ...]:
    parts = parts_of(attrs)
    body, carried = parts.body, parts.carried
    need(
        len(inputs) == len(body.inputs) >= parts.captured,
        "scan",
        f"{len(inputs)} inputs do not fit a body that takes {len(body.inputs)}",
    )
    need(
        len(body.outputs) == carried + len(parts.stacked),
        "scan",
        f"the body gives {len(body.outputs)} values, not {carried} + {len(parts.stacked)}",
    )
    for number, (value, inner) in enumerate(zip(inputs, body.inputs, strict=True)):
        is_slice = carried <= number < parts.captured
        shape = (parts.trip, *inner.shape) if is_slice else inner.shape
        need(
            (value.shape, value.dtype) == (shape, inner.dtype),
            "scan",
            f"{describe(value)} does not fit what the body takes, {describe(inner)}",
        )
    results = [body.values[name] for name in body.outputs]
    for before, after in zip(body.inputs[:carried], results, strict=False):
        need(
            (before.shape, before.dtype) == (after.shape, after.dtype),
            "scan",
            f"a state must keep its type: {describe(before)} becomes {describe(after)}",
        )
    states = tuple((value.shape, value.dtype) for value in results[:carried])
    return states + tuple(((parts.trip, *v.shape), v.dtype) for v in results[carried:])


def _reference(attrs: Attrs, arrays: Sequence[Array]) -> tuple[Array, ...]:
    parts = parts_of(attrs)
    body, carried, trip = parts.body, parts.carried, parts.trip
    precision = _precision(body, arrays)
    states = list(arrays[:carried])
    operands, captured = arrays[carried : parts.captured], arrays[parts.captured :]
    rows: list[list[Array]] = [[] for _ in parts.stacked]
    for step in range(trip):
        slices = [
            operand[trip - 1 - step if backward else step]
            for operand, backward in zip(operands, parts.sliced, strict=True)
        ]
        names = [value.name for value in body.inputs]
        found = evaluate(
            body, dict(zip(names, [*states, *slices, *captured], strict=True)), precision
        )
        results = [found[name] for name in body.outputs]
        states = results[:carried]
        for row, result in zip(rows, results[carried:], strict=True):
            row.append(result)
    return (*states, *(_stack(body, parts, number, row) for number, row in enumerate(rows)))


def _stack(body: Graph, parts: Parts, number: int, row: list[Array]) -> Array:
    if not row:
        return np.zeros((0, *body.values[body.outputs[parts.carried + number]].dims))
    return np.stack(row[::-1] if parts.stacked[number] else row)


def _precision(body: Graph, arrays: Sequence[Array]) -> Precision:
    """Float64 arrays for inputs that are narrower mean that all is computed in float64."""
    for value, array in zip(body.inputs, arrays, strict=True):
        if kind(value.dtype) == "float" and array.dtype.itemsize > max(4, itemsize(value.dtype)):
            return "f64"
    floats = [a for a in arrays if kind(from_numpy(a.dtype)) == "float"]
    return "native" if floats else "f64"


def _flops(attrs: Attrs, inputs: Sequence[Value], outputs: Sequence[Value]) -> int:
    parts = parts_of(attrs)
    return parts.trip * sum(_node_flops(parts.body, node) for node in parts.body.nodes)


def _node_flops(body: Graph, node: Node) -> int:
    values = [body.values[name] for name in node.inputs]
    return OPS[node.op].flops(dict(node.attrs), values, node.outputs)


register(Op("scan", "scan", _infer, _reference, _flops, None))
