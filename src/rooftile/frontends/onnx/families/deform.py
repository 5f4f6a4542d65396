"""DeformConv: a convolution whose taps are moved by offsets and weighted by a mask."""

from __future__ import annotations

import math

import numpy as np

from rooftile.frontends.onnx.call import Call
from rooftile.frontends.onnx.families.nn import Window, window_of
from rooftile.frontends.onnx.families.sampling import linear_taps, samples
from rooftile.frontends.onnx.registry import reads
from rooftile.ir.graph import Value


@reads("DeformConv", since=19)
def deform_conv(call: Call) -> Value:
    """Every tap is sampled between the elements; what lies outside the input is 0."""
    x, w, offset = call.input(0), call.input(1), call.input(2)
    bias, mask = call.optional(3), call.optional(4)
    groups, parts = call.integer("group", 1), call.integer("offset_group", 1)
    kernel = call.ints("kernel_shape", w.dims[2:])
    rank, taps = x.rank - 2, math.prod(kernel)
    if rank < 1 or w.rank != x.rank or kernel != w.dims[2:]:
        call.invalid(f"weights {list(w.shape)} do not fit the input {list(x.shape)}")
    channels, features = x.dims[1], w.dims[0]
    if min(groups, parts) < 1 or channels % parts or features % groups:
        call.invalid(f"{groups} groups or {parts} offset groups do not divide the channels")
    if w.dims[1] * groups != channels:
        call.invalid(f"weights {list(w.shape)} in {groups} groups do not fit {channels} channels")
    window = window_of(call, x.dims[2:], kernel)
    batch, places = x.dims[0], offset.dims[2:]
    if offset.dims[:2] != (batch, parts * taps * rank) or offset.rank != x.rank:
        call.invalid(f"offset {list(offset.shape)} does not fit {taps} taps of {list(x.shape)}")
    count = math.prod(places)
    columns = _columns(call, x, offset, window, parts)
    if mask is not None:
        if mask.dims != (batch, parts * taps, *places):
            call.invalid(f"mask {list(mask.shape)} does not fit offset {list(offset.shape)}")
        weight = call.reshape(mask, (batch, parts, taps, count, 1))
        columns = call.elementwise("mul", columns, weight)
    turned = call.transpose(columns, (0, 3, 1, 4, 2))  # batch, place, group, channel, tap
    each = channels // groups
    columns = call.reshape(turned, (batch, count, groups, each, taps))
    weights = call.reshape(w, (groups, features // groups, each, taps))
    result = call.emit(
        "dot",
        columns,
        weights,
        lhs_contract=(3, 4),
        rhs_contract=(2, 3),
        lhs_batch=(2,),
        rhs_batch=(0,),
    )
    result = call.reshape(call.transpose(result, (1, 0, 3, 2)), (batch, features, *places))
    if bias is None:
        return result
    return call.elementwise("add", result, call.reshape(bias, (features, *[1] * rank)))


def _columns(call: Call, x: Value, offset: Value, window: Window, parts: int) -> Value:
    """What each tap reads: [batch, offset groups, taps, places, channels of a group]."""
    batch, channels, *extents = x.dims
    rank, places, taps = len(extents), offset.dims[2:], math.prod(window.kernel)
    count, each = math.prod(places), channels // parts
    split = call.reshape(x, (batch, parts, each, math.prod(extents)))
    rows = call.reshape(
        call.transpose(split, (0, 1, 3, 2)), (math.prod(split.dims[:2]) * math.prod(extents), each)
    )
    offsets = call.reshape(offset, (batch, parts, taps, rank, count))
    grid = np.indices(places).reshape(rank, count)
    steps = np.indices(window.kernel).reshape(rank, taps)
    found = []
    for dim, extent in enumerate(extents):
        base = grid[dim] * window.strides[dim] - window.low[dim]
        base = base[None, :] + steps[dim][:, None] * window.dilations[dim]
        starts, limits = [0] * 5, list(offsets.dims)
        starts[3], limits[3] = dim, dim + 1
        part = call.emit(
            "slice", offsets, starts=tuple(starts), limits=tuple(limits), strides=(1,) * 5
        )
        part = call.reshape(part, (batch, parts, taps, count, 1))
        place = call.constant(base[None, None, :, :, None], offset.dtype)
        found.append(linear_taps(call, call.elementwise("add", part, place), extent))
    numbers = np.arange(batch * parts).reshape(batch, parts, 1, 1)
    start = call.constant(numbers * math.prod(extents), "i64")
    sampled = samples(call, rows, start, found, extents)
    total = call.emit("reduce", sampled, op="sum", dims=tuple(range(4, 4 + rank)))
    return call.reshape(total, (batch, parts, taps, count, each))
