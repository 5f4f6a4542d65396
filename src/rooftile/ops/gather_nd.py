"""gather_nd: slices picked by rows of integers, one for each of the leading dims behind the batch.

data [batch..., D0, D1, ..., rest...] and indices [batch..., places..., n] give
[batch..., places..., dims of data behind the n indexed ones]. Negative indices count from the end.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from rooftile.core.affine import Affine
from rooftile.core.errors import InvalidInput
from rooftile.ir.graph import Array, Node, Value
from rooftile.ir.tile import Cast, Const, Map, Tile
from rooftile.ops.base import Body, Index, Op, Type, register
from rooftile.ops.rules import Attrs, arity, describe, integer, need, per_element


def wrapped(index: Tile, dtype: str, extent: Tile) -> Tile:
    """An index as i64, counted from the front."""
    index = index if dtype == "i64" else Cast(index, "i64")
    negative = Map("lt", (index, Const(0, "i64")))
    return Map("where", (negative, Map("add", (index, extent)), index))


def _infer(attrs: Attrs, inputs: Sequence[Value]) -> tuple[Type, ...]:
    data, indices = arity("gather_nd", inputs, 2)
    batch = integer("gather_nd", attrs, "batch")
    need(
        indices.dtype in ("i32", "i64") and indices.rank >= 1,
        "gather_nd",
        f"indices {describe(indices)} must be i32 or i64, of at least one dim",
    )
    depth = indices.dims[-1]
    need(
        0 <= batch < min(data.rank, indices.rank)
        and data.shape[:batch] == indices.shape[:batch]
        and batch + depth <= data.rank,
        "gather_nd",
        f"indices {describe(indices)} do not fit {describe(data)} with {batch} batch dims",
    )
    return ((indices.shape[:-1] + data.shape[batch + depth :], data.dtype),)


def _reference(attrs: Attrs, arrays: Sequence[Array]) -> tuple[Array, ...]:
    data, indices = arrays
    batch, depth = attrs["batch"], indices.shape[-1]
    lead, places = indices.shape[:batch], indices.shape[batch:-1]
    extents = np.array(data.shape[batch : batch + depth], np.int64)
    outside = (indices < -extents) | (indices >= extents)
    if outside.any():
        row = indices[outside.any(axis=-1)][0]
        raise InvalidInput(f"gather_nd: index {row.tolist()} is outside {extents.tolist()}")
    rows = np.where(indices < 0, indices + extents, indices).reshape(
        math.prod(lead), math.prod(places), depth
    )
    flat = data.reshape(math.prod(lead), *data.shape[batch:])
    entry = np.arange(len(flat))[:, None]
    where = (entry, *(rows[..., n] for n in range(depth)))
    found = flat[where]
    if not depth:
        found = np.repeat(flat[:, None], math.prod(places), axis=1)
    return (found.reshape((*lead, *places, *data.shape[batch + depth :])),)


def _body(node: Node, index: Index, build: Body) -> Tile:
    data, indices = build.inputs
    batch, depth = node.attr("batch"), indices.dims[-1]
    row, rest = index[: indices.rank - 1], index[indices.rank - 1 :]
    chosen = tuple(
        wrapped(
            build.arg(1, (*row, Affine((), n))), indices.dtype, build.number(data.dims[batch + n])
        )
        for n in range(depth)
    )
    return build.arg(0, (*index[:batch], *chosen, *rest))


register(Op("gather_nd", "gather", _infer, _reference, per_element(0), _body))
