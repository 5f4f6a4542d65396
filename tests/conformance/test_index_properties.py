"""Ops that move elements, against numpy: Pad, Slice, Reshape, Transpose, Expand, Tile, Split ...

Shapes, amounts and axes are drawn; dims of 0, negative amounts and bounds far outside among them.
"""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from index_ops import (
    DTYPES,
    EXTENTS,
    Array,
    Const,
    axis_of,
    computed,
    examples,
    given_as,
    numbered,
    same,
    shapes,
)
from onnx import helper
from onnx_models import model_of

import rooftile

FAR = st.sampled_from((2**31, 2**63 - 1, -(2**31), -(2**63)))


def padded(x: Array, low: list[int], high: list[int], mode: str, value: float) -> Array:
    """Negative amounts cut: padding too in mode constant, else before what is left is mirrored."""
    widths = [(max(0, before), max(0, after)) for before, after in zip(low, high, strict=True)]
    cuts = [(max(0, -before), max(0, -after)) for before, after in zip(low, high, strict=True)]
    if mode == "constant":
        return parts_between(np.pad(x, widths, constant_values=value), cuts)
    return np.pad(parts_between(x, cuts), widths, mode=mode)  # type: ignore[no-any-return,call-overload]


def parts_between(x: Array, cuts: list[tuple[int, int]]) -> Array:
    """x without some elements at both ends of each dim."""
    parts = zip(x.shape, cuts, strict=True)
    return x[tuple(slice(before, extent - after) for extent, (before, after) in parts)]


@given(st.data())
@examples(60)
def test_pad(data: st.DataObject) -> None:
    shape = data.draw(shapes(1, 4))
    mode = data.draw(st.sampled_from(("constant", "reflect", "edge", "wrap")))
    dims = sorted(data.draw(st.sets(st.integers(0, len(shape) - 1))))
    low, high = [0] * len(shape), [0] * len(shape)
    for dim in dims:
        extent = shape[dim]
        if mode == "constant":
            low[dim] = data.draw(st.integers(-extent - 4, 4))
            high[dim] = data.draw(st.integers(-extent - low[dim], 4 + max(0, -low[dim])))
            continue
        low[dim] = data.draw(st.integers(-extent, 6))
        high[dim] = data.draw(st.integers(-extent - min(0, low[dim]), 6))
        left = extent + min(0, low[dim]) + min(0, high[dim])
        room = left - 1 if mode == "reflect" and left else 6 if left else 0
        low[dim], high[dim] = min(low[dim], room), min(high[dim], room)
    x = numbered(*shape, dtype=data.draw(DTYPES))
    value = data.draw(st.sampled_from((0, 1)))
    amounts = [low[dim] for dim in dims] + [high[dim] for dim in dims]
    every = data.draw(st.booleans())
    axes = Const(np.array([dim - data.draw(st.sampled_from((0, len(shape)))) for dim in dims]))
    found = computed(
        "Pad",
        x,
        data.draw(given_as([*low, *high] if every else amounts)),
        Const(np.array(value, x.dtype)),
        None if every else Const(axes.array.astype(np.int64)),
        mode=mode,
    )
    same(found[0], padded(x, low, high, mode, value))


def places(extent: int, start: int, end: int, step: int) -> list[int]:
    """The elements that a Slice takes, by the words of the standard."""
    start, end = (bound + extent if bound < 0 else bound for bound in (start, end))
    if step > 0:
        return list(range(min(max(start, 0), extent), min(max(end, 0), extent), step))
    return list(range(min(max(start, 0), extent - 1), min(max(end, -1), extent - 1), step))


@given(st.data())
@examples(80)
def test_slice(data: st.DataObject) -> None:
    shape = data.draw(shapes(1, 4))
    dims = data.draw(st.permutations(range(len(shape))))[: data.draw(st.integers(1, 3))]
    x = wanted = numbered(*shape, dtype=data.draw(DTYPES))
    rows: list[tuple[int, int, int]] = []
    for dim in dims:
        near = st.integers(-2 * shape[dim] - 2, 2 * shape[dim] + 2)
        start, end = data.draw(near | FAR), data.draw(near | FAR)
        step = data.draw(st.sampled_from((1, 2, 3, -1, -2, -3, 2**31, 1 - 2**63)))
        rows.append((start, end, step))
        wanted = wanted.take(np.array(places(shape[dim], start, end, step), int), dim)
    starts, ends, steps = zip(*rows, strict=True)
    axes = [dim - data.draw(st.sampled_from((0, len(shape)))) for dim in dims]
    inputs = [data.draw(given_as(item)) for item in (starts, ends, axes, steps)]
    same(computed("Slice", x, *inputs)[0], wanted)


