"""gather_elements: like indices picks along one axis, each element on its own; negative indices
count from the end."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rooftile.ir.graph import Array, Node, Value
from rooftile.ir.tile import Tile
from rooftile.ops.base import Body, Index, Op, Type, register
from rooftile.ops.gather import check_indices, wrapped
from rooftile.ops.rules import Attrs, arity, axis_of, describe, need, per_element


def _infer(attrs: Attrs, inputs: Sequence[Value]) -> tuple[Type, ...]:
    data, indices = arity("gather_elements", inputs, 2)
    axis = axis_of("gather_elements", attrs, data.rank)
    need(
        indices.dtype in ("i32", "i64") and indices.rank == data.rank,
        "gather_elements",
        f"indices {describe(indices)} must be i32 or i64, of the rank of {describe(data)}",
    )
    for dim, (wanted, there) in enumerate(zip(indices.dims, data.dims, strict=True)):
        need(
            dim == axis or wanted <= there,
            "gather_elements",
            f"indices {describe(indices)} reach outside dim {dim} of {describe(data)}",
        )
    return ((indices.shape, data.dtype),)


def _reference(attrs: Attrs, arrays: Sequence[Array]) -> tuple[Array, ...]:
    data, indices = arrays
    axis = attrs["axis"]
    extent = data.shape[axis]
    check_indices("gather_elements", indices, axis, extent)
    within = tuple(
        slice(None) if dim == axis else slice(0, indices.shape[dim]) for dim in range(data.ndim)
    )
    return (np.take_along_axis(data[within], indices % max(extent, 1), axis),)


def _body(node: Node, index: Index, build: Body) -> Tile:
    data, indices = build.inputs
    axis = node.attr("axis")
    place = wrapped(build.arg(1, index), indices.dtype, build.number(data.dims[axis]))
    return build.arg(0, (*index[:axis], place, *index[axis + 1 :]))


register(Op("gather_elements", "gather", _infer, _reference, per_element(0), _body))
