"""Ops that pick and place elements by indices, against numpy: Gather and Scatter and their kin.

Indices count from either end and are i32 or i64; shapes have dims of 0, or hold no index at all.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from index_ops import (
    DTYPES,
    Array,
    Const,
    axis_of,
    computed,
    examples,
    numbered,
    same,
    shapes,
    small,
)

import rooftile

COMBINE: dict[str, Callable[[Any, Any], Any]] = {
    "none": lambda old, new: new,
    "add": lambda old, new: old + new,
    "mul": lambda old, new: old * new,
    "max": max,
    "min": min,
}


def drawn_indices(draw: st.DrawFn, shape: tuple[int, ...], extent: int) -> Array:
    """Indices into an axis, from either end; no shape but an empty one fits an axis of 0."""
    if not extent and 0 not in shape:
        shape = (*shape, 0)
    dtype = draw(st.sampled_from((np.int64, np.int32)))
    generator = np.random.default_rng(draw(st.integers(0, 99)))
    return generator.integers(-extent, max(extent, 1), shape).astype(dtype)


def fed(draw: st.DrawFn, array: Array) -> Any:
    """The array as an input, or as a constant of the model."""
    return Const(array) if draw(st.booleans()) else array


@given(st.data())
@examples(50)
def test_gather(data: st.DataObject) -> None:
    x = numbered(*data.draw(shapes(1, 4)), dtype=data.draw(DTYPES))
    axis = axis_of(data.draw, x.ndim)
    indices = drawn_indices(data.draw, data.draw(shapes(0, 3)), x.shape[axis])
    found = computed("Gather", x, fed(data.draw, indices), axis=axis)
    same(found[0], np.take(x, indices, axis))


@given(st.data())
@examples(50)
def test_gather_elements(data: st.DataObject) -> None:
    """The indices may have smaller dims than the data, and a longer axis."""
    x = numbered(*data.draw(shapes(1, 4)), dtype=data.draw(DTYPES))
    axis = axis_of(data.draw, x.ndim) % x.ndim
    shape = [data.draw(st.integers(0, extent)) for extent in x.shape]
    shape[axis] = data.draw(st.sampled_from((1, 3, 8, 0))) if x.shape[axis] else 0
    indices = drawn_indices(data.draw, tuple(shape), x.shape[axis])
    rest = tuple(
        slice(0, extent) if dim != axis else slice(None) for dim, extent in enumerate(shape)
    )
    found = computed("GatherElements", x, fed(data.draw, indices), axis=axis)
    same(found[0], np.take_along_axis(x[rest], indices, axis))


@given(st.data())
@examples(50)
def test_gather_nd(data: st.DataObject) -> None:
    x = numbered(*data.draw(shapes(1, 4)), dtype=data.draw(DTYPES))
    batch = data.draw(st.integers(0, x.ndim - 1))
    depth = data.draw(st.integers(1, x.ndim - batch))
    rows = data.draw(shapes(0, 2))
    indexed = x.shape[batch : batch + depth]
    if 0 in indexed:
        rows = (*rows, 0)
    indices = drawn_rows(data.draw, (*x.shape[:batch], *rows), indexed)
    wanted = np.zeros((*x.shape[:batch], *rows, *x.shape[batch + depth :]), x.dtype)
    for place in np.ndindex(*indices.shape[:-1]):
        wanted[place] = x[(*place[:batch], *indices[place])]
    found = computed("GatherND", x, fed(data.draw, indices), batch_dims=batch)
    same(found[0], wanted)


def drawn_rows(draw: st.DrawFn, rows: tuple[int, ...], extents: tuple[int, ...]) -> Array:
    """Rows of indices into some dims, i64, from either end."""
    generator = np.random.default_rng(draw(st.integers(0, 99)))
    parts = [generator.integers(-extent, max(extent, 1), rows) for extent in extents]
    return np.stack(parts, -1).astype(np.int64) if parts else np.zeros((*rows, 0), np.int64)


@given(st.data())
@examples(50)
def test_scatter_elements(data: st.DataObject) -> None:
    """The same place may be met several times: updates then come in order."""
    reduction = data.draw(st.sampled_from(tuple(COMBINE)))
    dtype = data.draw(st.sampled_from((np.float32, np.int64, np.float64, np.int32)))
    x = small(*data.draw(shapes(1, 3)), dtype=dtype)
    axis = axis_of(data.draw, x.ndim) % x.ndim
    shape = [data.draw(st.integers(0, extent)) for extent in x.shape]
    shape[axis] = data.draw(st.sampled_from((1, 3, 5, 0))) if x.shape[axis] else 0
    indices = drawn_indices(data.draw, tuple(shape), x.shape[axis])
    updates = small(*shape, dtype=dtype, seed=1)
    wanted = x.copy()
    for place in np.ndindex(*shape):
        target = (*place[:axis], indices[place], *place[axis + 1 :])
        wanted[target] = COMBINE[reduction](wanted[target], updates[place])
    inputs = (x, fed(data.draw, indices), updates)
    same(computed("ScatterElements", *inputs, axis=axis, reduction=reduction)[0], wanted)


@given(st.data())
@examples(50)
def test_scatter_nd(data: st.DataObject) -> None:
    reduction = data.draw(st.sampled_from(tuple(COMBINE)))
    dtype = data.draw(st.sampled_from((np.float32, np.int64, np.float64, np.int32)))
    x = small(*data.draw(shapes(1, 3)), dtype=dtype)
    depth = data.draw(st.integers(1, x.ndim))
    rows = data.draw(shapes(0, 2))
    if 0 in x.shape[:depth]:
        rows = (*rows, 0)
    indices = drawn_rows(data.draw, rows, x.shape[:depth])
    updates = small(*rows, *x.shape[depth:], dtype=dtype, seed=1)
    wanted = x.copy()
    for place in np.ndindex(*rows):
        target = tuple(indices[place])
        for inner in np.ndindex(*x.shape[depth:]):
            mine, theirs = (*target, *inner), (*place, *inner)
            wanted[mine] = COMBINE[reduction](wanted[mine], updates[theirs])
    inputs = (x, fed(data.draw, indices), updates)
    same(computed("ScatterND", *inputs, reduction=reduction)[0], wanted)


@given(st.data())
@examples(30)
def test_indices_outside_are_refused(data: st.DataObject) -> None:
    """One element beyond either end, wherever it stands among the indices."""
    x = numbered(*(data.draw(st.integers(1, 4)) for _ in range(data.draw(st.integers(1, 3)))))
    axis = axis_of(data.draw, x.ndim) % x.ndim
    extent = x.shape[axis]
    op = data.draw(st.sampled_from(("Gather", "GatherElements", "GatherND", "ScatterElements")))
    shape = list(x.shape)
    if op == "GatherND":
        axis, extent, shape = 0, x.shape[0], [3, 1]
    indices = np.zeros(shape, np.int64)
    wrong = data.draw(st.sampled_from((extent, -extent - 1, 2**40, -(2**63))))
    indices[np.unravel_index(data.draw(st.integers(0, math.prod(shape) - 1)), shape)] = wrong
    more = {} if op == "GatherND" else {"axis": axis}
    inputs = (x, indices, x) if op == "ScatterElements" else (x, indices)
    with pytest.raises(rooftile.RooftileError, match=r"'it'.* out of range"):
        computed(op, *inputs, **more)
