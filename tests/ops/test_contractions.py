"""dot against einsum, conv against direct loops; their bodies and costs."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pointwise import Pointwise, check_body, values

from rooftile.core.affine import affine
from rooftile.core.errors import InvalidModel
from rooftile.ir.graph import Node, Value, attrs
from rooftile.ir.tile import Cast, Dot
from rooftile.ops import OPS

RNG = np.random.default_rng(5)


def dims(lhs: tuple[int, ...], rhs: tuple[int, ...], *batch: tuple[int, ...]) -> dict[str, Any]:
    left, right = batch or ((), ())
    return {"lhs_contract": lhs, "rhs_contract": rhs, "lhs_batch": left, "rhs_batch": right}


@pytest.mark.parametrize(
    ("a", "b", "held", "formula"),
    [
        ((3, 4), (4, 5), dims((1,), (0,)), "ij,jk->ik"),
        ((3, 4), (5, 4), dims((1,), (1,)), "ij,kj->ik"),
        ((2, 3, 4), (4, 2, 5), dims((2,), (0,), (0,), (1,)), "bij,jbk->bik"),
        ((3, 4, 2), (2, 5, 4), dims((1, 2), (2, 0)), "ijl,lkj->ik"),
        ((3, 1), (1, 5), dims((1,), (0,)), "ij,jk->ik"),
        ((3,), (4,), dims((), ()), "i,j->ij"),
        ((2, 3), (3, 2), dims((1,), (0,), (0,), (1,)), "bi,ib->b"),
    ],
)
def test_dot(a: tuple[int, ...], b: tuple[int, ...], held: dict[str, Any], formula: str) -> None:
    arrays = [RNG.normal(size=a), RNG.normal(size=b)]
    (got,) = OPS["dot"].reference(held, arrays)
    np.testing.assert_allclose(got, np.einsum(formula, *arrays), rtol=1e-12)
    _, steps, flops = check_body("dot", arrays, ["f32", "f32"], **held)
    # A contraction over nothing is a product: one operation instead of two.
    assert flops in (steps, 2 * steps)


def test_dot_of_integers_is_exact() -> None:
    big = np.array([[2**53 + 1, 1]])
    (got,) = OPS["dot"].reference(dims((1,), (1,)), [big, big])
    assert got.item() == ((2**53 + 1) ** 2 + 1) % 2**64


@pytest.mark.parametrize(("dtype", "wide"), [("f16", "f32"), ("bf16", "f32"), ("f64", "f64")])
def test_narrow_floats_accumulate_in_f32(dtype: str, wide: str) -> None:
    inputs = (Value("a", (3, 4), dtype), Value("b", (4, 5), dtype))
    node = Node("dot", ("a", "b"), (Value("y", (3, 5), dtype),), attrs(**dims((1,), (0,))))
    body = OPS["dot"].body
    assert body is not None
    tile = body(node, (affine("i"), affine("j")), Pointwise(inputs))
    inner = tile.x if isinstance(tile, Cast) else tile
    assert isinstance(inner, Dot)
    assert (inner.dtype, isinstance(tile, Cast)) == (wide, dtype != "f64")


@st.composite
def convolutions(
    draw: st.DrawFn,
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any], dict[str, Any]]:
    """Input, weights and attributes that fit."""
    rank = draw(st.integers(1, 3))

    def each(low: int, high: int) -> tuple[int, ...]:
        return tuple(draw(st.integers(low, high)) for _ in range(rank))

    groups, depth, per_group = (draw(st.integers(1, 3)) for _ in range(3))
    window = each(1, 3 if rank < 3 else 2)
    dilations = each(1, 2)
    reach = [(k - 1) * d + 1 for k, d in zip(window, dilations, strict=True)]
    space = tuple(least + draw(st.integers(0, 2)) for least in reach)
    held = {
        "strides": each(1, 2),
        "pads_low": each(0, 2),
        "pads_high": each(0, 1),
        "dilations": dilations,
        "groups": groups,
    }
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    x = rng.normal(size=(draw(st.integers(1, 2)), *space, groups * depth))
    return x, rng.normal(size=(*window, depth, groups * per_group)), held


def convolved(
    x: np.ndarray[Any, Any], w: np.ndarray[Any, Any], held: dict[str, Any]
) -> np.ndarray[Any, Any]:
    """conv by its definition."""
    window, depth, features = w.shape[:-2], w.shape[-2], w.shape[-1]
    low, high, strides = held["pads_low"], held["pads_high"], held["strides"]
    sizes = zip(x.shape[1:-1], window, held["dilations"], low, high, strides, strict=True)
    space = [(n + a + b - (k - 1) * d - 1) // s + 1 for n, k, d, a, b, s in sizes]
    out = np.zeros((x.shape[0], *space, features))
    for n, *place, o in np.ndindex(*out.shape):
        first = o // (features // held["groups"]) * depth
        for tap in itertools.product(*map(range, window)):
            at = [
                p * s + t * d - a
                for p, s, t, d, a in zip(place, strides, tap, held["dilations"], low, strict=True)
            ]
            if all(0 <= k < extent for k, extent in zip(at, x.shape[1:-1], strict=True)):
                for c in range(depth):
                    out[(n, *place, o)] += x[(n, *at, first + c)] * w[(*tap, c, o)]
    return out


@settings(deadline=None, max_examples=60)
@given(convolutions())
def test_conv_against_loops(
    case: tuple[np.ndarray[Any, Any], np.ndarray[Any, Any], dict[str, Any]],
) -> None:
    x, w, held = case
    (got,) = OPS["conv"].reference(held, [x, w])
    np.testing.assert_allclose(got, convolved(x, w, held), rtol=1e-10, atol=1e-12)


@settings(deadline=None, max_examples=25)
@given(convolutions())
def test_conv_body_and_cost(
    case: tuple[np.ndarray[Any, Any], np.ndarray[Any, Any], dict[str, Any]],
) -> None:
    x, w, held = case
    _, steps, flops = check_body("conv", [x, w], ["f32", "f32"], **held)
    assert flops in (steps, 2 * steps)


def conv_tile(x: tuple[int, ...], w: tuple[int, ...], groups: int, pad: int) -> tuple[Any, Any]:
    inputs = (Value("x", x, "f32"), Value("w", w, "f32"))
    held = dict.fromkeys(("strides", "dilations"), (1, 1))
    held |= dict.fromkeys(("pads_low", "pads_high"), (pad, pad))
    op = OPS["conv"]
    ((shape, dtype),) = op.infer({**held, "groups": groups}, inputs)
    node = Node("conv", ("x", "w"), (Value("y", shape, dtype),), attrs(**held, groups=groups))
    assert op.body is not None
    return op.body(node, tuple(map(affine, ("n", "h", "w", "o"))), Pointwise(inputs)), node


def test_conv_tiles_hold_no_axis_without_need() -> None:
    plain, _ = conv_tile((1, 8, 8, 4), (3, 3, 4, 6), 1, 1)
    assert [name.split("_")[0] for name in plain.over] == ["kh", "kw", "c"]
    assert plain.a.pad == 0.0
    pointwise, _ = conv_tile((1, 8, 8, 4), (1, 1, 4, 6), 1, 0)
    assert [name.split("_")[0] for name in pointwise.over] == ["c"]
    assert pointwise.a.pad is None
    depthwise, _ = conv_tile((1, 8, 8, 4), (3, 3, 1, 4), 4, 0)
    assert [name.split("_")[0] for name in depthwise.over] == ["kh", "kw"]
    assert (depthwise.a.index[3], depthwise.b.index[3]) == (affine("o"), affine("o"))
    assert depthwise.b.index[2] == affine(0)


def test_conv_of_four_spatial_dims() -> None:
    x, w = RNG.normal(size=(1, 2, 2, 2, 2, 1)), RNG.normal(size=(2, 1, 1, 2, 1, 1))
    held = {"strides": (1,) * 4, "dilations": (1,) * 4, "groups": 1}
    held |= {"pads_low": (0,) * 4, "pads_high": (0,) * 4}
    check_body("conv", [x, w], ["f32", "f32"], **held)


@pytest.mark.parametrize(
    ("name", "shapes", "held", "message"),
    [
        (
            "dot",
            [(2, 3), (4, 5)],
            dims((1,), (0,)),
            "contract dims (1,) of %in0 f32[2,3] and (0,) of %in1 f32[4,5] differ",
        ),
        ("dot", [(2, 3), (3, 5)], dims((1,), (0,), (1,), (0,)), "must be different dims"),
        ("dot", [(2, 3), (3, 5)], {}, "dot: attribute lhs_batch is missing"),
        ("conv", [(1, 4, 3), (3, 3, 3, 8)], {}, "must have the same rank, at least 3"),
        ("conv", [(1, 4, 4), (3, 3, 8)], {"groups": 1}, "in 1 groups do not fit 4 channels of"),
        ("conv", [(1, 4, 4), (3, 2, 9)], {"groups": 2}, "in 2 groups do not fit 4 channels of"),
        ("conv", [(1, 4, 4), (0, 4, 9)], {"groups": 1}, "have an empty window"),
        ("conv", [(1, 4, 4), (7, 4, 9)], {"groups": 1}, "reaches over 7 elements does not fit 4"),
    ],
)
def test_what_infer_refuses(
    name: str, shapes: list[tuple[int, ...]], held: dict[str, Any], message: str
) -> None:
    if name == "conv":
        ones = {"strides": (1,), "dilations": (1,), "pads_low": (0,), "pads_high": (0,)}
        held = ones | held
    with pytest.raises(InvalidModel) as caught:
        OPS[name].infer(held, values([np.zeros(s) for s in shapes], ["f32", "f32"]))
    assert message in str(caught.value)
