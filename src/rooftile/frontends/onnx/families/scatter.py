"""Scatter and its kin: updates written into a copy of the data."""

from __future__ import annotations

from rooftile.frontends.onnx.call import Call
from rooftile.frontends.onnx.families.position import positions
from rooftile.frontends.onnx.registry import reads
from rooftile.ir.graph import Value

_COMBINE = {"none": "", "add": "add", "mul": "mul", "max": "max", "min": "min"}


def _reduction(call: Call) -> str:
    word = call.text("reduction", "none")
    if word not in _COMBINE:
        call.invalid(f"reduction must be one of {', '.join(_COMBINE)}, not {word!r}")
    return _COMBINE[word]


def _indices(call: Call) -> Value:
    indices = call.input(1)
    return indices if indices.dtype in ("i32", "i64") else call.cast(indices, "i64")


@reads("Scatter")
@reads("ScatterElements")
def scatter_elements(call: Call) -> Value:
    """Each update replaces (or joins) the element whose place along one axis its index gives."""
    data, indices, updates = call.input(0), _indices(call), call.input(2)
    axis, combine = call.axis(call.integer("axis", 0), data.rank), _reduction(call)
    if 0 in updates.dims:
        return data
    return call.emit("scatter_elements", data, indices, updates, axis=axis, combine=combine)


@reads("ScatterND")
def scatter_nd(call: Call) -> Value:
    """Each update replaces (or joins) the slice that a row of indices names."""
    data, indices, updates, combine = call.input(0), _indices(call), call.input(2), _reduction(call)
    if 0 in updates.dims:
        return data
    if indices.rank == 0:
        call.invalid("indices need at least one dim")
    if indices.dims[-1] == 0:  # no dim is indexed: each update is a whole
        data, updates = call.reshape(data, (1, *data.dims)), updates
        indices = call.constant([[0]], "i64")
        indices = call.broadcast(
            call.reshape(indices, (1,) * call.input(1).rank), (*call.input(1).dims[:-1], 1)
        )
        found = call.emit("scatter", data, indices, updates, combine=combine)
        return call.reshape(found, call.input(0).dims)
    return call.emit("scatter", data, indices, updates, combine=combine)


@reads("TensorScatter")
def tensor_scatter(call: Call) -> Value:
    """Rows of a cache replaced from an index on that each batch entry gives, circularly or not."""
    cache, update, starts = call.input(0), call.input(1), call.optional(2)
    axis, mode = call.axis(call.integer("axis", -2), cache.rank), call.text("mode", "linear")
    if mode not in ("linear", "circular") or axis == 0 or update.rank != cache.rank:
        call.invalid(f"mode {mode!r}, axis {axis} or the update {list(update.shape)} do not fit")
    if 0 in update.dims:
        return cache
    place = positions(call, cache.rank, axis, update.dims[axis])
    if starts is not None:
        start = call.reshape(call.cast(starts, "i64"), (cache.dims[0],) + (1,) * (cache.rank - 1))
        place = call.elementwise("add", place, start)
    if mode == "circular":
        extent = cache.dims[axis]
        whole = call.elementwise("mul", call.elementwise("div", place, extent), extent)
        place = call.elementwise("sub", place, whole)
    place = call.broadcast(place, update.dims)
    return call.emit("scatter_elements", cache, place, update, axis=axis, combine="")
