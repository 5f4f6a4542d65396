"""Ops along axes and across broadcast shapes, against numpy: arithmetic, Where, ReduceX, CumSum.

Ranks are 0 to 5; dims of 0 are reduced, summed along, and grown out of dims of 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from index_ops import Array, Const, axis_of, computed, examples, given_as, same, shapes, small

BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "Add": np.add,
    "Sub": np.subtract,
    "Mul": np.multiply,
    "Max": np.maximum,
    "Min": np.minimum,
    "Less": np.less,
    "GreaterOrEqual": np.greater_equal,
    "Equal": np.equal,
}
TYPES = st.sampled_from((np.float32, np.int64, np.float64, np.int32, np.float16))
REDUCTIONS: dict[str, Callable[..., Any]] = {
    "ReduceSum": np.sum,
    "ReduceProd": np.prod,
    "ReduceMax": lambda x, **how: np.max(x, initial=_end(x.dtype, -1), **how),
    "ReduceMin": lambda x, **how: np.min(x, initial=_end(x.dtype, 1), **how),
    "ReduceMean": np.mean,
    "ReduceL1": lambda x, **how: np.sum(np.abs(x), **how),
    "ReduceL2": lambda x, **how: np.sqrt(np.sum(x * x, **how)),
    "ReduceSumSquare": lambda x, **how: np.sum(x * x, **how),
    "ReduceLogSum": lambda x, **how: np.log(np.sum(x, **how)),
    "ReduceLogSumExp": lambda x, **how: np.log(np.sum(np.exp(x.astype(float)), **how)),
}
EXACT = ("ReduceSum", "ReduceMax", "ReduceMin", "ReduceL1", "ReduceSumSquare")


def _end(dtype: Any, sign: int) -> Any:
    """The least or greatest number of a type: what a maximum or minimum of nothing is."""
    if np.issubdtype(dtype, np.floating):
        return sign * np.inf
    return np.iinfo(dtype).max if sign > 0 else np.iinfo(dtype).min


def operand(draw: st.DrawFn, shape: tuple[int, ...], dtype: Any, seed: int) -> Array:
    """An array that broadcasts to the shape: some dims are 1, some in front are left out."""
    own = [draw(st.sampled_from((extent, extent, 1))) for extent in shape]
    return small(*own[draw(st.integers(0, len(own))) :], dtype=dtype, seed=seed)


def fed(draw: st.DrawFn, array: Array) -> Any:
    """The array as an input, or as a constant of the model."""
    return Const(array) if draw(st.booleans()) else array


@given(st.data())
@examples(80)
def test_binary(data: st.DataObject) -> None:
    op, dtype, shape = (
        data.draw(st.sampled_from(tuple(BINARY))),
        data.draw(TYPES),
        data.draw(shapes()),
    )
    a, b = (operand(data.draw, shape, dtype, seed) for seed in (0, 1))
    inputs = (a, fed(data.draw, b)) if data.draw(st.booleans()) else (fed(data.draw, a), b)
    same(computed(op, *inputs)[0], BINARY[op](a, b))


@given(st.data())
@examples(40)
def test_where(data: st.DataObject) -> None:
    shape, dtype = data.draw(shapes()), data.draw(TYPES)
    condition = operand(data.draw, shape, np.int8, 2) > 0
    a, b = (operand(data.draw, shape, dtype, seed) for seed in (0, 1))
    found = computed("Where", fed(data.draw, condition), fed(data.draw, a), b)
    same(found[0], np.where(condition, a, b))


@given(st.data())
@examples(90)
def test_reductions(data: st.DataObject) -> None:
    op, shape = data.draw(st.sampled_from(tuple(REDUCTIONS))), data.draw(shapes())
    whole = op in ("ReduceSum", "ReduceMax", "ReduceMin", "ReduceProd")
    dtype = data.draw(TYPES if whole else st.sampled_from((np.float32, np.float64)))
    axes = sorted(data.draw(st.sets(st.integers(0, len(shape) - 1)))) if shape else []
    written = [axis - data.draw(st.sampled_from((0, len(shape)))) for axis in axes]
    noop, keep = data.draw(st.booleans()), data.draw(st.booleans())
    if op == "ReduceProd":
        shape = tuple(min(extent, 3) for extent in shape)
    x = small(*shape, dtype=dtype)
    x = np.abs(x) + 1 if op in ("ReduceLogSum", "ReduceProd") else x
    x = np.minimum(x, 2) if op == "ReduceProd" else x  # products of 2 are exact where they fit
    by_input = data.draw(st.booleans())
    more: dict[str, Any] = {"keepdims": int(keep)} | (
        {"noop_with_empty_axes": int(noop)} if by_input else {}
    )
    if by_input:
        left_out = not axes and data.draw(st.booleans())
        found = computed(
            op, x, None if left_out else data.draw(given_as(written)), opset=18, **more
        )
    else:
        more |= {"axes": written} if written else {}
        found = computed(op, x, opset=11, **more)
    over = tuple(axes) if axes or (noop and by_input) else tuple(range(x.ndim))
    with np.errstate(all="ignore"):
        wanted = REDUCTIONS[op](x, axis=over, keepdims=keep)
    bound = 0.0 if op in EXACT else 2e-3 if dtype == np.float16 else 1e-5
    same(found[0], np.asarray(wanted).astype(dtype), bound)


def test_sums_of_exponentials_of_infinities() -> None:
    rows = [[-np.inf, -np.inf], [np.inf, 1.0], [-np.inf, 2.0], [np.inf, -np.inf], [np.nan, 1.0]]
    found = computed("ReduceLogSumExp", np.array(rows, np.float32), opset=13, axes=[1], keepdims=0)
    same(found[0], np.array([-np.inf, np.inf, 2.0, np.inf, np.nan], np.float32))


@given(st.data())
@examples(60)
def test_cumulative_sum(data: st.DataObject) -> None:
    x = small(*data.draw(shapes(1, 4)), dtype=data.draw(TYPES))
    axis = axis_of(data.draw, x.ndim)
    exclusive, reverse = data.draw(st.booleans()), data.draw(st.booleans())
    turned = np.flip(x, axis) if reverse else x
    wanted = np.cumsum(turned, axis, dtype=x.dtype)
    wanted = wanted - turned if exclusive else wanted
    where = np.array(axis, data.draw(st.sampled_from((np.int32, np.int64))))
    where = where.reshape(data.draw(st.sampled_from(((), (1,)))))
    found = computed("CumSum", x, fed(data.draw, where), exclusive=exclusive, reverse=reverse)
    same(found[0], np.flip(wanted, axis) if reverse else wanted)


@given(st.data())
@examples(40)
def test_largest(data: st.DataObject) -> None:
    """ArgMax, and TopK of its axis: the first of equal elements comes first."""
    x = small(*data.draw(shapes(1, 4)), dtype=data.draw(TYPES))
    axis = axis_of(data.draw, x.ndim)
    count = data.draw(st.integers(0, x.shape[axis]))
    order = np.argsort(-x.astype(np.float64), axis, kind="stable").take(np.arange(count), axis)
    values, places = computed("TopK", x, data.draw(given_as([count])), outputs=2, axis=axis)
    same(places, order)
    same(values, np.take_along_axis(x, order, axis))
    if x.shape[axis]:
        keep = data.draw(st.booleans())
        found = computed("ArgMax", x, axis=axis, keepdims=int(keep))
        same(found[0], np.argmax(x, axis, keepdims=keep))


@given(st.data())
@examples(30)
def test_rows_in_a_row(data: st.DataObject) -> None:
    """Softmax along any axis, of shapes that hold no element too."""
    x = small(*data.draw(shapes(1, 4)))
    axis = axis_of(data.draw, x.ndim)
    top = x.max(axis, keepdims=True, initial=-math.inf)
    raised = np.exp(x - top)
    same(computed("Softmax", x, axis=axis)[0], raised / raised.sum(axis, keepdims=True), 1e-5)
