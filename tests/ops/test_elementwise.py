"""Elementwise ops against numpy and Python's own arithmetic; their bodies and costs."""

from __future__ import annotations

import math

import numpy as np
import pytest
from pointwise import check_body, values

from rooftile.core.dtype import to_numpy
from rooftile.core.errors import InvalidModel
from rooftile.ir.tile.scalar import LIBRARY
from rooftile.ops import OPS

RNG = np.random.default_rng(7)
FLOATS = ("neg", "abs", "sqrt", "exp", "log", "erf", "tanh", "floor", "ceil", "round", "logistic")
PAIRS = ("add", "sub", "mul", "div", "max", "min", "lt", "le", "eq")


@pytest.mark.parametrize("name", (*FLOATS, "isnan"))
def test_unary_body_and_cost(name: str) -> None:
    x = np.array([[-2.5, -0.5, 0.0, 0.5], [1.5, np.nan, np.inf, -np.inf]])
    _, steps, flops = check_body(name, [x], ["f32"])
    assert steps == flops


@pytest.mark.parametrize("name", PAIRS)
def test_binary_body_broadcasts(name: str) -> None:
    a, b = RNG.normal(size=(2, 1, 3)), RNG.normal(size=(1, 4, 3))
    a[0, 0, 1] = np.nan
    _, steps, flops = check_body(name, [a, b], ["f32", "f32"])
    assert steps == flops == 24


@pytest.mark.parametrize("name", ("and", "or"))
def test_logic(name: str) -> None:
    a, b = np.array([[True], [False]]), np.array([[True, False]])
    check_body(name, [a, b], ["bool", "bool"])
    check_body("not", [a], ["bool"])


def test_where_broadcasts_all_three() -> None:
    check_body(
        "where",
        [np.array([[True, False, True]]), RNG.normal(size=(2, 1)), RNG.normal(size=(1, 3))],
        ["bool", "f32", "f32"],
    )


@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("erf", math.erf),
        ("logistic", lambda v: 1 / (1 + math.exp(-v))),
        ("tanh", math.tanh),
        ("round", round),
    ],
)
def test_reference_against_python(name: str, function: object) -> None:
    x = np.array([-3.0, -2.5, -1.5, -0.1, 0.0, 0.5, 1.5, 2.5])
    (got,) = OPS[name].reference({}, [x])
    assert callable(function)
    np.testing.assert_allclose(got, [function(v) for v in x], rtol=1e-14)


def test_references_keep_float32() -> None:
    x = np.array([0.25, 0.5], np.float32)
    for name in FLOATS:
        assert OPS[name].reference({}, [x])[0].dtype == np.float32


def test_max_and_min_propagate_nan() -> None:
    a, b = np.array([np.nan, 1.0]), np.array([0.0, np.nan])
    for name in ("max", "min"):
        assert np.isnan(OPS[name].reference({}, [a, b])[0]).all()


def test_integer_division_truncates_and_survives_zero() -> None:
    a, b = np.array([7, -7, 7, -7, 5]), np.array([2, 2, -2, -2, 0])
    assert OPS["div"].reference({}, [a, b])[0].tolist() == [3, -3, -3, 3, 0]
    check_body("div", [a, b], ["i64", "i64"])


def test_power_of_integers_is_exact_and_wraps() -> None:
    a = np.array([2, -3, 2, -1, 1, 3, 0, 7])
    b = np.array([10, 3, -1, -3, -9, 39, 70, 0])
    (got,) = OPS["pow"].reference({}, [a, b])
    assert got.tolist() == [1024, -27, 0, -1, 1, 3**39, 0, 1]
    check_body("pow", [a, b], ["i64", "i64"])
    assert OPS["pow"].reference({}, [np.array([2.0]), np.array([0.5])])[0] == [math.sqrt(2)]


