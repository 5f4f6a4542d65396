"""Readers of layers against onnxruntime: convolution, pooling, products, norms, reductions."""

from __future__ import annotations

import numpy as np
import pytest
from onnx_models import Const, agrees, floats, ints, one_node, same

import rooftile
from rooftile.core.errors import InvalidModel, UnsupportedOp
from rooftile.frontends.onnx import read
from rooftile.ops.evaluate import evaluate

IMAGE = floats(2, 4, 7, 9)


@pytest.mark.parametrize(
    ("x", "w", "attributes"),
    [
        (floats(2, 3, 8), (5, 3, 3), {"pads": [1, 0]}),
        (IMAGE, (6, 4, 3, 2), {"strides": [2, 1], "pads": [1, 0, 2, 1]}),
        (IMAGE, (6, 2, 3, 3), {"group": 2, "dilations": [2, 2]}),
        (IMAGE, (8, 1, 3, 3), {"group": 4, "auto_pad": "SAME_UPPER", "strides": [2, 2]}),
        (IMAGE, (4, 4, 2, 2), {"auto_pad": "SAME_LOWER", "kernel_shape": [2, 2]}),
        (IMAGE, (4, 4, 2, 2), {"auto_pad": "VALID"}),
        (floats(1, 2, 4, 5, 6), (3, 2, 2, 3, 1), {"strides": [1, 2, 2]}),
    ],
)
def test_conv(x: np.ndarray, w: tuple[int, ...], attributes: dict) -> None:
    same("Conv", x, Const(floats(*w, seed=1)), Const(floats(w[0], seed=2)), **attributes)
    same("Conv", x, floats(*w, seed=1), **attributes)


@pytest.mark.parametrize("op", ["MaxPool", "AveragePool"])
@pytest.mark.parametrize(
    "attributes",
    [
        {"kernel_shape": [2, 2], "strides": [2, 2]},
        {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1},
        {"kernel_shape": [3, 2], "strides": [2, 2], "pads": [1, 0, 1, 1], "ceil_mode": 1},
        {"kernel_shape": [3, 3], "strides": [1, 1], "auto_pad": "SAME_UPPER"},
        {"kernel_shape": [1, 2], "strides": [3, 1]},
    ],
)
def test_pools(op: str, attributes: dict) -> None:
    same(op, IMAGE, opset=19, **attributes)
    if op == "AveragePool":
        same(op, IMAGE, opset=19, count_include_pad=1, **attributes)


def test_pools_of_other_ranks() -> None:
    same("MaxPool", floats(1, 2, 9), kernel_shape=[3], dilations=[2])
    same("AveragePool", floats(1, 2, 4, 4, 4), kernel_shape=[2, 2, 2])
    same("AveragePool", floats(1, 2, 9), opset=19, kernel_shape=[3], dilations=[2], pads=[1, 2])
    same("GlobalAveragePool", IMAGE)
    same("GlobalMaxPool", IMAGE)


@pytest.mark.parametrize(
    "attributes",
    [
        {"kernel_shape": [2, 2]},
        {"kernel_shape": [3, 2], "strides": [2, 1], "pads": [1, 1, 1, 0], "storage_order": 1},
        {"kernel_shape": [2, 3], "dilations": [2, 1], "strides": [2, 2], "ceil_mode": 1},
    ],
)
def test_indices_of_a_pool(attributes: dict) -> None:
    same("MaxPool", IMAGE, outputs=2, **attributes)
    same("MaxPool", (IMAGE * 2).astype(np.int8), outputs=2, **attributes)  # many are equal


@pytest.mark.parametrize("p", [1, 2, 3])
def test_norms_of_windows(p: int) -> None:
    more = {"kernel_shape": [3, 2], "strides": [2, 1], "pads": [1, 0, 1, 1]}
    same("LpPool", IMAGE, opset=18, p=p, **more)
    same("GlobalLpPool", IMAGE, p=p)
    if p < 3:
        same("LpNormalization", np.append(IMAGE, 0 * IMAGE, 0), p=p, axis=1)


@pytest.mark.parametrize("size", [1, 3, 5])
def test_local_response(size: int) -> None:
    same("LRN", IMAGE, size=size, alpha=0.5, beta=0.6, bias=1.5)


