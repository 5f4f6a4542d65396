"""reduce and reduce_window against numpy and direct loops."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pointwise import check_body, values

from rooftile.core.dtype import identity
from rooftile.core.errors import InvalidModel
from rooftile.ops import OPS

RNG = np.random.default_rng(3)
NUMPY = {"sum": np.sum, "prod": np.prod, "max": np.max, "min": np.min}


@pytest.mark.parametrize("op", ("sum", "prod", "max", "min"))
@pytest.mark.parametrize("dims", ((0,), (2, 0), ()))
def test_reduce(op: str, dims: tuple[int, ...]) -> None:
    x = RNG.normal(size=(2, 3, 4))
    (got,) = OPS["reduce"].reference({"op": op, "dims": dims}, [x])
    np.testing.assert_allclose(got, NUMPY[op](x, axis=dims, keepdims=True), rtol=1e-14)
    check_body("reduce", [x], ["f32"], op=op, dims=dims)


def test_reduce_keeps_the_type_and_nan() -> None:
    x = np.array([100, 100], np.int8)
    (got,) = OPS["reduce"].reference({"op": "sum", "dims": (0,)}, [x])
    assert (got.tolist(), got.dtype) == ([-56], np.int8)
    (got,) = OPS["reduce"].reference({"op": "max", "dims": (0,)}, [np.array([1.0, np.nan])])
    assert np.isnan(got).all()


@pytest.mark.parametrize(
    ("op", "dtype", "expected"),
    [
        ("sum", np.float64, 0),
        ("prod", np.int32, 1),
        ("max", np.float64, -np.inf),
        ("min", np.int8, 127),
        ("max", np.int64, -(2**63)),
        ("max", np.bool_, False),
        ("min", np.bool_, True),
    ],
)
def test_reduce_of_nothing_gives_the_identity(op: str, dtype: Any, expected: Any) -> None:
    (got,) = OPS["reduce"].reference({"op": op, "dims": (0,)}, [np.zeros((0, 1), dtype)])
    assert got.tolist() == [[expected]]
    assert got.dtype == dtype


@st.composite
def windows(draw: st.DrawFn) -> tuple[np.ndarray[Any, Any], dict[str, Any]]:
    """An input and attributes that fit it."""
    rank = draw(st.integers(1, 3))

    def each(low: int, high: int) -> tuple[int, ...]:
        return tuple(draw(st.integers(low, high)) for _ in range(rank))

    shape = each(3, 5)
    held = {
        "op": draw(st.sampled_from(("max", "sum"))),
        "window": each(1, 2),
        "strides": each(1, 2),
        "pads_low": each(0, 1),
        "pads_high": each(0, 1),
        "dilations": each(1, 2),
    }
    return np.random.default_rng(draw(st.integers(0, 99))).normal(size=shape), held


def windowed(x: np.ndarray[Any, Any], held: dict[str, Any]) -> np.ndarray[Any, Any]:
    """reduce_window by its definition."""
    combine, start = (max, -np.inf) if held["op"] == "max" else (lambda a, b: a + b, 0.0)
    sizes = zip(
        x.shape,
        *(held[k] for k in ("window", "strides", "pads_low", "pads_high", "dilations")),
        strict=True,
    )
    shape = [(n + lo + hi - (k - 1) * d - 1) // s + 1 for n, k, s, lo, hi, d in sizes]
    out = np.full(shape, start)
    for place in np.ndindex(*shape):
        for tap in itertools.product(*map(range, held["window"])):
            at = tuple(
                p * s + t * d - lo
                for p, s, t, d, lo in zip(
                    place, held["strides"], tap, held["dilations"], held["pads_low"], strict=True
                )
            )
            if all(0 <= k < n for k, n in zip(at, x.shape, strict=True)):
                out[place] = combine(out[place], x[at])
    return out


@settings(deadline=None, max_examples=40)
@given(windows())
def test_reduce_window(case: tuple[np.ndarray[Any, Any], dict[str, Any]]) -> None:
    x, held = case
    (got,) = OPS["reduce_window"].reference(held, [x])
    np.testing.assert_allclose(got, windowed(x, held), rtol=1e-12)
    check_body("reduce_window", [x], ["f32"], **held)


def test_reduce_window_of_integers_pads_with_the_least() -> None:
    held = {"op": "max", "window": (2,), "strides": (1,), "dilations": (1,)}
    held |= {"pads_low": (1,), "pads_high": (0,)}
    (got,) = OPS["reduce_window"].reference(held, [np.array([-5, -7], np.int32)])
    assert got.tolist() == [-5, -5]
    check_body("reduce_window", [np.array([-5, -7], np.int32)], ["i32"], **held)
    assert identity("max", "u8") == 0


def test_costs() -> None:
    x = values([np.zeros((2, 3, 4))], ["f32"])
    one = values([np.zeros((2, 1, 1))], ["f32"])
    assert OPS["reduce"].flops({"op": "sum", "dims": (1, 2)}, x, one) == 24
    assert OPS["reduce_window"].flops({"window": (1, 3, 3)}, x, x) == 24 * 9


@pytest.mark.parametrize(
    ("name", "held", "dtype", "message"),
    [
        ("reduce", {"op": "mean", "dims": (0,)}, "f32", "reduce: op 'mean' must be one of sum, pr"),
        ("reduce", {"op": "sum", "dims": (1,)}, "f32", "dims (1,) must be different dims of a"),
        ("reduce", {"op": "sum", "dims": (0,)}, "bool", "%in0 bool[3] must be of kind"),
        (
            "reduce_window",
            {
                "op": "max",
                "window": (4,),
                "strides": (1,),
                "pads_low": (0,),
                "pads_high": (0,),
                "dilations": (2,),
            },
            "f32",
            "a window that reaches over 7 elements does not fit 3 padded by (0, 0)",
        ),
    ],
)
def test_what_infer_refuses(name: str, held: dict[str, Any], dtype: str, message: str) -> None:
    with pytest.raises(InvalidModel) as caught:
        OPS[name].infer(held, values([np.zeros(3)], [dtype]))
    assert message in str(caught.value)
