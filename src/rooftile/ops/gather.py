"""gather: elements of one axis picked by integer indices; negative ones count from the end."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rooftile.core.dtype import DType, kind
from rooftile.core.errors import InvalidInput
from rooftile.ir.graph import Array, Node, Value
from rooftile.ir.tile import Cast, Const, Map, Tile
from rooftile.ops.base import Body, Index, Op, Type, register
from rooftile.ops.rules import Attrs, arity, axis_of, describe, need, per_element


def _infer(attrs: Attrs, inputs: Sequence[Value]) -> tuple[Type, ...]:
    data, indices = arity("gather", inputs, 2)
    axis = axis_of("gather", attrs, data.rank)
    fits = indices.dtype in ("i32", "i64", "u32")
    need(fits, "gather", f"indices {describe(indices)} must be i32, i64 or u32")
    return ((data.shape[:axis] + indices.shape + data.shape[axis + 1 :], data.dtype),)


def _reference(attrs: Attrs, arrays: Sequence[Array]) -> tuple[Array, ...]:
    data, indices = arrays
    axis = attrs["axis"]
    check_indices("gather", indices, axis, data.shape[axis])
    return (np.take(data, indices, axis),)


def check_indices(op: str, indices: Array, axis: int, extent: int) -> None:
    """InvalidInput for an index outside `-extent .. extent-1`."""
    outside = (indices < -extent) | (indices >= extent)
    if outside.any():
        raise InvalidInput(
            f"{op}: index {indices[outside].flat[0]} is outside axis {axis} of {extent} elements"
        )


def wrapped(chosen: Tile, dtype: DType, extent: Tile) -> Tile:
    """An index tile of type `dtype` as i64, negative ones counted from the end."""
    if dtype != "i64":
        chosen = Cast(chosen, "i64")
    if kind(dtype) == "uint":
        return chosen
    negative = Map("lt", (chosen, Const(0, "i64")))
    return Map("where", (negative, Map("add", (chosen, extent)), chosen))


def _body(node: Node, index: Index, build: Body) -> Tile:
    data, indices = build.inputs
    axis = node.attr("axis")
    chosen = build.arg(1, index[axis : axis + indices.rank])
    place = wrapped(chosen, indices.dtype, build.number(data.dims[axis]))
    return build.arg(0, (*index[:axis], place, *index[axis + indices.rank :]))


register(Op("gather", "gather", _infer, _reference, per_element(0), _body))