@given(st.data())
@examples(50)
def test_reshape(data: st.DataObject) -> None:
    """Dims joined and split; some are written as 0, one as -1."""
    shape = data.draw(shapes())
    allow_zero = data.draw(st.booleans())
    parts: list[int] = []
    for extent in shape:
        if parts and data.draw(st.booleans()):
            parts[-1] *= extent
        else:
            factors = [f for f in range(1, extent + 1) if extent % f == 0] or [1]
            first = data.draw(st.sampled_from(factors))
            parts += [first, extent // first] if first > 1 else [extent]
    wanted = list(parts)
    if not allow_zero:
        same_dims = [n for n, part in enumerate(parts) if part == dict(enumerate(shape)).get(n)]
        if any(part == 0 and number not in same_dims for number, part in enumerate(parts)):
            return  # there is no way to write this 0
        for number in same_dims:
            wanted[number] = data.draw(st.sampled_from((0, parts[number])))
    if wanted and 0 not in parts and data.draw(st.booleans()):
        wanted[data.draw(st.integers(0, len(parts) - 1))] = -1
    x = numbered(*shape, dtype=data.draw(DTYPES))
    target = data.draw(given_as(wanted))
    same(computed("Reshape", x, target, allowzero=int(allow_zero))[0], x.reshape(parts))


@given(st.data())
@examples(40)
def test_transpose(data: st.DataObject) -> None:
    x = numbered(*data.draw(shapes()), dtype=data.draw(DTYPES))
    perm = data.draw(st.permutations(range(x.ndim)))
    given_perm = {"perm": perm} if perm else {}
    same(computed("Transpose", x, **given_perm)[0], x.transpose(perm))


@given(st.data())
@examples(40)
def test_expand(data: st.DataObject) -> None:
    """Dims of 1 on either side grow, to 0 as well."""
    shape = data.draw(shapes(0, 4))
    own = tuple(data.draw(st.sampled_from((extent, 1))) for extent in shape)
    own = own[data.draw(st.integers(0, len(own))) :]
    target = [data.draw(st.sampled_from((extent, extent, 1))) for extent in shape]
    target = target[data.draw(st.integers(0, len(target))) :]
    x = numbered(*own, dtype=data.draw(DTYPES))
    result = np.broadcast_shapes(own, tuple(target))
    same(computed("Expand", x, data.draw(given_as(target)))[0], np.broadcast_to(x, result))


@given(st.data())
@examples(30)
def test_tile(data: st.DataObject) -> None:
    x = numbered(*data.draw(shapes(0, 4)), dtype=data.draw(DTYPES))
    repeats = [data.draw(st.sampled_from((1, 2, 3, 0))) for _ in range(x.ndim)]
    same(computed("Tile", x, data.draw(given_as(repeats)))[0], np.tile(x, repeats))


@given(st.data())
@examples(40)
def test_concat(data: st.DataObject) -> None:
    shape, dtype = list(data.draw(shapes(1, 4))), data.draw(DTYPES)
    axis = axis_of(data.draw, len(shape))
    parts = []
    for number in range(data.draw(st.integers(1, 4))):
        shape[axis] = data.draw(EXTENTS)
        parts.append(numbered(*shape, dtype=dtype) + np.array(number, dtype))
    constant = data.draw(st.integers(0, len(parts)))
    inputs = [Const(part) if number == constant else part for number, part in enumerate(parts)]
    same(computed("Concat", *inputs, axis=axis)[0], np.concatenate(parts, axis))


@given(st.data())
@examples(40)
def test_split(data: st.DataObject) -> None:
    """By sizes, 0 among them, or by a number of parts of which the last is smaller."""
    shape = list(data.draw(shapes(1, 4)))
    axis = axis_of(data.draw, len(shape))
    if data.draw(st.booleans()):
        sizes = data.draw(st.lists(EXTENTS, min_size=1, max_size=4))
        shape[axis] = sum(sizes)
        x = numbered(*shape, dtype=data.draw(DTYPES))
        found = computed("Split", x, data.draw(given_as(sizes)), outputs=len(sizes), axis=axis)
    else:
        each, count = data.draw(st.integers(1, 3)), data.draw(st.integers(1, 4))
        last = data.draw(st.integers(1, each))
        sizes = [each] * (count - 1) + [last]
        shape[axis] = sum(sizes)
        x = numbered(*shape, dtype=data.draw(DTYPES))
        # The size of a part is the extent over the number of parts, rounded up.
        sizes = [-(-shape[axis] // count)] * (count - 1)
        sizes.append(shape[axis] - sum(sizes))
        if sizes[-1] < 0:
            return
        found = computed("Split", x, outputs=count, axis=axis, num_outputs=count)
    for got, want in zip(found, np.split(x, np.cumsum(sizes)[:-1], axis), strict=True):
        same(got, want)


@given(st.data())
@examples(30)
def test_moves_in_a_row(data: st.DataObject) -> None:
    """Transpose, slice, reshape and transpose again: the views are joined before they are read."""
    shape = data.draw(shapes(3, 3))
    x = numbered(*shape)
    first, last = data.draw(st.permutations(range(3))), data.draw(st.permutations(range(2)))
    step = data.draw(st.sampled_from((1, 2, -1, -2)))
    constants = {
        "start": np.array([0 if step > 0 else 99]),
        "end": np.array([99 if step > 0 else -99]),
        "axis": np.array([1]),
        "step": np.array([step]),
    }
    nodes = [
        helper.make_node("Transpose", ["x"], ["a"], perm=first),
        helper.make_node("Slice", ["a", "start", "end", "axis", "step"], ["b"]),
        helper.make_node("Flatten", ["b"], ["c"], axis=1),
        helper.make_node("Transpose", ["c"], ["y"], perm=last),
    ]
    model = model_of(nodes, {"x": x}, ["y"], constants)
    found = rooftile.InferenceSession(model.SerializeToString()).run(None, {"x": x})
    cut = x.transpose(first)[:, ::step]
    same(found[0], cut.reshape(cut.shape[0], math.prod(cut.shape[1:])).transpose(last))
