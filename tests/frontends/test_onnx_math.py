"""Elementwise readers against onnxruntime."""

from __future__ import annotations

import numpy as np
import pytest
from onnx_models import Const, agrees, compiled, floats, one_node, same

import rooftile
from rooftile.core.errors import InvalidModel
from rooftile.frontends.onnx import read
from rooftile.ops.evaluate import evaluate

X = floats(2, 3, 4)
POSITIVE = np.abs(X) + 0.1


@pytest.mark.parametrize(
    "op", ["Neg", "Abs", "Exp", "Erf", "Tanh", "Sigmoid", "Floor", "Ceil", "Round", "Sign"]
)
def test_unary(op: str) -> None:
    same(op, X * 2)


@pytest.mark.parametrize("op", ["Sqrt", "Log", "Reciprocal"])
def test_unary_of_positive(op: str) -> None:
    same(op, POSITIVE)


@pytest.mark.parametrize("op", ["Add", "Sub", "Mul", "Div"])
def test_binary_broadcasts_over_ranks(op: str) -> None:
    same(op, X, POSITIVE[0, :, :1])
    same(op, POSITIVE[0, 0], Const(POSITIVE))


@pytest.mark.parametrize("op", ["Add", "Sub", "Mul", "Div", "Mod"])
def test_binary_of_integers(op: str) -> None:
    a = np.array([7, -7, 8, -8, 0], np.int64)
    same(op, a, np.array([2, 2, -3, -3, 5], np.int64))


def test_fmod_of_integers() -> None:
    same("Mod", np.array([7, -7], np.int32), np.array([3, 3], np.int32), fmod=1)


def test_mod_of_floats() -> None:
    a = np.array([5.5, -5.5, 5.5, -5.5, 6], np.float32)
    b = np.array([3, 3, -3, -3, 3], np.float32)
    same("Mod", a, b, fmod=1)
    model, feeds = one_node("Mod", a, b, opset=28)
    np.testing.assert_allclose(evaluate(read(model), feeds)["out0"], np.mod(a, b))


@pytest.mark.parametrize("op", ["Sin", "Cos", "Tan", "Atan", "Sinh", "Cosh", "Asinh"])
def test_trigonometry(op: str) -> None:
    compiled(op, X * 2)


@pytest.mark.parametrize("op", ["Asin", "Acos", "Atanh"])
def test_inverse_trigonometry(op: str) -> None:
    compiled(op, np.tanh(X))
    compiled("Acosh", POSITIVE + 1)


def test_sign_keeps_nan() -> None:
    compiled("Sign", np.array([1.5, -2, 0, np.nan, np.inf], np.float32))
    same("Sign", np.array([3, -4, 0], np.int64))


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_compiled_powers_of_integers(dtype: type) -> None:
    a = np.array([2, -3, 2, -1, 1, 5, 0, 7, -1], dtype)
    b = np.array([10, 3, -1, -3, -9, 13, 70, 0, 64], dtype)
    model, feeds = one_node("Pow", a, b)
    (found,) = rooftile.InferenceSession(model.SerializeToString()).run(None, feeds)
    assert found.tolist() == [1024, -27, 0, -1, 1, 5**13, 0, 1, 1]
    model, feeds = one_node("Pow", np.array([3, 3], dtype), np.array([39, 19], dtype))
    (found,) = rooftile.InferenceSession(model.SerializeToString()).run(None, feeds)
    assert found.tolist() == [int(np.array(3**39).astype(dtype)), 3**19]


@pytest.mark.parametrize("flags", [(1, 1), (1, 0), (0, 1), (0, 0)])
def test_is_inf(flags: tuple[int, int]) -> None:
    x = np.array([np.inf, -np.inf, np.nan, 1], np.float32)
    compiled("IsInf", x, detect_negative=flags[0], detect_positive=flags[1])


@pytest.mark.parametrize("op", ["BitwiseAnd", "BitwiseOr", "BitwiseXor"])
def test_bitwise(op: str) -> None:
    a = np.arange(-10, 11, dtype=np.int32).reshape(3, 7)
    compiled(op, a, a[:1] * 5, opset=18)
    compiled("BitwiseNot", a.astype(np.uint8), opset=18)


@pytest.mark.parametrize("direction", ["LEFT", "RIGHT"])
def test_bit_shift(direction: str) -> None:
    x, by = np.array([255, 1, 9, 7], np.uint8), np.array([1, 7, 8, 0], np.uint8)
    compiled("BitShift", x, by, direction=direction)
    with pytest.raises(InvalidModel, match="direction must be LEFT or RIGHT"):
        read(one_node("BitShift", x, by, direction="UP")[0])


def test_bit_cast() -> None:
    x = np.array([1.5, -0.0, np.nan], np.float32)
    model, feeds = one_node("BitCast", x, opset=26, to=6)
    found = rooftile.InferenceSession(model.SerializeToString()).run(None, feeds)[0]
    np.testing.assert_array_equal(found, x.view(np.int32))
    with pytest.raises(InvalidModel, match="differ in size"):
        read(one_node("BitCast", x, opset=26, to=7)[0])


@pytest.mark.parametrize("op", ["Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual"])
def test_comparisons(op: str) -> None:
    same(op, X, np.where(X > 0, X, X + 1).astype(np.float32))


