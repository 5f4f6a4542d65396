"""Quantized readers against onnxruntime, compiled; sums are exact."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx_models import Const, compiled, floats, one_node

import rooftile
from rooftile.core.errors import InvalidModel, UnsupportedOp
from rooftile.frontends.onnx import read

TYPES = [np.uint8, np.int8]


def full(dtype: Any, *shape: int, seed: int = 0) -> Any:
    """All values of an integer type, by chance."""
    info = np.iinfo(dtype)
    return np.random.default_rng(seed).integers(info.min, info.max + 1, shape).astype(dtype)


@pytest.mark.parametrize("dtype", TYPES)
def test_rounding_is_to_even_and_saturates(dtype: Any) -> None:
    x = np.array([0.5, 1.5, 2.5, -0.5, -1.5, 1e9, -1e9, np.inf, -np.inf], np.float32)
    (found,) = compiled("QuantizeLinear", x, np.float32(1), dtype(3))
    assert found[:5].tolist() == ([3, 5, 5, 3, 1])


@pytest.mark.parametrize("dtype", [*TYPES, np.uint16, np.int16])
@pytest.mark.parametrize("axis", [0, -1])
def test_per_axis(dtype: Any, axis: int) -> None:
    x = floats(4, 3, 4) * 200
    scale, zero = np.abs(floats(4, seed=1)) + 0.1, full(dtype, 4)
    compiled("QuantizeLinear", x, scale, zero, axis=axis, opset=21)
    compiled("DequantizeLinear", full(dtype, 4, 3, 4), scale, zero, axis=axis, opset=21)


def test_blocks() -> None:
    scale, zero = np.abs(floats(3, 2, seed=1)) + 0.1, full(np.int8, 3, 2)
    for extent in (8, 7):
        x = full(np.int8, 3, extent)
        compiled("DequantizeLinear", x, scale, zero, axis=1, block_size=4, opset=21)
    with pytest.raises(InvalidModel, match="do not fit blocks of 3"):
        model, _ = one_node("DequantizeLinear", x, scale, zero, axis=1, block_size=3, opset=21)
        read(model)


def test_parameters_that_do_not_fit() -> None:
    with pytest.raises(InvalidModel, match=r"scales \[3\] do not fit axis 1 of \[2, 4\]"):
        read(one_node("QuantizeLinear", floats(2, 4), np.ones(3, np.float32))[0])
    with pytest.raises(InvalidModel, match="the zero point is i8, the input u8"):
        read(one_node("DequantizeLinear", full(np.uint8, 3), np.float32(1), np.int8(0))[0])


@pytest.mark.parametrize("shift", [-3, 0, 3])
def test_dynamic(shift: int) -> None:
    compiled("DynamicQuantizeLinear", floats(5, 7) + np.float32(shift), outputs=3)
    compiled("DynamicQuantizeLinear", floats(5, 7) * np.float32(shift), outputs=3)


@pytest.mark.parametrize("a_type", TYPES)
@pytest.mark.parametrize("b_type", TYPES)
def test_matmul_integer(a_type: Any, b_type: Any) -> None:
    a, b = full(a_type, 2, 3, 300), full(b_type, 300, 5, seed=1)
    compiled("MatMulInteger", a, b, a_type(5), full(b_type, 5))
    (found,) = compiled("MatMulInteger", a, b)
    np.testing.assert_array_equal(found, a.astype(np.int64) @ b.astype(np.int64))


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("columns", [1, 5])
def test_qlinear_matmul(dtype: Any, columns: int) -> None:
    a, b = full(dtype, 2, 3, 30), full(dtype, 30, 5, seed=1)
    scale = np.full(columns, 0.02, np.float32) if columns > 1 else np.float32(0.02)
    zero = full(dtype, columns) if columns > 1 else dtype(7)
    compiled(
        "QLinearMatMul", a, np.float32(0.03), dtype(5), b, scale, zero, np.float32(0.9), dtype(9)
    )


@pytest.mark.parametrize("groups", [1, 2, 4])
def test_integer_convolutions(groups: int) -> None:
    x, w = full(np.uint8, 2, 4, 6, 5), full(np.int8, 4, 4 // groups, 3, 2)
    geometry = {"group": groups, "pads": [1, 0, 2, 1], "strides": [1, 2]}
    compiled("ConvInteger", x, w.view(np.uint8), np.uint8(11), np.uint8(3), **geometry)
    compiled(
        "QLinearConv",
        *(x, np.float32(0.03), np.uint8(11)),
        *(w, np.abs(floats(4)) * 0.03, np.zeros(4, np.int8)),
        *(np.float32(0.5), np.uint8(9), np.arange(-200, 200, 100, dtype=np.int32)),
        **geometry,
    )


@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize("points", [False, True])
def test_matmul_nbits(bits: int, points: bool) -> None:
    columns, depth, block = 5, 80, 32
    blocks = -(-depth // block)
    packed = full(np.uint8, columns, blocks, block * bits // 8)
    scales = np.abs(floats(columns, blocks)) * 0.1
    zero = full(np.uint8, columns, -(-blocks * bits // 8)) if points else None
    attributes = {"K": depth, "N": columns, "bits": bits, "block_size": block}
    inputs = [floats(3, depth), Const(packed), Const(scales.ravel())]
    inputs += [Const(zero.ravel())] if zero is not None else []
    model, feeds = one_node("MatMulNBits", *inputs, domain="com.microsoft", **attributes)
    (found,) = rooftile.InferenceSession(model.SerializeToString()).run(None, feeds)
    (wanted,) = onnxruntime.InferenceSession(model.SerializeToString()).run(None, feeds)
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)


def test_matmul_nbits_refuses() -> None:
    attributes = {"K": 32, "N": 1, "bits": 4, "block_size": 32}
    weights, scales = Const(np.zeros((1, 1, 15), np.uint8)), Const(np.ones(1, np.float32))
    model, _ = one_node(
        "MatMulNBits", floats(1, 32), weights, scales, domain="com.microsoft", **attributes
    )
    with pytest.raises(InvalidModel, match=r"\[1, 1, 15\] do not hold 1 x 1 blocks"):
        read(model)
    with pytest.raises(UnsupportedOp, match=r"an order of groups"):
        more = [weights, scales, None, Const(np.zeros(32, np.int32))]
        read(one_node("MatMulNBits", floats(1, 32), *more, domain="com.microsoft", **attributes)[0])


@pytest.mark.parametrize("direction", ["forward", "bidirectional"])
@pytest.mark.parametrize("steps", [2, 9])
def test_dynamic_quantize_lstm(direction: str, steps: int) -> None:
    count = 2 if direction == "bidirectional" else 1
    w, r = full(np.int8, count, 6, 20), full(np.int8, count, 5, 20, seed=1)
    scale, zero = np.full(count, 0.01, np.float32), np.zeros(count, np.int8)
    inputs = [floats(steps, 1, 6), Const(w), Const(r), Const(floats(count, 40)), None, None]
    inputs += [None, None, Const(scale), Const(zero), Const(scale), Const(zero)]
    model, feeds = one_node(
        "DynamicQuantizeLSTM",
        *inputs,
        outputs=3,
        domain="com.microsoft",
        direction=direction,
        hidden_size=5,
    )
    found = rooftile.InferenceSession(model.SerializeToString()).run(None, feeds)
    wanted = onnxruntime.InferenceSession(model.SerializeToString()).run(None, feeds)
    for got, want in zip(found, wanted, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-4)


def contrib(op: str, *inputs: Any, off: float = 0, **attributes: Any) -> None:
    """Assert equality with onnxruntime, whose roundings may differ by `off`."""
    model, feeds = one_node(op, *inputs, domain="com.microsoft", **attributes)
    (found,) = rooftile.InferenceSession(model.SerializeToString()).run(None, feeds)
    (wanted,) = onnxruntime.InferenceSession(model.SerializeToString()).run(None, feeds)
    assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
    difference = np.abs(found.astype(np.float64) - wanted.astype(np.float64))
    assert difference.max() <= off
    assert np.mean(difference > 1e-3) <= 0.04


@pytest.mark.parametrize("dtype", TYPES)
def test_contributed_elementwise(dtype: Any) -> None:
    a, b = full(dtype, 3, 40), full(dtype, 40, seed=1)
    first, second = (a, np.float32(0.0313), dtype(5)), (b, np.float32(0.0517), dtype(7))
    contrib("QLinearAdd", *first, *second, np.float32(0.0719), dtype(3), off=1)
    contrib("QLinearMul", *first, *second, np.float32(0.317), dtype(3), off=1)
    constant = tuple(Const(item) for item in (np.float32(0.004), dtype(3)))
    scaled = (a, Const(np.float32(0.0313)), Const(dtype(5)))
    contrib("QLinearSigmoid", *scaled, *constant, off=1)
    contrib("QLinearLeakyRelu", *scaled, *constant, off=1, alpha=0.2)


@pytest.mark.parametrize("last", [0, 1])
def test_contributed_pool_and_concat(last: int) -> None:
    x = full(np.uint8, 2, 3, 5, 4)
    parameters = np.float32(0.0313), np.uint8(5), np.float32(0.0217), np.uint8(9)
    contrib("QLinearGlobalAveragePool", x, *parameters, off=1, channels_last=last)
    fixed = [Const(item) for item in parameters]
    contrib("QLinearConcat", *fixed[2:], x, *fixed[:2], x, *fixed[2:], off=1, axis=1)


def test_contributed_products() -> None:
    a, b = full(np.uint8, 3, 30), full(np.uint8, 30, 5, seed=1)
    scale, zero = np.abs(floats(5)) * 0.01, full(np.uint8, 5)
    bias = floats(5, seed=2)
    contrib(
        "MatMulIntegerToFloat", a, b, np.float32(0.02), scale, np.uint8(7), zero, bias, off=1e-4
    )
    contrib("DynamicQuantizeMatMul", floats(3, 30), b, scale, zero, bias, off=1e-4)
    contrib("DynamicQuantizeMatMul", floats(3, 30), b, np.float32(0.02), off=1e-4)