def test_unpooling() -> None:
    pooled, feeds = one_node("MaxPool", IMAGE, outputs=2, kernel_shape=[2, 2], strides=[2, 2])
    values, places = (array for array in evaluate(read(pooled), feeds).values())
    # Indices count elements of the result: 6 x 8 of them, not 7 x 9.
    places = np.arange(values.size).reshape(values.shape) * 4
    more = {"kernel_shape": [2, 2], "strides": [2, 2]}
    values = values.astype(np.float32)
    same("MaxUnpool", values, places, **more)
    same("MaxUnpool", values, places, ints(2, 4, 6, 8), **more)
    model, _ = one_node("MaxUnpool", values, places, ints(2, 4, 5, 8), **more)
    with pytest.raises(InvalidModel, match=r"output_shape \[2, 4, 5, 8\] must be at least"):
        read(model)


@pytest.mark.parametrize(
    ("x", "w", "attributes"),
    [
        (floats(2, 3, 5), (3, 4, 4), {"strides": [2], "pads": [1, 1]}),
        (floats(2, 3, 5), (3, 4, 3), {"strides": [2], "pads": [1, 0], "output_padding": [1]}),
        (IMAGE, (4, 2, 2, 2), {"strides": [2, 2], "group": 2}),
        (IMAGE, (4, 3, 3, 2), {"dilations": [2, 3], "pads": [1, 2, 0, 1]}),
        (IMAGE, (4, 1, 3, 3), {"strides": [2, 3], "dilations": [2, 2], "group": 4}),
        (IMAGE, (4, 2, 1, 2), {"strides": [2, 2], "auto_pad": "SAME_LOWER"}),
        (IMAGE, (4, 2, 4, 3), {"strides": [3, 2], "auto_pad": "SAME_UPPER"}),
        (IMAGE, (4, 2, 3, 3), {"strides": [2, 2], "output_shape": [14, 18]}),
        (floats(1, 2, 3, 2, 3), (2, 2, 2, 3, 1), {"strides": [1, 2, 2]}),
    ],
)
def test_conv_transpose(x: np.ndarray, w: tuple[int, ...], attributes: dict) -> None:
    features = w[1] * attributes.get("group", 1)
    weights, bias = floats(*w, seed=1), Const(floats(features, seed=2))
    if "SAME_LOWER" not in attributes.values():
        agrees(*one_node("ConvTranspose", x, weights, **attributes), rtol=1e-4, atol=1e-5)
    model = one_node("ConvTranspose", x, Const(weights), bias, **attributes)
    if attributes.get("auto_pad") == "SAME_LOWER":  # onnxruntime gives less than 2 * extent here
        assert evaluate(read(model[0]), model[1])["out0"].shape == (2, 2, 14, 18)
    else:
        agrees(*model, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("w", "attributes", "message"),
    [
        ((4, 2, 3), {}, r"must have one rank"),
        ((3, 2, 3, 3), {}, r"do not fit input"),
        ((4, 2, 3, 3), {"kernel_shape": [2, 2]}, r"kernel_shape \[2, 2\] is not that"),
        ((4, 2, 3, 3), {"strides": [0, 1]}, r"strides \[0, 1\] must be 2 numbers of at least 1"),
        ((4, 2, 3, 3), {"auto_pad": "SAME"}, r"auto_pad 'SAME' must be NOTSET"),
        ((4, 2, 3, 3), {"output_shape": [4]}, r"output_shape \[4\] must be 2 numbers"),
        ((4, 2, 3, 3), {"pads": [9, 9, 9, 9]}, r"cut off more than the 9 results of dim 0"),
    ],
)
def test_transposed_convolutions_that_are_refused(
    w: tuple[int, ...], attributes: dict, message: str
) -> None:
    model, _ = one_node("ConvTranspose", IMAGE, floats(*w), **attributes)
    with pytest.raises(InvalidModel, match=message):
        read(model)


