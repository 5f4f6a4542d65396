"""Pooling: the maximum, average or norm of windows, over all channels or across them."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from rooftile.core.dtype import kind, to_numpy
from rooftile.frontends.onnx.call import Call
from rooftile.frontends.onnx.families.nn import (
    Window,
    channels_last,
    channels_second,
    window_of,
)
from rooftile.frontends.onnx.families.reduce import mean_of, total
from rooftile.frontends.onnx.registry import reads
from rooftile.ir.graph import Array, Value


@reads("MaxPool")
def max_pool(call: Call) -> tuple[Value, ...]:
    """The maximum of each window, and where it was."""
    by_columns = bool(call.integer("storage_order", 0))
    x = call.input(0)
    window = _pool_window(call, x)
    result = channels_second(call, _windows(call, channels_last(call, x), "max", window))
    return (result, _positions(call, x, window, by_columns)) if call.outputs > 1 else (result,)


def _positions(call: Call, x: Value, window: Window, by_columns: bool) -> Value:
    """The index into the whole tensor of the maximum of each window, the first one of equals.

    The windows are laid out with their taps along a last dim. Taps outside the input never win.
    """
    extents = x.dims[2:]
    places = _places(window, extents)
    if 0 in (*x.dims[:2], *places):
        return call.constant(np.zeros((*x.dims[:2], *places)), "i64")
    call.check_size((*places, *window.kernel, 4), "i64", "the table of its windows")
    taps = list(np.ndindex(*window.kernel))
    inside = np.stack([_inside(window, extents, places, tap) for tap in taps], -1)
    where = np.stack([_index(window, extents, places, tap, False) for tap in taps], -1)
    flat = call.reshape(x, (*x.dims[:2], math.prod(extents)))
    chosen = call.constant(np.where(inside, where, 0), "i64")
    laid_out = call.emit("gather", flat, chosen, axis=2)
    laid_out = call.elementwise("where", call.constant(inside, "bool"), laid_out, _least(x.dtype))
    best = call.emit("reduce", laid_out, op="max", dims=(laid_out.rank - 1,))
    wins = call.elementwise("and", call.emit("eq", laid_out, best), call.constant(inside, "bool"))
    numbers = call.constant(np.arange(len(taps)), "i64")
    numbers = call.elementwise("where", wins, numbers, len(taps) - 1)
    first = call.emit("reduce", numbers, op="min", dims=(laid_out.rank - 1,))
    if by_columns:
        where = np.stack([_index(window, extents, places, tap, True) for tap in taps], -1)
    origin = where[..., :1]
    steps = call.constant((where - origin).reshape(-1, len(taps))[0], "i64")
    offset = call.emit("gather", steps, first, axis=0)
    channel = np.arange(math.prod(x.dims[:2])).reshape(*x.dims[:2], *[1] * (len(places) + 1))
    start = call.constant(channel * math.prod(extents) + origin, "i64")
    return call.reshape(call.elementwise("add", offset, start), (*x.dims[:2], *places))


def _least(dtype: str) -> float:
    """The identity of the maximum."""
    return -math.inf if kind(dtype) == "float" else int(np.iinfo(str(to_numpy(dtype))).min)


def _places(window: Window, extents: Sequence[int]) -> list[int]:
    """How many windows there are along each dim."""
    found = []
    for dim, extent in enumerate(extents):
        span = window.dilations[dim] * (window.kernel[dim] - 1) + 1
        whole = extent + window.low[dim] + window.high[dim]
        found.append((whole - span) // window.strides[dim] + 1)
    return found


def _coordinates(window: Window, places: Sequence[int], tap: Sequence[int]) -> list[Array]:
    """What a tap of each window reads: a coordinate a dim, along a dim of its own."""
    found = []
    for dim, part in enumerate(tap):
        first = part * window.dilations[dim] - window.low[dim]
        shape = [-1 if other == dim else 1 for other in range(len(tap))]
        found.append((first + np.arange(places[dim]) * window.strides[dim]).reshape(shape))
    return found


def _inside(
    window: Window, extents: Sequence[int], places: Sequence[int], tap: Sequence[int]
) -> Array:
    """Which windows have this tap inside the input."""
    found = np.ones(places, np.bool_)
    for place, extent in zip(_coordinates(window, places, tap), extents, strict=True):
        found &= (place >= 0) & (place < extent)
    return found


def _index(
    window: Window,
    extents: Sequence[int],
    places: Sequence[int],
    tap: Sequence[int],
    by_columns: bool,
) -> Array:
    """The index within a channel that a tap reads, row-major or with the first dim fastest."""
    found = np.zeros(places, np.int64)
    parts = list(zip(_coordinates(window, places, tap), extents, strict=True))
    for place, extent in reversed(parts) if by_columns else parts:
        found = found * extent + place
    return found


@reads("AveragePool")
def average_pool(call: Call) -> Value:
    """The sum of each window times 1 / the number of elements that count."""
    x = call.input(0)
    window = _pool_window(call, x)
    with_pads = bool(call.integer("count_include_pad", 0))
    sums = _windows(call, channels_last(call, x), "sum", window)
    call.check_size((*sums.dims[1:-1], 4), "f64", "the table of its windows")
    counts = np.ones((1,) * x.rank)
    for dim, extent in enumerate(x.dims[2:]):
        along = [1] * x.rank
        along[dim + 1] = -1
        counts = counts * _counts(window, dim, extent, with_pads).reshape(along)
    if counts.size and np.all(counts == counts.flat[0]):
        counts = counts.ravel()[:1].reshape((1,) * x.rank)
    return channels_second(call, call.emit("mul", sums, call.constant(1 / counts, x.dtype)))


def _counts(
    window: Window, dim: int, extent: int, with_pads: bool
) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    """How many elements of each window along one dim count."""
    low, stride = window.low[dim], window.strides[dim]
    if not low and not window.high[dim]:
        return np.array([window.kernel[dim]], np.float64)
    span = window.dilations[dim] * (window.kernel[dim] - 1) + 1
    places = (extent + low + window.high[dim] - span) // stride + 1
    first, last = (-low, extent + window.asked[dim]) if with_pads else (0, extent)
    start = np.arange(int(places)) * stride - low
    taps = [  # that lie before the first element that counts, and before the end
        np.clip(-((start - int(bound)) // window.dilations[dim]), 0, window.kernel[dim])
        for bound in (first, last)
    ]
    return np.asarray(np.maximum(1, taps[1] - taps[0]), np.float64)


def _pool_window(call: Call, x: Value) -> Window:
    if x.rank < 3:
        call.invalid(f"input {list(x.shape)} needs a batch, channels and spatial dims")
    return window_of(call, x.dims[2:], call.ints("kernel_shape"))


def _windows(call: Call, x: Value, op: str, window: Window) -> Value:
    """reduce_window over the spatial dims of a tensor with channels last."""
    return call.emit(
        "reduce_window",
        x,
        op=op,
        window=(1, *window.kernel, 1),
        strides=(1, *window.strides, 1),
        pads_low=(0, *window.low, 0),
        pads_high=(0, *window.high, 0),
        dilations=(1, *window.dilations, 1),
    )


@reads("GlobalAveragePool")
def global_average_pool(call: Call) -> Value:
    """The mean over the spatial dims."""
    x = call.input(0)
    return mean_of(call, x, range(2, x.rank))


@reads("GlobalMaxPool")
def global_max_pool(call: Call) -> Value:
    """The maximum over the spatial dims."""
    x = call.input(0)
    return call.emit("reduce", x, op="max", dims=tuple(range(2, x.rank)))


@reads("GlobalLpPool")
def global_lp_pool(call: Call) -> Value:
    """The p-norm over the spatial dims."""
    x, p = call.input(0), call.number("p", 2.0) if call.opset < 2 else call.integer("p", 2)
    return _root(call, total(call, _power(call, x, p), range(2, x.rank)), p)


@reads("LpPool")
def lp_pool(call: Call) -> Value:
    """The p-norm of each window."""
    x, p = call.input(0), call.number("p", 2.0) if call.opset < 2 else call.integer("p", 2)
    window = _pool_window(call, x)
    sums = _windows(call, channels_last(call, _power(call, x, p)), "sum", window)
    return channels_second(call, _root(call, sums, p))


def _power(call: Call, x: Value, p: float) -> Value:
    """|x| to the power of p."""
    if p < 1:
        call.invalid(f"p must be at least 1, not {p}")
    if p == 2:
        return call.emit("mul", x, x)
    size = call.emit("abs", x)
    return size if p == 1 else call.elementwise("pow", size, call.constant(p, x.dtype))


def _root(call: Call, x: Value, p: float) -> Value:
    if p == 2:
        return call.emit("sqrt", x)
    return x if p == 1 else call.elementwise("pow", x, call.constant(1 / p, x.dtype))


@reads("LRN")
def lrn(call: Call) -> Value:
    """x over a power of the mean square of the channels around."""
    x, size = call.input(0), call.integer("size")
    if x.rank < 2 or size < 1:
        call.invalid(f"size {size} or an input of {list(x.shape)} is too small")
    alpha, beta, bias = (
        call.number("alpha", 1e-4),
        call.number("beta", 0.75),
        call.number("bias", 1),
    )
    ones, zeros = [1] * x.rank, [0] * x.rank
    farthest = max(0, x.dims[1] - 1)
    low, high = min((size - 1) // 2, farthest), min(size // 2, farthest)
    sums = call.emit(
        "reduce_window",
        call.emit("mul", x, x),
        op="sum",
        window=(1, low + 1 + high, *ones[2:]),
        strides=tuple(ones),
        pads_low=(0, low, *zeros[2:]),
        pads_high=(0, high, *zeros[2:]),
        dilations=tuple(ones),
    )
    base = call.elementwise("add", call.elementwise("mul", sums, alpha / size), bias)
    return call.elementwise("div", x, call.elementwise("pow", base, call.constant(beta, x.dtype)))


@reads("MaxUnpool")
def max_unpool(call: Call) -> Value:
    """Zeros, with the elements of a pooled tensor where its indices say they came from."""
    x, indices, kernel = call.input(0), call.input(1), call.ints("kernel_shape")
    rank = len(kernel)
    strides, pads = call.ints("strides", [1] * rank), call.ints("pads", [0] * 2 * rank)
    if x.rank != rank + 2 or len(strides) != rank or len(pads) != 2 * rank:
        call.invalid(f"kernel_shape, strides and pads do not fit an input of {list(x.shape)}")
    if indices.shape != x.shape:
        call.invalid(f"indices {list(indices.shape)} must have the shape {list(x.shape)}")
    dims = list(x.dims[:2])
    for dim, extent in enumerate(x.dims[2:]):
        pad = pads[dim] + pads[rank + dim]
        dims.append((extent - 1) * strides[dim] - pad + kernel[dim])
    if any(extent < 0 for extent in dims):
        call.invalid(f"pads {list(pads)} cut off more than there is")
    count = math.prod(x.dims)
    empty = call.broadcast(call.constant([0], x.dtype), (math.prod(dims),))
    where, values = call.reshape(indices, (count, 1)), call.reshape(x, (count,))
    result = call.emit("scatter", empty, where, values, combine="") if count else empty
    result = call.reshape(result, dims)
    if call.optional(2) is None:
        return result
    wanted = call.input_ints(2, "output_shape")
    if len(wanted) != x.rank or any(want < have for want, have in zip(wanted, dims, strict=True)):
        call.invalid(f"output_shape {list(wanted)} must be at least {dims}")
    high = tuple(want - have for want, have in zip(wanted, dims, strict=True))
    if not any(high):
        return result
    return call.emit("pad", result, low=(0,) * x.rank, high=high, value=0.0)
