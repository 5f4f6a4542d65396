"""Fused layers of onnxruntime's own domain, against onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx_models import agrees, floats, one_node

from rooftile.core.errors import InvalidModel, UnsupportedOp
from rooftile.frontends.onnx import read

X, W = floats(2, 3, 8), floats(2, 3, 8, seed=1)
ROW = floats(8, seed=2)


def equal(op: str, *inputs: Any, **more: Any) -> None:
    """The op of com.microsoft gives what onnxruntime gives."""
    agrees(*one_node(op, *inputs, domain="com.microsoft", **more), rtol=1e-4, atol=1e-5)


def refused(error: type[Exception], message: str, op: str, *inputs: Any, **more: Any) -> None:
    """The op is refused with that message."""
    model, _ = one_node(op, *inputs, domain="com.microsoft", **more)
    with pytest.raises(error, match=message):
        read(model)


def test_products() -> None:
    equal("FusedMatMul", X, W, transB=1, alpha=0.5)
    equal("FusedMatMul", X, W, transA=1)
    equal("FusedMatMul", ROW, W, transA=1, transB=1)
    refused(UnsupportedOp, "transBatchA", "FusedMatMul", X, W, transBatchA=1)


@pytest.mark.parametrize(
    ("activation", "params"),
    [
        ("Relu", []),
        ("Tanh", []),
        ("Sigmoid", []),
        ("LeakyRelu", [0.1]),
        ("Clip", [-0.5, 0.25]),
        ("HardSigmoid", [0.25, 0.6]),
    ],
)
def test_layers_with_activations(activation: str, params: list[float]) -> None:
    image, weights, bias = floats(1, 2, 5, 5), floats(3, 2, 3, 3, seed=1), floats(3, seed=2)
    more = {"activation": activation, **({"activation_params": params} if params else {})}
    equal("FusedConv", image, weights, bias, pads=[1, 1, 1, 1], **more)


def test_a_sum_within_a_convolution() -> None:
    image, weights, bias = floats(1, 2, 5, 5), floats(3, 2, 3, 3, seed=1), floats(3, seed=2)
    equal("FusedConv", image, weights, bias, floats(1, 3, 3, 3), activation="Relu")
    message = r"activation 'Elu' with 0 parameters is not supported"
    refused(UnsupportedOp, message, "FusedConv", image, weights, activation="Elu")


def test_a_product_with_an_activation() -> None:
    more = {"activation": "LeakyRelu", "activation_alpha": 0.25}
    equal("FusedGemm", X[0], W[0], floats(3, seed=3), transB=1, **more)


def test_gelus() -> None:
    equal("BiasGelu", X, ROW)
    equal("FastGelu", X)
    equal("FastGelu", X, ROW)
    equal("QuickGelu", X, alpha=1.5)


def test_normalizations_of_sums() -> None:
    equal("SkipLayerNormalization", X, W, ROW, ROW[::-1].copy(), floats(8, seed=4))
    equal("SkipLayerNormalization", X, W, ROW, epsilon=0.1)
    equal("SkipSimplifiedLayerNormalization", X, W, ROW, floats(8, seed=4), epsilon=1e-3)
    message = "the mean or the deviation as an output"
    refused(UnsupportedOp, message, "SkipSimplifiedLayerNormalization", X, W, ROW, outputs=2)


def test_attention() -> None:
    keys, values = floats(2, 5, 8, seed=3), floats(2, 5, 8, seed=4)
    equal("MultiHeadAttention", X, keys, values, num_heads=2)
    bias, added = floats(24, seed=5), floats(2, 2, 3, 5, seed=6)
    equal("MultiHeadAttention", X, keys, values, bias, None, added, num_heads=2, scale=0.3)
    equal("MultiHeadAttention", X, X, W, num_heads=4, unidirectional=1)
    past = floats(2, 2, 4, 4, seed=7), floats(2, 2, 4, 4, seed=8)
    equal("MultiHeadAttention", X, X, W, None, None, None, *past, num_heads=2, outputs=3)


def test_attention_that_is_refused() -> None:
    packed = floats(2, 3, 2, 3, 4)
    refused(UnsupportedOp, "packed queries", "MultiHeadAttention", packed, num_heads=2)
    mask = np.ones((2, 3), np.int32)
    refused(UnsupportedOp, "padding mask", "MultiHeadAttention", X, X, W, None, mask, num_heads=2)
    refused(InvalidModel, "split into 3 heads", "MultiHeadAttention", X, X, W, num_heads=3)
