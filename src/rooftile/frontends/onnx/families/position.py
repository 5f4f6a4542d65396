"""Ops about positions: the largest element's, a diagonal's, a mask's, the order of a row."""

from __future__ import annotations

import math

import numpy as np

from rooftile.core.dtype import kind
from rooftile.frontends.onnx.call import Call
from rooftile.frontends.onnx.registry import Reader, reads
from rooftile.ir.graph import Value


def positions(call: Call, rank: int, axis: int, extent: int) -> Value:
    """0, 1, ... along one axis, i64, of size 1 along the others."""
    shape = [extent if dim == axis else 1 for dim in range(rank)]
    return call.emit("iota", shape=tuple(shape), axis=axis, dtype="i64")


def position_of(call: Call, x: Value, axis: int, op: str, last: bool = False) -> Value:
    """Where the max or min along an axis lies first or last, i64, the axis kept with size 1.

    NaN is no candidate, but where the first element is NaN the answer is 0 (as in onnxruntime).
    """
    extent = x.dims[axis]
    if extent == 0:
        call.invalid(f"axis {axis} of {list(x.shape)} has no element to choose from")
    floats = kind(x.dtype) == "float"
    valid = x
    if floats:
        worst = -math.inf if op == "max" else math.inf
        valid = call.elementwise("where", call.emit("isnan", x), call.constant(worst, x.dtype), x)
    best = call.emit("reduce", valid, op=op, dims=(axis,))
    place = positions(call, x.rank, axis, extent)
    hit = call.elementwise("eq", x, best)
    nowhere = call.constant(-1 if last else extent, "i64")
    found = call.emit(
        "reduce",
        call.elementwise("where", hit, place, nowhere),
        op="max" if last else "min",
        dims=(axis,),
    )
    if not floats:
        return found
    first = call.emit(
        "slice",
        x,
        starts=(0,) * x.rank,
        limits=tuple(1 if dim == axis else n for dim, n in enumerate(x.dims)),
        strides=(1,) * x.rank,
    )
    return call.elementwise("where", call.emit("isnan", first), call.constant(0, "i64"), found)


def _position(op: str) -> Reader:
    def read(call: Call) -> Value:
        x = call.input(0)
        axis = call.axis(call.integer("axis", 0), x.rank)
        last = bool(call.integer("select_last_index", 0))
        keep = call.integer("keepdims", 1)
        found = position_of(call, call.reshape(x, x.dims or (1,)), axis, op, last)
        kept = [extent for dim, extent in enumerate(found.dims) if keep or dim != axis]
        return call.reshape(found, kept if x.rank else ())

    return read


reads("ArgMax")(_position("max"))
reads("ArgMin")(_position("min"))


@reads("Hardmax")
def hardmax_flat(call: Call) -> Value:
    """Before opset 13 all dims from the axis on count as one row."""
    x = call.input(0)
    axis = call.axis(call.integer("axis", 1), x.rank)
    rows = call.reshape(x, (math.prod(x.dims[:axis]), math.prod(x.dims[axis:])))
    return call.reshape(_hardmax(call, rows, 1), x.dims)


@reads("Hardmax", since=13)
def hardmax(call: Call) -> Value:
    """1 at the first largest element along an axis, else 0."""
    x = call.input(0)
    return _hardmax(call, x, call.axis(call.integer("axis", -1), x.rank))


def _hardmax(call: Call, x: Value, axis: int) -> Value:
    found = position_of(call, x, axis, "max")
    place = positions(call, x.rank, axis, x.dims[axis])
    return call.cast(call.elementwise("eq", place, found), x.dtype)


