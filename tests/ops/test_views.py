"""Ops that move elements: transpose, broadcast, slice, pad, reshape, concat, gather, iota."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pointwise import check_body, values

from rooftile.core.affine import affine
from rooftile.core.errors import InvalidInput, InvalidModel, NotLowered
from rooftile.ir.graph import Node, Value, attrs
from rooftile.ir.tile import Const, Iota, Map
from rooftile.ops import OPS
from rooftile.ops.iota import position
from rooftile.ops.reshape import groups

X = np.arange(24.0).reshape(2, 3, 4)


def reference(name: str, *arrays: Any, **attributes: Any) -> Any:
    return OPS[name].reference(dict(attrs(**attributes)), arrays)[0]


def test_transpose_and_broadcast() -> None:
    check_body("transpose", [X], ["f32"], perm=(2, 0, 1))
    assert reference("transpose", X, perm=(2, 0, 1)).shape == (4, 2, 3)
    check_body("broadcast", [X[:, :1]], ["f32"], shape=(2, 5, 4))


@given(st.data())
def test_slices_equal_python_slices(data: st.DataObject) -> None:
    extent = data.draw(st.integers(1, 9))
    start, stop = (data.draw(st.none() | st.integers(-12, 12)) for _ in "ab")
    stride = data.draw(st.integers(-4, 4).filter(bool))
    x = np.arange(float(extent))
    starts, limits, strides = slice(start, stop, stride).indices(extent)
    wanted = x[start:stop:stride]
    held = {"starts": (starts,), "limits": (limits,), "strides": (strides,)}
    np.testing.assert_array_equal(reference("slice", x, **held), wanted)
    check_body("slice", [x], ["f32"], **held)


def test_pad() -> None:
    wanted = np.full((3, 4, 6), -1.0)
    wanted[1:, 1:, :4] = X
    got = reference("pad", X, low=(1, 1, 0), high=(0, 0, 2), value=-1.0)
    np.testing.assert_array_equal(got, wanted)
    check_body("pad", [X], ["f32"], low=(1, 1, 0), high=(0, 0, 2), value=-1.0)
    check_body("pad", [np.array([3, 4])], ["i32"], low=(1,), high=(0,), value=7)
    assert reference("pad", np.array(3.0), low=(), high=(), value=0.0) == 3.0


def test_pad_of_nothing_loads_without_mask() -> None:
    node = Node("pad", ("in0",), (Value("y", (2,), "f32"),), attrs(low=(0,), high=(0,), value=1.0))
    asked: list[Any] = []

    class Build:
        def arg(self, number: int, index: Any, pad: float | None = None) -> Any:
            asked.append(pad)

    body = OPS["pad"].body
    assert body is not None
    body(node, (affine("i"),), Build())  # type: ignore[arg-type]
    assert asked == [None]


def test_reshape_groups() -> None:
    assert groups((2, 3, 4), (6, 4)) == [([0, 1], [0]), ([2], [1])]
    assert groups((1, 6, 1), (2, 3)) == [([1], [0, 1])]
    assert groups((4, 6), (6, 4)) == [([0, 1], [0, 1])]
    assert groups((1,), ()) == []


@st.composite
def factored(draw: st.DrawFn) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Two shapes of equally many elements."""
    factors = draw(st.lists(st.sampled_from((1, 2, 3)), min_size=0, max_size=4))

    def joined() -> tuple[int, ...]:
        parts = draw(st.lists(st.booleans(), min_size=len(factors), max_size=len(factors)))
        shape: list[int] = []
        for factor, new in zip(draw(st.permutations(factors)), parts, strict=True):
            if new or not shape:
                shape.append(factor)
            else:
                shape[-1] *= factor
        return tuple(shape)

    return joined(), joined()


