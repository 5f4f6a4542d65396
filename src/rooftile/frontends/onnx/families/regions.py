"""Pooling of regions of interest: RoiAlign samples them, MaxRoiPool cuts them into bins."""

from __future__ import annotations

import math

import numpy as np

from rooftile.core.dtype import itemsize
from rooftile.frontends.onnx.call import Call
from rooftile.frontends.onnx.families.sampling import Taps, inside, rows_of, samples
from rooftile.frontends.onnx.registry import reads
from rooftile.ir.graph import Array, Value


@reads("RoiAlign", since=10)
def roi_align(call: Call) -> Value:
    """The mean or maximum of samples in each bin; before opset 16 bins start at whole pixels."""
    return _aligned(call, call.text("coordinate_transformation_mode", "output_half_pixel"))


@reads("RoiAlign", since=16)
def roi_align_half_pixel(call: Call) -> Value:
    """The mean or maximum of samples in each bin."""
    return _aligned(call, call.text("coordinate_transformation_mode", "half_pixel"))


def _aligned(call: Call, coordinates: str) -> Value:
    x, regions, batch = call.input(0), call.input(1), call.input(2)
    mode, ratio = call.text("mode", "avg"), call.integer("sampling_ratio", 0)
    sizes = call.integer("output_height", 1), call.integer("output_width", 1)
    scale = call.number("spatial_scale", 1.0)
    if coordinates not in ("half_pixel", "output_half_pixel") or mode not in ("avg", "max"):
        call.invalid(f"mode {mode!r} or coordinate_transformation_mode {coordinates!r} is unknown")
    if x.rank != 4 or regions.rank != 2 or regions.dims[1] != 4 or min(*sizes, ratio + 1) < 1:
        call.invalid(f"regions {list(regions.shape)} do not fit the input {list(x.shape)}")
    if batch.shape != regions.shape[:1]:
        call.invalid(f"batch_indices {list(batch.shape)} must have one number a region")
    if itemsize(regions.dtype) < 4:
        regions = call.cast(regions, "f32")
    half = coordinates == "half_pixel"
    heights, counts_h = _bins(call, regions, 1, x.dims[2], sizes[0], scale, half, ratio)
    widths, counts_w = _bins(call, regions, 0, x.dims[3], sizes[1], scale, half, ratio)
    number = regions.dims[0]
    call.check_size((number, x.dims[1], *sizes), x.dtype)
    tall, wide = heights.indices.dims[2], widths.indices.dims[2]
    taps = [
        _spread(call, heights, (number, sizes[0], 1, tall, 1)),
        _spread(call, widths, (number, 1, sizes[1], 1, wide)),
    ]
    start = call.elementwise("mul", call.cast(batch, "i64"), math.prod(x.dims[2:]))
    start = call.reshape(start, (number, 1, 1, 1, 1))
    found = samples(call, rows_of(call, x), start, taps, x.dims[2:])
    dims = (3, 4, 5, 6)  # the samples of a bin, and the elements around each
    op, unused = ("max", -math.inf) if mode == "max" else ("sum", 0.0)
    used = _used(counts_h, tall)[:, :, None] & _used(counts_w, wide)[:, None, :]
    if not used.all():
        mask = call.constant(used.reshape(-1, 1, 1, tall, wide, 1, 1, 1), "bool")
        found = call.elementwise("where", mask, found, call.constant(unused, x.dtype))
    result = call.emit("reduce", found, op=op, dims=dims)
    counts = (counts_h * counts_w).reshape(-1, *[1] * 7)
    if mode == "avg":
        result = call.elementwise("div", result, call.constant(np.maximum(counts, 1), x.dtype))
    if not counts.all():
        result = call.elementwise("where", call.constant(counts > 0, "bool"), result, 0.0)
    result = call.reshape(result, (number, *sizes, x.dims[1]))
    return call.transpose(result, (0, 3, 1, 2))


def _used(counts: Array, most: int) -> Array:
    """[regions, samples]: which of the samples of a bin count."""
    return np.asarray(np.arange(most) < counts.reshape(-1, 1))


def _spread(call: Call, taps: Taps, shape: tuple[int, ...]) -> Taps:
    """The samples along one dim, as those of a region's height and width together."""
    return Taps(call.reshape(taps.indices, (*shape, 2)), call.reshape(taps.weights, (*shape, 2)))


def _bins(
    call: Call,
    regions: Value,
    column: int,
    extent: int,
    size: int,
    scale: float,
    half: bool,
    ratio: int,
) -> tuple[Taps, Array]:
    """The samples of each bin along one dim, [regions, bins, samples, 2], and how many count.

    Without a sampling ratio their number follows from the size of each region.
    """
    offset, number = 0.5 if half else 0.0, regions.dims[0]
    first, last = (_column(call, regions, part, scale, offset) for part in (column, column + 2))
    length = call.emit("sub", last, first)
    if not half:
        length = call.elementwise("max", length, 1)
    each = call.elementwise("div", length, size)
    counts = np.full(max(number, 1), ratio, np.int64)
    if not ratio:
        with np.errstate(invalid="ignore"):  # regions of NaN
            sizes = np.ceil(call.content(each, "rois").reshape(-1))
            counts = np.maximum(sizes, 0).astype(np.int64)
    most = max(1, int(counts.max(initial=1)))
    call.check_size((number, size, most, 4), "f64", "the table of its samples")
    bins = call.constant(np.arange(size).reshape(1, -1, 1), regions.dtype)
    steps = (np.arange(most) + 0.5).reshape(1, 1, -1)
    place = call.elementwise("add", first, call.elementwise("mul", bins, each))
    within = call.elementwise("mul", each, call.constant(steps, regions.dtype))
    spread = call.constant(np.maximum(counts, 1).reshape(-1, 1, 1), regions.dtype)
    place = call.elementwise("add", place, call.elementwise("div", within, spread))
    return _around(call, place, extent), counts


