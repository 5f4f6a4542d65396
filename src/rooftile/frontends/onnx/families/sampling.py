"""Sampling between the elements of a tensor, at computed places: GridSample and helpers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rooftile.core.dtype import itemsize
from rooftile.core.symbolic import same
from rooftile.frontends.onnx.call import Call
from rooftile.frontends.onnx.families.nn import channels_last, channels_second
from rooftile.frontends.onnx.registry import reads
from rooftile.ir.graph import Value

_MODES = {"bilinear": "linear", "bicubic": "cubic"}
_CUBIC = -0.75


@dataclass(frozen=True)
class Taps:
    """What a sample reads along one spatial dim: indices (i64, inside it) and weights.

    Both have the shape of the samples and a last dim for the taps.
    """

    indices: Value
    weights: Value


def samples(
    call: Call, rows: Value, start: Value, taps: Sequence[Taps], extents: Sequence[int]
) -> Value:
    """Rows weighted by the taps of every spatial dim, before they are summed.

    `rows` is [elements, channels], `start` the row of a sample's first element, as ranked as the
    samples. Gives [samples..., a dim for the taps of each spatial dim, channels].
    """
    rank = taps[0].indices.rank - 1
    total = call.reshape(start, (*start.dims, *[1] * len(taps)))
    weight: Value | None = None
    for number, tap in enumerate(taps):
        spread = [1] * len(taps)
        spread[number] = tap.indices.dims[-1]
        stride = math.prod(extents[number + 1 :])
        indices = call.reshape(tap.indices, (*tap.indices.dims[:rank], *spread))
        total = call.elementwise("add", total, call.elementwise("mul", indices, stride))
        part = call.reshape(tap.weights, (*tap.weights.dims[:rank], *spread))
        weight = part if weight is None else call.elementwise("mul", weight, part)
    taken = call.emit("gather", rows, total, axis=0)
    if weight is None:
        return taken
    weight = call.cast(call.reshape(weight, (*weight.dims, 1)), rows.dtype)
    return call.elementwise("mul", taken, weight)


def rows_of(call: Call, x: Value) -> Value:
    """[N, C, spatial...] as a row of channels for each element."""
    last = channels_last(call, x)
    return call.reshape(last, (math.prod(last.dims[:-1]), x.dims[1]))


def inside(call: Call, places: Value, extent: int) -> Value:
    """Integer places moved to the nearest one inside a dim."""
    return call.elementwise("min", call.elementwise("max", places, 0), max(extent - 1, 0))


def linear_taps(call: Call, places: Value, extent: int) -> Taps:
    """The two elements around each place; those outside count as zeros."""
    floor = call.emit("floor", places)
    return _zero_outside(call, *_linear(call, places, floor), extent)


@reads("GridSample", since=16)
def grid_sample(call: Call) -> Value:
    """Elements at places that a grid gives, -1 and 1 being the ends of each dim."""
    x, grid, mode = call.input(0), call.input(1), call.text("mode", "linear")
    mode, padding = _MODES.get(mode, mode), call.text("padding_mode", "zeros")
    corners = bool(call.integer("align_corners", 0))
    if mode not in ("linear", "cubic", "nearest"):
        call.invalid(f"mode {mode!r} must be linear, cubic or nearest")
    if padding not in ("zeros", "border", "reflection"):
        call.invalid(f"padding_mode {padding!r} must be zeros, border or reflection")
    rank = x.rank - 2
    pairs = ((grid.dims[-1], rank), (grid.dims[0], x.dims[0]))
    if rank < 1 or grid.rank != x.rank or not all(same(a, b) for a, b in pairs):
        call.invalid(f"grid {list(grid.shape)} does not fit the input {list(x.shape)}")
    if itemsize(grid.dtype) < 4:
        grid = call.cast(grid, "f32")
    batch, extents, places = x.dims[0], x.dims[2:], grid.dims[1:-1]
    count = math.prod(places)
    flat = call.reshape(grid, (batch, count, rank))
    taps = []
    for dim, extent in enumerate(extents):
        turned = rank - 1 - dim  # the grid names the last dim first
        part = call.emit(
            "slice",
            flat,
            starts=(0, 0, turned),
            limits=(batch, count, turned + 1),
            strides=(1, 1, 1),
        )
        taps.append(_grid_taps(call, part, extent, mode, padding, corners))
    start = call.constant(np.arange(batch).reshape(-1, 1) * math.prod(extents), "i64")
    found = samples(call, rows_of(call, x), start, taps, extents)
    total = call.emit("reduce", found, op="sum", dims=tuple(range(2, 2 + rank)))
    return channels_second(call, call.reshape(total, (batch, *places, x.dims[1])))


def _grid_taps(
    call: Call, grid: Value, extent: int, mode: str, padding: str, corners: bool
) -> Taps:
    low, high = (0.0, extent - 1.0) if corners else (-0.5, extent - 0.5)
    shifted = call.elementwise("add", grid, 1)
    if corners:
        place = call.elementwise("mul", call.elementwise("div", shifted, 2), extent - 1)
    else:
        place = call.elementwise("sub", call.elementwise("mul", shifted, extent), 1)
        place = call.elementwise("div", place, 2)
    if mode == "nearest":
        place = call.emit("round", place)
    if padding == "border" and mode != "cubic":  # its taps are clamped alone, as in onnxruntime
        within = call.elementwise("min", call.elementwise("max", place, 0), extent - 1)
        place = _where_outside(call, place, low, high, within)
    elif padding == "reflection":
        place = _reflected(call, place, low, high)
    floor = call.emit("floor", place)
    if mode == "nearest":
        elements, weights = floor, call.constant([[[1]]], place.dtype)
    elif mode == "linear":
        elements, weights = _linear(call, place, floor)
    else:
        elements, weights = _cubic(call, place, floor)
    if padding == "zeros":
        return _zero_outside(call, elements, weights, extent)
    if padding == "reflection":
        elements = call.emit("round", _reflected(call, elements, low, high))
    return Taps(inside(call, call.cast(elements, "i64"), extent), weights)


def _zero_outside(call: Call, elements: Value, weights: Value, extent: int) -> Taps:
    behind = call.elementwise("lt", elements, 0)
    beyond = call.elementwise("lt", extent - 1, elements)
    outside = call.emit("or", behind, beyond)
    weights = call.elementwise("where", outside, call.constant(0, weights.dtype), weights)
    return Taps(inside(call, call.cast(elements, "i64"), extent), weights)


def _linear(call: Call, place: Value, floor: Value) -> tuple[Value, Value]:
    """The element before and the one behind, and their weights, along a new last dim's size."""
    steps = call.constant(np.arange(2).reshape([1] * (place.rank - 1) + [2]), place.dtype)
    rest = call.elementwise("sub", place, floor)
    distance = call.emit("abs", call.elementwise("sub", steps, rest))
    return call.elementwise("add", floor, steps), call.elementwise("sub", 1, distance)