@reads("OneHot")
def one_hot(call: Call) -> Value:
    """The on value where the index along a new axis is the element; negative ones count back."""
    indices, values = call.input(0), call.input(2)
    depth = int(call.array(1, "depth").reshape(-1)[0])
    if depth < 1 or values.dims != (2,):
        call.invalid(f"depth {depth} must be at least 1, and values hold two elements")
    rank = indices.rank + 1
    axis = call.axis(call.integer("axis", -1), rank)
    whole = call.cast(indices, "i64")
    whole = call.elementwise(
        "where", call.elementwise("lt", whole, 0), call.elementwise("add", whole, depth), whole
    )
    shape = (*indices.dims[:axis], 1, *indices.dims[axis:])
    hit = call.elementwise("eq", call.reshape(whole, shape), positions(call, rank, axis, depth))
    off, on = (
        call.reshape(
            call.emit("slice", values, starts=(n,), limits=(n + 1,), strides=(1,)), (1,) * rank
        )
        for n in (0, 1)
    )
    return call.elementwise("where", hit, on, off)


@reads("Trilu")
def trilu(call: Call) -> Value:
    """Matrices with 0 below (or above, for upper=0) their diagonal number k."""
    x = call.input(0)
    if x.rank < 2:
        call.invalid(f"matrices are needed, not {list(x.shape)}")
    shift = int(call.array(1, "k").reshape(-1)[0]) if call.optional(1) is not None else 0
    shift = max(-(1 << 40), min(shift, 1 << 40))
    rows = call.elementwise("add", positions(call, x.rank, x.rank - 2, x.dims[-2]), shift)
    columns = positions(call, x.rank, x.rank - 1, x.dims[-1])
    order = (rows, columns) if call.integer("upper", 1) else (columns, rows)
    zero = call.constant(np.zeros((1,) * x.rank), x.dtype)
    return call.elementwise("where", call.elementwise("le", *order), x, zero)


@reads("ReverseSequence")
def reverse_sequence(call: Call) -> Value:
    """The first elements along the time axis in reverse, as many as each batch entry says."""
    x, lengths = call.input(0), call.input(1)
    batch = call.axis(call.integer("batch_axis", 1), x.rank)
    time = call.axis(call.integer("time_axis", 0), x.rank)
    if batch == time or lengths.dims != (x.dims[batch],):
        call.invalid(f"lengths {list(lengths.shape)} do not fit axis {batch} of {list(x.shape)}")
    along = [x.dims[batch] if dim == batch else 1 for dim in range(x.rank)]
    count = call.reshape(call.cast(lengths, "i64"), along)
    place = positions(call, x.rank, time, x.dims[time])
    back = call.elementwise("sub", call.elementwise("sub", count, 1), place)
    source = call.elementwise("where", call.elementwise("lt", place, count), back, place)
    return call.emit("gather_elements", x, call.broadcast(source, x.dims), axis=time)


@reads("TopK")
def top_k_by_attribute(call: Call) -> tuple[Value, ...]:
    """k as an attribute, the largest elements."""
    return _top_k(call, call.integer("k"))


@reads("TopK", since=10)
def top_k(call: Call) -> tuple[Value, ...]:
    """The k largest or smallest elements along an axis, in order, and where they lie.

    Equal elements keep their order, NaN counts as larger than every number. The order is given
    even where the model does not ask for it (sorted=0).
    """
    call.ignore("sorted")
    return _top_k(call, int(call.array(1, "k").reshape(-1)[0]))


def _top_k(call: Call, count: int) -> tuple[Value, ...]:
    x = call.input(0)
    axis = call.axis(call.integer("axis", -1), x.rank)
    if not 0 <= count <= x.dims[axis]:
        call.invalid(f"k {count} is not within axis {axis} of {list(x.shape)}")
    descending = bool(call.integer("largest", 1))
    order = call.emit("argsort", x, axis=axis, count=count, descending=descending)
    return call.emit("gather_elements", x, order, axis=axis), order


@reads("GatherND")
def gather_nd(call: Call) -> Value:
    """Slices of the data picked by rows of indices, batch entry by batch entry."""
    data, indices = call.input(0), call.input(1)
    batch = call.integer("batch_dims", 0)
    indices = indices if indices.dtype in ("i32", "i64") else call.cast(indices, "i64")
    return call.emit("gather_nd", data, indices, batch=batch)