def _column(call: Call, regions: Value, column: int, scale: float, offset: float) -> Value:
    part = call.emit(
        "slice",
        regions,
        starts=(0, column),
        limits=(regions.dims[0], column + 1),
        strides=(1, 1),
    )
    part = call.reshape(part, (regions.dims[0], 1, 1))
    return call.elementwise("sub", call.elementwise("mul", part, scale), offset)


def _around(call: Call, place: Value, extent: int) -> Taps:
    """The two elements around each place; nothing more than one element outside counts."""
    outside = call.emit(
        "or", call.elementwise("lt", place, -1), call.elementwise("lt", extent, place)
    )
    place = call.elementwise("max", place, 0)
    floor = call.emit("floor", place)
    at_end = call.elementwise("le", extent - 1, floor)
    rest = call.elementwise("where", at_end, 0, call.emit("sub", place, floor))
    rest, outside, floor = (call.reshape(part, (*part.dims, 1)) for part in (rest, outside, floor))
    steps = call.constant([[[[0, 1]]]], place.dtype)
    weights = call.elementwise("sub", 1, call.emit("abs", call.elementwise("sub", steps, rest)))
    weights = call.elementwise("where", outside, 0, weights)
    elements = call.cast(call.elementwise("add", floor, steps), "i64")
    return Taps(inside(call, elements, extent), weights)


@reads("MaxRoiPool")
def max_roi_pool(call: Call) -> Value:
    """The maximum of each bin of each region; an empty bin gives 0."""
    x, regions = call.input(0), call.input(1)
    sizes, scale = call.ints("pooled_shape"), call.number("spatial_scale", 1.0)
    fits = x.rank == 4 and regions.rank == 2 and regions.dims[1] == 5
    if not fits or len(sizes) != 2 or min(sizes) < 1:
        call.invalid(f"regions {list(regions.shape)} or pooled_shape {list(sizes)} do not fit")
    number, channels = regions.dims[0], x.dims[1]
    call.check_size((number, channels, *sizes), x.dtype)
    batch = call.reshape(_cut_column(call, regions, 0), (number,))
    chosen = call.emit("gather", x, call.cast(batch, "i64"), axis=0)
    rows = _covered(call, regions, 2, x.dims[2], sizes[0], scale)
    columns = _covered(call, regions, 1, x.dims[3], sizes[1], scale)
    height, width = x.dims[2:]
    least = call.constant(-math.inf, x.dtype)
    apart = call.reshape(chosen, (number, channels, height, 1, width))
    mask = call.reshape(columns, (number, 1, 1, sizes[1], width))
    best = call.emit("reduce", call.elementwise("where", mask, apart, least), op="max", dims=(4,))
    apart = call.reshape(best, (number, channels, 1, height, sizes[1]))
    mask = call.reshape(rows, (number, 1, sizes[0], height, 1))
    best = call.emit("reduce", call.elementwise("where", mask, apart, least), op="max", dims=(3,))
    best = call.reshape(best, (number, channels, *sizes))
    filled = [
        call.emit("reduce", call.cast(part, "i32"), op="max", dims=(2,)) for part in (rows, columns)
    ]
    across = call.reshape(filled[0], (number, 1, sizes[0], 1))
    along = call.reshape(filled[1], (number, 1, 1, sizes[1]))
    there = call.cast(call.elementwise("mul", across, along), "bool")
    return call.elementwise("where", there, best, 0)


def _cut_column(call: Call, regions: Value, column: int) -> Value:
    limits = (regions.dims[0], column + 1)
    return call.emit("slice", regions, starts=(0, column), limits=limits, strides=(1, 1))


def _covered(
    call: Call, regions: Value, column: int, extent: int, size: int, scale: float
) -> Value:
    """Which elements each bin covers along one dim: [regions, bins, extent].

    Bins start and end at whole elements: integers, so that no rounding adds one.
    """
    ends = []
    for part in (column, column + 2):
        scaled = call.elementwise("mul", _cut_column(call, regions, part), scale)
        whole = call.emit("floor", call.elementwise("add", scaled, 0.5))
        ends.append(call.reshape(call.cast(whole, "i64"), (regions.dims[0], 1, 1)))
    first, last = ends
    length = call.elementwise("max", call.elementwise("add", call.emit("sub", last, first), 1), 1)
    bins = np.arange(size).reshape(1, -1, 1)
    start = call.elementwise("mul", call.constant(bins, "i64"), length)
    end = call.elementwise("mul", call.constant(bins + 1, "i64"), length)
    start = call.elementwise("div", start, size)
    end = call.elementwise("div", call.elementwise("add", end, size - 1), size)
    start, end = (call.emit("add", part, first) for part in (start, end))
    place = call.constant(np.arange(extent).reshape(1, 1, -1), "i64")
    return call.emit(
        "and", call.elementwise("le", start, place), call.elementwise("lt", place, end)
    )
