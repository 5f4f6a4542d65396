"""Picking, cutting and joining: gather, slice, split, concat, pad."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rooftile.core.symbolic import same
from rooftile.frontends.onnx.call import Call
from rooftile.frontends.onnx.registry import reads
from rooftile.host.slices import part_of
from rooftile.ir.graph import Array, Value


@reads("Gather")
def gather(call: Call) -> Value:
    """Elements of one axis picked by integers."""
    data, indices = call.input(0), call.input(1)
    axis = call.axis(call.integer("axis", 0), data.rank)
    return call.emit("gather", data, indices, axis=axis)


@reads("GatherElements")
def gather_elements(call: Call) -> Value:
    """Elements of one axis picked by an integer for each element."""
    data, indices = call.input(0), call.input(1)
    axis = call.axis(call.integer("axis", 0), data.rank)
    return call.emit("gather_elements", data, indices, axis=axis)


@reads("Concat")
def concat(call: Call) -> Value:
    """Tensors joined along one axis; before opset 4 the axis is 1 where not given."""
    values = call.every()
    axis = call.integer("axis", 1 if call.opset < 4 else None)
    filled = [value for value in values if 0 not in value.dims] or values
    if len(filled) == 1:
        return filled[0]
    return call.emit("concat", *filled, axis=call.axis(axis, values[0].rank))


@reads("Slice")
def slice_by_attributes(call: Call) -> Value:
    """Starts, ends and axes as attributes, steps of 1."""
    x, starts, ends = call.input(0), call.ints("starts"), call.ints("ends")
    axes = call.ints("axes", range(len(starts)))
    return _sliced(call, x, starts, ends, axes, [1] * len(starts))


@reads("Slice", since=10)
def slice_by_inputs(call: Call) -> Value:
    """Starts, ends, axes and steps as inputs."""
    x = call.input(0)
    starts, ends = call.input_ints(1, "starts"), call.input_ints(2, "ends")
    axes = call.input_ints(3, "axes") if call.optional(3) else tuple(range(len(starts)))
    steps = call.input_ints(4, "steps") if call.optional(4) else (1,) * len(starts)
    return _sliced(call, x, starts, ends, axes, steps)


def _sliced(
    call: Call,
    x: Value,
    starts: Sequence[int],
    ends: Sequence[int],
    axes: Sequence[int],
    steps: Sequence[int],
) -> Value:
    if not len(starts) == len(ends) == len(axes) == len(steps):
        call.invalid("starts, ends, axes and steps must be equally long")
    call.axes(axes, x.rank)
    first, limits, strides = [0] * x.rank, list(x.dims), [1] * x.rank
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        dim = call.axis(axis, x.rank)
        if step == 0:
            call.invalid("a step is 0")
        first[dim], limits[dim], strides[dim] = part_of(x.dims[dim], start, end, step)
    return cut(call, x, first, limits, strides)


def cut(
    call: Call,
    x: Value,
    starts: Sequence[int],
    limits: Sequence[int],
    strides: Sequence[int] | None = None,
) -> Value:
    """A slice with its bounds already inside x; x itself where nothing is cut."""
    strides = [1] * x.rank if strides is None else strides
    if not any(starts) and tuple(limits) == x.dims and all(step == 1 for step in strides):
        return x
    return call.emit("slice", x, starts=tuple(starts), limits=tuple(limits), strides=tuple(strides))


@reads("Split")
def split_by_attribute(call: Call) -> tuple[Value, ...]:
    """Sizes as an attribute (an input in opset 1), equal parts where not given."""
    given: Sequence[int] = call.ints("split", ())
    if not given and call.optional(1):
        given = call.input_ints(1, "split")
    return _split(call, given, len(call.node.output))


@reads("Split", since=13)
def split_by_input(call: Call) -> tuple[Value, ...]:
    """Sizes as an input, or a number of parts of which the last may be smaller."""
    given = call.input_ints(1, "split") if call.optional(1) else ()
    return _split(call, given, call.integer("num_outputs", len(call.node.output)))


def _split(call: Call, sizes: Sequence[int], parts: int) -> tuple[Value, ...]:
    x = call.input(0)
    axis = call.axis(call.integer("axis", 0), x.rank)
    extent = x.dims[axis]
    if not sizes:
        if not 0 < parts <= max(extent, 1):
            call.invalid(f"axis {axis} of {extent} cannot be cut into {parts} parts")
        each = -(-extent // parts)
        sizes = [min(each, max(0, extent - each * number)) for number in range(parts)]
    if not same(sum(sizes), extent) or any(size < 0 for size in sizes):
        call.invalid(f"parts of {list(sizes)} do not make up axis {axis} of {extent}")
    found, start = [], 0
    for size in sizes:
        starts, limits = [0] * x.rank, list(x.dims)
        starts[axis], limits[axis] = start, start + size
        found.append(cut(call, x, starts, limits))
        start += size
    return tuple(found)


@reads("Pad")
def pad_by_attributes(call: Call) -> Value:
    """Amounts and value as attributes."""
    amounts = call.ints("paddings") if call.has("paddings") else call.ints("pads")
    return _padded(call, amounts, range(call.input(0).rank), call.number("value", 0.0))


@reads("Pad", since=11)
def pad_by_inputs(call: Call) -> Value:
    """Amounts, value and (since opset 18) axes as inputs."""
    x = call.input(0)
    amounts = call.input_ints(1, "pads")
    value = 0.0
    if call.optional(2) is not None:
        content = call.array(2, "constant_value")
        value = content.ravel()[0].item() if content.size else 0.0
    axes = call.input_ints(3, "axes") if call.optional(3) else tuple(range(x.rank))
    return _padded(call, amounts, axes, value)


def _padded(call: Call, amounts: Sequence[int], axes: Sequence[int], value: float) -> Value:
    x, mode = call.input(0), call.text("mode", "constant")
    if len(amounts) != 2 * len(axes):
        call.invalid(f"pads needs {2 * len(axes)} numbers, not {len(amounts)}")
    call.axes(axes, x.rank)
    low, high = [0] * x.rank, [0] * x.rank
    for number, axis in enumerate(axes):
        dim = call.axis(axis, x.rank)
        low[dim], high[dim] = amounts[number], amounts[len(axes) + number]
    sizes = [sum(parts) for parts in zip(x.dims, low, high, strict=True)]
    starts = [max(0, -part) for part in low]
    limits = [extent - max(0, -part) for extent, part in zip(x.dims, high, strict=True)]
    for dim, (start, limit) in enumerate(zip(starts, limits, strict=True)):
        if sizes[dim] < 0 or (limit < start and mode != "constant"):
            call.invalid(f"pads {list(amounts)} cut off more than {list(x.shape)} holds")
        if limit < start:  # nothing is left, and padding is cut off as well
            starts[dim], limits[dim], low[dim], high[dim] = 0, 0, 0, sizes[dim]
    x = cut(call, x, starts, limits)
    grown = [[max(0, part) for part in parts] for parts in (low, high)]
    if not any(grown[0] + grown[1]):
        return x
    if mode != "constant":
        return _mirrored(call, x, grown[0], grown[1], mode)
    return call.emit("pad", x, low=tuple(grown[0]), high=tuple(grown[1]), value=value)


def _mirrored(call: Call, x: Value, low: list[int], high: list[int], mode: str) -> Value:
    """The modes that repeat elements of x: a gather with constant indices for each dim."""
    if mode not in ("edge", "reflect", "wrap"):
        call.invalid(f"mode must be constant, edge, reflect or wrap, not {mode!r}")
    for dim, (before, after) in enumerate(zip(low, high, strict=True)):
        extent = x.dims[dim]
        if not before and not after:
            continue
        if extent == 0 or (mode == "reflect" and max(before, after) >= extent):
            call.invalid(f"mode {mode} cannot pad dim {dim} of {extent} by {before} and {after}")
        call.check_size((before + extent + after, 4), "i64", "the table of its places")
        before, after, extent = int(before), int(after), int(extent)
        places = np.arange(-before, extent + after)
        indices = call.constant(_inside(places, extent, mode), "i64")
        x = call.emit("gather", x, indices, axis=dim)
    return x


def _inside(places: Array, extent: int, mode: str) -> Array:
    """The elements that stand at places outside a dim."""
    if mode == "edge":
        return np.clip(places, 0, extent - 1)
    if mode == "wrap":
        return places % extent
    return np.asarray(extent - 1 - abs(extent - 1 - abs(places)))