def _cubic(call: Call, place: Value, floor: Value) -> tuple[Value, Value]:
    """Four elements around each place, with the weights of Keys' cubic convolution."""
    shape = [1] * (place.rank - 1) + [4]
    steps = call.constant(np.arange(-1, 3).reshape(shape), place.dtype)
    rest = call.elementwise("sub", place, floor)
    distance = call.emit("abs", call.elementwise("sub", steps, rest))
    near = _polynomial(call, distance, (_CUBIC + 2, -(_CUBIC + 3), 0.0, 1.0))
    far = _polynomial(call, distance, (_CUBIC, -5 * _CUBIC, 8 * _CUBIC, -4 * _CUBIC))
    middle = call.constant(np.reshape([False, True, True, False], shape), "bool")
    return call.elementwise("add", floor, steps), call.elementwise("where", middle, near, far)


def _polynomial(call: Call, x: Value, coefficients: Sequence[float]) -> Value:
    """Horner's rule, the highest power first."""
    total = call.elementwise("mul", x, coefficients[0])
    for factor in coefficients[1:-1]:
        total = call.elementwise("mul", call.elementwise("add", total, factor), x)
    return call.elementwise("add", total, coefficients[-1])


def _where_outside(call: Call, x: Value, low: float, high: float, other: Value) -> Value:
    """x within its bounds, `other` outside."""
    outside = call.emit("or", call.elementwise("lt", x, low), call.elementwise("lt", high, x))
    return call.elementwise("where", outside, other, x)


def _reflected(call: Call, x: Value, low: float, high: float) -> Value:
    """x folded back at both bounds until it is within them."""
    reach = high - low
    if reach <= 0:
        return call.broadcast(call.constant(np.full([1] * x.rank, low), x.dtype), x.dims)
    past = call.elementwise("sub", x, low)
    turns = call.emit("floor", call.elementwise("div", past, 2 * reach))
    past = call.elementwise("sub", past, call.elementwise("mul", turns, 2 * reach))
    back = call.emit("abs", call.elementwise("sub", past, reach))
    folded = call.elementwise("add", call.elementwise("sub", reach, back), low)
    return _where_outside(call, x, low, high, folded)