@pytest.mark.parametrize("op", ["And", "Or", "Xor"])
def test_logic(op: str) -> None:
    same(op, X > 0, X[:, :1] > 0.5)


def test_not_and_isnan() -> None:
    same("Not", X > 0)
    same("IsNaN", np.array([1, np.nan, np.inf], np.float32))


@pytest.mark.parametrize("op", ["Max", "Min", "Sum", "Mean"])
def test_variadic(op: str) -> None:
    same(op, X, X[0], Const(X[:, :1]))
    same(op, X)


@pytest.mark.parametrize("exponent", [1, 2, 3, 4, 0.5, -0.5, -1, -2, 0, 1.7])
def test_powers(exponent: float) -> None:
    graph = same("Pow", POSITIVE, Const(np.float32(exponent)))
    assert any(node.op == "pow" for node in graph.nodes) == (exponent in (0, 1.7))


def test_power_of_other_types() -> None:
    same("Pow", POSITIVE, Const(np.array([2], np.int64)))
    same("Pow", np.array([2, 3], np.int64), Const(np.array(3, np.int64)))
    same("Pow", np.array([2, 3], np.int64), np.array([5, 2], np.int64))
    same("Pow", X, np.full_like(X, 2))


def test_clip_forms() -> None:
    same("Clip", X, opset=6, min=-0.5, max=0.5)
    same("Clip", X, opset=6)
    same("Clip", X, Const(np.float32(-0.5)), Const(np.float32(0.5)), opset=11)
    same("Clip", X, None, np.float32(0.5), opset=13)
    same("Clip", np.arange(5), Const(np.array(2, np.int64)), opset=13)


def test_clip_drops_bounds_that_bound_nothing() -> None:
    graph = same("Clip", X, Const(np.float32(0)), Const(np.float32(np.inf)))
    assert [node.op for node in graph.nodes] == ["max"]
    limit = Const(np.array(np.iinfo(np.int64).max))
    assert [node.op for node in same("Clip", np.arange(5), None, limit).nodes] == ["reshape"]


def test_where_and_casts() -> None:
    same("Where", X > 0, X, Const(np.float32(0)))
    same("Cast", X * 3, to=6)
    same("Cast", X, to=9)
    same("Cast", X > 0, to=1)
    agrees(*one_node("Cast", X, to=10), rtol=1e-3)
    same("CastLike", X, np.zeros(1, np.float64))


def test_old_broadcast_from_an_axis() -> None:
    for broadcast, b in ((1, POSITIVE[0, :, 0]), (0, POSITIVE)):
        more = {"axis": 1} if broadcast else {}
        model, feeds = one_node("Add", X, b, opset=6, broadcast=broadcast, **more)
        wanted = X + (b[None, :, None] if broadcast else b)
        np.testing.assert_allclose(evaluate(read(model), feeds)["out0"], wanted, rtol=1e-6)


def test_old_operands_must_have_one_shape() -> None:
    model, _ = one_node("Add", X, X[0], opset=6)
    with pytest.raises(InvalidModel, match="differ without broadcast=1"):
        read(model)


@pytest.mark.parametrize(
    ("op", "attributes"),
    [
        ("Relu", {}),
        ("LeakyRelu", {"alpha": 0.3}),
        ("ThresholdedRelu", {"alpha": 0.3}),
        ("Elu", {}),
        ("Elu", {"alpha": 0.4}),
        ("Celu", {"alpha": 0.7}),
        ("Selu", {}),
        ("Softplus", {}),
        ("Softsign", {}),
        ("HardSigmoid", {"alpha": 0.3}),
        ("HardSwish", {}),
    ],
)
def test_activations(op: str, attributes: dict[str, float]) -> None:
    same(op, X * 3, **attributes)


@pytest.mark.parametrize("form", ["none", "tanh"])
def test_gelu(form: str) -> None:
    same("Gelu", X * 3, opset=20, approximate=form)


def test_later_and_foreign_activations() -> None:
    same("Mish", X * 3, opset=18)
    far = np.array([-80.0, -30.0, -9.0, -0.001, 0.0, 40.0, 100.0], np.float32)
    compiled("Mish", far, opset=18, atol=0.0)
    same("Gelu", X, domain="com.microsoft")
    same("PRelu", X, Const(floats(3, 1, seed=1)))


def test_softplus_does_not_overflow() -> None:
    same("Softplus", np.array([-200, 0, 200], np.float32))


def test_bad_approximation_is_named() -> None:
    model, _ = one_node("Gelu", X, opset=20, approximate="bad")
    with pytest.raises(InvalidModel, match="approximate must be 'none' or 'tanh', not 'bad'"):
        read(model)


def test_activations_that_onnxruntime_lacks() -> None:
    model, feeds = one_node("Swish", X, opset=24, alpha=2.0)
    wanted = X / (1 + np.exp(-2.0 * X.astype(np.float64)))
    np.testing.assert_allclose(evaluate(read(model), feeds)["out0"], wanted, rtol=1e-6)
    model, feeds = one_node("PRelu", X, floats(3, seed=1), opset=6)
    wanted = np.where(X < 0, X * floats(3, seed=1)[:, None], X)
    np.testing.assert_allclose(evaluate(read(model), feeds)["out0"], wanted, rtol=1e-6)