@settings(deadline=None)
@given(factored())
def test_reshape_body(shapes: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    old, new = shapes
    x = np.arange(float(math.prod(old))).reshape(old)
    check_body("reshape", [x], ["f32"], shape=new)


def test_reshape_of_nothing_has_no_body() -> None:
    with pytest.raises(NotLowered, match="%out: a reshape of no elements needs no kernel"):
        check_body("reshape", [np.zeros((2, 0))], ["f32"], shape=(0, 3))


def test_concat() -> None:
    got = reference("concat", X, X[:, :1], axis=1)
    np.testing.assert_array_equal(got, np.concatenate([X, X[:, :1]], 1))
    assert OPS["concat"].body is None
    shapes = OPS["concat"].infer({"axis": 1}, values([X, X[:, :1]], ["f32", "f32"]))
    assert shapes == (((2, 4, 4), "f32"),)


@pytest.mark.parametrize("axis", (0, 1, 2))
@pytest.mark.parametrize("dtype", ("i32", "i64"))
def test_gather(axis: int, dtype: str) -> None:
    indices = np.array([[0, -1, 1], [-2, 1, 0]], np.int32 if dtype == "i32" else np.int64)
    wanted = np.take(X, indices, axis, mode="wrap")
    np.testing.assert_array_equal(reference("gather", X, indices, axis=axis), wanted)
    check_body("gather", [X, indices], ["f32", dtype], axis=axis)


def test_gather_scalar_index() -> None:
    check_body("gather", [X, np.array(-1)], ["f32", "i64"], axis=1)


@pytest.mark.parametrize("index", (3, -4))
def test_gather_outside(index: int) -> None:
    with pytest.raises(InvalidInput, match=f"index {index} is outside axis 1 of 3 elements"):
        reference("gather", X, np.array([0, index]), axis=1)


@pytest.mark.parametrize("dtype", ("i64", "i32", "f32"))
def test_iota(dtype: str) -> None:
    check_body("iota", [], [], shape=(2, 3), axis=1, dtype=dtype)
    assert reference("iota", shape=(2, 3), axis=1, dtype=dtype).tolist() == [[0, 1, 2]] * 2


def test_position_of_affine_index() -> None:
    assert position(affine(4)) == Const(4, "i64")
    scaled = Map("mul", (Iota("i"), Const(2, "i64")))
    assert position(affine("i") * 2 + affine("j") + 1) == Map(
        "add", (Map("add", (scaled, Iota("j"))), Const(1, "i64"))
    )


@pytest.mark.parametrize(
    ("name", "held", "message"),
    [
        (
            "transpose",
            {"perm": (0, 0, 1)},
            "perm (0, 0, 1) must be different dims of a tensor of 3",
        ),
        ("transpose", {"perm": (0, 1)}, "transpose: perm (0, 1) must have 3 entries"),
        ("transpose", {"perm": [0, 1, 2]}, "perm must be a tuple of integers, not [0, 1, 2]"),
        ("broadcast", {"shape": (2, 3, 5)}, "does not broadcast to (2, 3, 5); only dims of 1 grow"),
        (
            "slice",
            {"starts": (0, 0, 0), "limits": (3, 3, 4), "strides": (1, 1, 1)},
            "slice: 0:3:1 reaches outside dim 0 of %in0 f32[2,3,4]",
        ),
        (
            "slice",
            {"starts": (0, 0, 0), "limits": (2, 3, 4), "strides": (1, 0, 1)},
            "slice: stride of dim 1 is 0",
        ),
        (
            "pad",
            {"low": (-1, 0, 0), "high": (0, 0, 0), "value": 0.0},
            "(-1, 0, 0) must be at least",
        ),
        ("reshape", {"shape": (5, 5)}, "has 24 elements, shape (5, 5) has 25"),
        ("concat", {"axis": 3}, "concat: axis 3 is outside a tensor of 3 dims"),
        ("concat", {"axis": True}, "concat: attribute axis must be an integer, not True"),
    ],
)
def test_what_infer_refuses(name: str, held: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidModel) as caught:
        OPS[name].infer(held, values([X], ["f32"]))
    assert message in str(caught.value)


def test_what_infer_refuses_of_several_inputs() -> None:
    with pytest.raises(InvalidModel, match=r"%in1 f32\[1,1\] and %in0 f32\[2,1\] differ beside"):
        OPS["concat"].infer({"axis": 1}, values([np.zeros((2, 1)), np.zeros((1, 1))], ["f32"] * 2))
    with pytest.raises(InvalidModel, match="concat: takes at least one input"):
        OPS["concat"].infer({"axis": 0}, ())
    with pytest.raises(InvalidModel, match=r"gather: indices %in1 i8\[2\] must be i32, i64 or u32"):
        OPS["gather"].infer({"axis": 0}, values([X, np.zeros(2)], ["f32", "i8"]))
    with pytest.raises(InvalidModel, match="iota: counts in numbers"):
        OPS["iota"].infer({"shape": (2,), "axis": 0, "dtype": "bool"}, ())