def test_powers_of_floats_are_those_of_c() -> None:
    a = np.array([-2.0, -2.0, 0.0, 0.0, np.inf, 1.0, 0.0])
    b = np.array([3.0, 0.5, 0.0, -1.0, -1.0, np.nan, 2.0])
    with np.errstate(all="ignore"):
        (got,) = OPS["pow"].reference({}, [a, b])
    np.testing.assert_array_equal(got, [-8.0, np.nan, 1.0, np.inf, 0.0, 1.0, 0.0])


@pytest.mark.parametrize("dtype", ["i8", "u8", "i32", "u64"])
def test_bits(dtype: str) -> None:
    a = np.array([5, 100, 3, 127]).astype(to_numpy(dtype))
    b = np.array([1, 7, 64, 3]).astype(to_numpy(dtype))
    bits = 8 * a.dtype.itemsize
    for name, apply in (("bitand", "and"), ("bitor", "or"), ("bitxor", "xor")):
        (got,) = OPS[name].reference({}, [a, b])
        wanted = [getattr(int(x), f"__{apply}__")(int(y)) for x, y in zip(a, b, strict=True)]
        assert got.tolist() == wanted
        check_body(name, [a, b], [dtype, dtype])
    (got,) = OPS["shl"].reference({}, [a, b])
    shifted = [int(x) << int(y) if y < bits else 0 for x, y in zip(a, b, strict=True)]
    assert [int(v) % (1 << bits) for v in got] == [v % (1 << bits) for v in shifted]
    assert OPS["shr"].reference({}, [a, b])[0].tolist() == [
        int(x) >> int(y) for x, y in zip(a, b, strict=True)
    ]


def test_shifts_of_negative_numbers_keep_the_sign() -> None:
    a, b = np.array([-8, -8, -8, -8], np.int32), np.array([1, 31, 32, -1], np.int32)
    assert OPS["shr"].reference({}, [a, b])[0].tolist() == [-4, -1, -1, -1]
    assert OPS["shl"].reference({}, [a, b])[0].tolist() == [-16, 0, 0, 0]


def test_remainder_has_the_sign_of_the_first() -> None:
    a, b = np.array([5.5, -5.5, 5.5]), np.array([3.0, 3.0, -3.0])
    assert OPS["fmod"].reference({}, [a, b])[0].tolist() == [2.5, -2.5, 2.5]
    check_body("fmod", [a, b], ["f64", "f64"])


@pytest.mark.parametrize("name", sorted(LIBRARY))
def test_library_functions_against_python(name: str) -> None:
    x = np.array([1.25, 1.5]) if name == "acosh" else np.array([0.25, -0.5])
    (got,) = OPS[name].reference({}, [x])
    np.testing.assert_allclose(got, [getattr(math, name)(v) for v in x], rtol=1e-14)
    check_body(name, [x], ["f32"])


@pytest.mark.parametrize(
    ("name", "arrays", "dtypes", "message"),
    [
        ("add", [(2,), (2, 1)], ["f32", "f32"], "add: inputs must have equal rank"),
        ("add", [(2,), (3,)], ["f32", "f32"], "dims must be equal or 1: %in0 f32[2], %in1 f32[3]"),
        ("add", [(2,), (2,)], ["f32", "f16"], "add: inputs must have one element type"),
        ("add", [(2,)], ["f32"], "add: takes 2 inputs, not 1"),
        ("exp", [(2,)], ["i32"], "exp: %in0 i32[2] must be of kind float; cast it"),
        ("and", [(2,), (2,)], ["f32", "f32"], "must be of kind bool"),
        ("where", [(2,), (2,), (2,)], ["f32", "f32", "f32"], "where: %in0 f32[2] must be of kind"),
    ],
)
def test_what_infer_refuses(
    name: str, arrays: list[tuple[int, ...]], dtypes: list[str], message: str
) -> None:
    with pytest.raises(InvalidModel) as caught:
        OPS[name].infer({}, values([np.zeros(shape) for shape in arrays], dtypes))
    assert message in str(caught.value)