def test_batch_statistics() -> None:
    channel = [floats(4, seed=seed) for seed in range(4)]
    channel[3] = np.abs(channel[3])
    model, feeds = one_node(
        "BatchNormalization", IMAGE, *channel, opset=15, outputs=3, training_mode=1, momentum=0.7
    )
    y, mean, variance = evaluate(read(model), feeds).values()
    now, spread = IMAGE.mean((0, 2, 3)), IMAGE.var((0, 2, 3))
    np.testing.assert_allclose(mean, channel[2] * 0.7 + now * 0.3, 1e-5)
    np.testing.assert_allclose(variance, channel[3] * 0.7 + spread * 0.3, 1e-5)
    shape = (1, 4, 1, 1)
    normal = (IMAGE - now.reshape(shape)) / np.sqrt(spread.reshape(shape) + 1e-5)
    wanted = normal * channel[0].reshape(shape) + channel[1].reshape(shape)
    np.testing.assert_allclose(y, wanted, 1e-4, 1e-5)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ((3, 4), (4, 5)),
        ((2, 3, 4), (4, 5)),
        ((2, 3, 4), (1, 4, 5)),
        ((3, 4), (2, 4, 5)),
        ((2, 1, 3, 4), (3, 4, 5)),
        ((4,), (4, 5)),
        ((2, 3, 4), (4,)),
        ((4,), (4,)),
        ((4,), (2, 4, 5)),
    ],
)
def test_matmul(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    same("MatMul", floats(*a), floats(*b, seed=1))
    same("MatMul", floats(*a), Const(floats(*b, seed=1)))


def test_gemm() -> None:
    a, b, c = floats(3, 4), floats(4, 5, seed=1), floats(5, seed=2)
    same("Gemm", a, Const(b), Const(c), alpha=0.5, beta=2.0)
    same("Gemm", a.T.copy(), Const(b.T.copy()), transA=1, transB=1)
    same("Gemm", a, b, c, beta=0.0)


@pytest.mark.parametrize("op", ["Softmax", "LogSoftmax"])
def test_softmax(op: str) -> None:
    x = floats(2, 3, 4) * 50
    for axis in (0, 1, -1):
        same(op, x, opset=11, axis=axis)
        same(op, x, opset=13, axis=axis)
    same(op, x, opset=11)
    same(op, x, opset=13)


def test_batch_normalization() -> None:
    parts = [floats(4, seed=seed) for seed in range(3)]
    variance = np.abs(floats(4, seed=3)) + 0.1
    for opset in (9, 15):
        same("BatchNormalization", IMAGE, *map(Const, (*parts, variance)), opset=opset)
    same("BatchNormalization", IMAGE, *parts, variance, epsilon=0.1)
    same("BatchNormalization", IMAGE[:, :, 0, 0], *map(Const, (*parts, variance)))
    model, _ = one_node("BatchNormalization", IMAGE, *parts, variance, opset=8, spatial=0)
    with pytest.raises(UnsupportedOp, match="spatial=0 is not supported"):
        read(model)


def test_layer_normalization() -> None:
    x = floats(2, 3, 4)
    scale, bias = floats(4, seed=1), floats(4, seed=2)
    model, feeds = one_node("LayerNormalization", x, Const(scale), Const(bias), outputs=3)
    agrees(model, feeds)
    same("LayerNormalization", x, Const(floats(3, 4)), axis=1, epsilon=1e-3)


def test_other_norms() -> None:
    scale, bias = Const(floats(4, seed=1)), Const(floats(4, seed=2))
    same("InstanceNormalization", IMAGE, scale, bias)
    same("GroupNormalization", IMAGE, scale, bias, num_groups=2, opset=21)
    pair = Const(floats(2, seed=1)), Const(floats(2, seed=2))
    model, feeds = one_node("GroupNormalization", IMAGE, *pair, num_groups=2, opset=18)
    groups = IMAGE.astype(np.float64).reshape(2, 2, -1)
    normal = (groups - groups.mean(2, keepdims=True)) / np.sqrt(groups.var(2, keepdims=True) + 1e-5)
    wanted = normal * pair[0].array[None, :, None] + pair[1].array[None, :, None]
    found = evaluate(read(model), feeds)["out0"]
    np.testing.assert_allclose(found, wanted.reshape(IMAGE.shape), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_mean_and_variance_of_numbers_far_from_zero(dtype: type) -> None:
    """The function in the schema subtracts squares, and adds an f32 to what may be f64."""
    x = (floats(2, 3, 4, 5) + 500).astype(dtype)
    model, feeds = one_node("MeanVarianceNormalization", x)
    (found,) = rooftile.InferenceSession(model.SerializeToString()).run(None, feeds)
    exact, axes = x.astype(np.float64), (0, 2, 3)
    wanted = (exact - exact.mean(axes, keepdims=True)) / exact.std(axes, keepdims=True)
    np.testing.assert_allclose(found, wanted, rtol=1e-3, atol=1e-3)
    assert found.dtype == dtype


def test_defaults_are_those_that_schemas_hold() -> None:
    x = -np.ones(3)
    found = evaluate(read(one_node("LeakyRelu", x)[0]), {"in0": x})["out0"]
    np.testing.assert_array_equal(found, x * np.float64(np.float32(0.01)))


def test_half_precision_statistics_are_held_in_f32() -> None:
    x = (floats(2, 256) * 300).astype(np.float16)
    ones = Const(np.ones(256, np.float16))
    model, _ = one_node("LayerNormalization", x, ones)
    graph = read(model)
    reduced = [graph.values[node.inputs[0]].dtype for node in graph.nodes if node.op == "reduce"]
    assert reduced == ["f32", "f32"]
    assert graph.values["out0"].dtype == "f16"


REDUCTIONS = [
    "ReduceSum",
    "ReduceProd",
    "ReduceMax",
    "ReduceMin",
    "ReduceMean",
    "ReduceL1",
    "ReduceL2",
    "ReduceSumSquare",
    "ReduceLogSum",
    "ReduceLogSumExp",
]


@pytest.mark.parametrize("op", REDUCTIONS)
def test_reductions(op: str) -> None:
    x = np.abs(floats(2, 3, 4)) + 0.5
    same(op, x, opset=12, axes=[1, -1])
    same(op, x, opset=12, axes=[0], keepdims=0)
    same(op, x, opset=12, keepdims=0)
    same(op, x, ints(1), opset=18, keepdims=0)
    same(op, x, opset=18)
    if op == "ReduceSum":
        same(op, x, opset=18, noop_with_empty_axes=1)


def test_sum_of_integers() -> None:
    same("ReduceSum", np.arange(6).reshape(2, 3), ints(1), opset=13)


BAD = [
    ("Conv", (IMAGE, floats(5, 3, 3, 3)), {}, "do not fit input"),
    ("Conv", (IMAGE, floats(5, 4, 3)), {}, "must have one rank"),
    ("Conv", (IMAGE, floats(5, 4, 3, 3)), {"kernel_shape": [2, 2]}, "is not that of the weights"),
    ("Conv", (IMAGE, floats(5, 4, 3, 3)), {"pads": [1, 1]}, "pads"),
    ("Conv", (IMAGE, floats(5, 4, 3, 3)), {"strides": [0, 1]}, "strides .* positive"),
    ("Conv", (IMAGE, floats(5, 4, 9, 9)), {}, "does not fit dim 0 of 7"),
    ("Conv", (IMAGE, floats(5, 4, 3, 3)), {"auto_pad": "SAME"}, "auto_pad 'SAME'"),
    ("MaxPool", (IMAGE[0, 0],), {"kernel_shape": [2]}, "needs a batch"),
    ("MatMul", (floats(2, 3), floats(2, 3)), {}, "inner dims differ"),
    ("MatMul", (floats(2, 2, 3), floats(3, 3, 3)), {}, "do not broadcast"),
    ("MatMul", (np.float32(1), floats(2, 3)), {}, "a scalar"),
    ("Gemm", (floats(2, 3), floats(2, 3)), {}, "inner dims differ"),
    ("Gemm", (floats(2, 3, 4), floats(2, 3)), {}, "must be matrices"),
    ("GroupNormalization", (IMAGE, floats(3), floats(3)), {"num_groups": 3, "opset": 18}, "divide"),
    ("InstanceNormalization", (IMAGE, floats(1, 4), floats(4)), {}, "a vector over the channels"),
    ("ReduceMax", (IMAGE,), {"axes": [7]}, "axis 7 is outside a tensor of rank 4"),
]


@pytest.mark.parametrize(("op", "inputs", "attributes", "message"), BAD)
def test_malformed_nodes_are_named(op: str, inputs: tuple, attributes: dict, message: str) -> None:
    model, _ = one_node(op, *inputs, **attributes)
    with pytest.raises(InvalidModel, match=message) as found:
        read(model)
    assert str(found.value).startswith(f"node it ({op})")


def test_rms_normalization() -> None:
    model, feeds = one_node(
        "RMSNormalization", floats(2, 3, 4), Const(floats(4, seed=1)), opset=23, epsilon=1e-3
    )
    x = feeds["in0"].astype(np.float64)
    wanted = x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-3) * floats(4, seed=1)
    np.testing.assert_allclose(evaluate(read(model), feeds)["out0"], wanted, rtol=1e-6)
