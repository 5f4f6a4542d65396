"""Small ONNX models of the forms that real ones have, seeded: what refactors are proved on."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from onnx import helper, numpy_helper

Array = npt.NDArray[Any]
Feeds = dict[str, Array]


class Writer:
    """Collects nodes and weights of one model; each call gives the name of its output."""

    def __init__(self, name: str, **inputs: tuple[int, ...]) -> None:
        self.name = name
        self.rng = np.random.default_rng(0)
        self.inputs = inputs
        self.nodes: list[Any] = []
        self.weights: list[Any] = []

    def weight(self, *shape: int) -> str:
        """Normal numbers, small enough that sums keep their size."""
        fan = max(1, int(np.prod(shape)) // max(1, shape[-1] if len(shape) == 2 else shape[0]))
        return self.constant(self.rng.normal(0, 1 / np.sqrt(fan), shape).astype(np.float32))

    def constant(self, array: Any) -> str:
        """An initializer."""
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def __call__(self, op: str, *inputs: str, **attributes: Any) -> str:
        name = f"{op.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, list(inputs), [name], name, **attributes))
        return name

    def model(self, *outputs: str) -> Any:
        """The ModelProto."""
        given = [helper.make_tensor_value_info(n, 1, shape) for n, shape in self.inputs.items()]
        found = [helper.make_empty_tensor_value_info(name) for name in outputs]
        graph = helper.make_graph(self.nodes, self.name, given, found, self.weights)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def mlp() -> Any:
    """Linear layers with GELU between, as exporters spell it."""
    w = Writer("mlp", x=(24, 48))
    h = w("Add", w("MatMul", "x", w.weight(48, 96)), w.weight(96))
    inner = w(
        "Add", w("Erf", w("Div", h, w.constant(np.float32(2**0.5)))), w.constant(np.float32(1))
    )
    gelu = w("Mul", w("Mul", h, inner), w.constant(np.float32(0.5)))
    return w.model(w("Gemm", gelu, w.weight(96, 40), w.weight(40)))


def norm_softmax() -> Any:
    """A layer norm written out, then softmax."""
    w = Writer("norm_softmax", x=(10, 7, 33))
    centred = w("Sub", "x", w("ReduceMean", "x", axes=[-1]))
    variance = w("ReduceMean", w("Pow", centred, w.constant(np.float32(2))), axes=[-1])
    scale = w("Sqrt", w("Add", variance, w.constant(np.float32(1e-5))))
    normed = w("Mul", w("Div", centred, scale), w.weight(33))
    return w.model(w("Softmax", w("Add", normed, w.weight(33)), axis=-1))


def attention() -> Any:
    """Multi-head attention from one input, heads by reshape and transpose."""
    w = Writer("attention", x=(2, 20, 32))
    heads = w.constant(np.array([0, 0, 4, 8]))
    q, k, v = (
        w(
            "Transpose",
            w("Reshape", w("Add", w("MatMul", "x", w.weight(32, 32)), w.weight(32)), heads),
            perm=[0, 2, 3, 1] if key else [0, 2, 1, 3],
        )
        for key in (False, True, False)
    )
    scores = w("Mul", w("MatMul", q, k), w.constant(np.float32(8**-0.5)))
    mixed = w("Transpose", w("MatMul", w("Softmax", scores, axis=-1), v), perm=[0, 2, 1, 3])
    joined = w("Reshape", mixed, w.constant(np.array([0, 0, 32])))
    return w.model(w("Add", w("MatMul", joined, w.weight(32, 32)), "x"))


def mobile_block() -> Any:
    """An inverted residual with squeeze-and-excitation, hard swish and batch norm."""
    w = Writer("mobile_block", x=(1, 16, 14, 14))
    h = w("HardSwish", w("Conv", "x", w.weight(48, 16, 1, 1), w.weight(48)))
    h = w("Conv", h, w.weight(48, 1, 3, 3), pads=[1] * 4, group=48)
    ones = w.constant(np.linspace(0.5, 1.5, 48, dtype=np.float32))
    h = w("Relu", w("BatchNormalization", h, ones, w.weight(48), w.weight(48), ones))
    squeezed = w("Relu", w("Conv", w("GlobalAveragePool", h), w.weight(12, 48, 1, 1)))
    gate = w("HardSigmoid", w("Conv", squeezed, w.weight(48, 12, 1, 1)))
    h = w("Conv", w("Mul", h, gate), w.weight(16, 48, 1, 1), w.weight(16))
    return w.model(w("Add", h, "x"))


def conv_pool() -> Any:
    """A strided stem, max and average pooling, a concatenation of branches, a classifier."""
    w = Writer("conv_pool", x=(1, 3, 23, 17))
    h = w("Relu", w("Conv", "x", w.weight(16, 3, 3, 3), strides=[2, 2], pads=[1] * 4))
    h = w("MaxPool", h, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    left = w("Conv", h, w.weight(8, 16, 1, 1))
    right = w("AveragePool", h, kernel_shape=[3, 3], pads=[1] * 4)
    h = w("Concat", left, right, axis=1)
    pooled = w("Flatten", w("GlobalAveragePool", h))
    return w.model(w("Gemm", pooled, w.weight(10, 24), transB=1))


def elementwise() -> Any:
    """A chain of pointwise ops with broadcasts, two outputs."""
    w = Writer("elementwise", x=(5, 1, 19), y=(6, 1))
    h = w("Tanh", w("Sub", w("Mul", "x", "y"), w.weight(19)))
    low, high = w.constant(np.float32(-0.3)), w.constant(np.float32(0.4))
    clipped = w("Clip", h, low, high)
    return w.model(w("Where", w("Less", h, low), clipped, w("Exp", clipped)), w("Sigmoid", h))


def models() -> dict[str, Any]:
    """Every model by name."""
    made = (mlp, norm_softmax, attention, mobile_block, conv_pool, elementwise)
    return {make.__name__: make() for make in made}


def feeds_of(model: Any, seed: int = 0) -> Feeds:
    """Normal numbers for each input."""
    rng = np.random.default_rng(seed)
    return {
        item.name: rng.standard_normal(
            [dim.dim_value for dim in item.type.tensor_type.shape.dim]
        ).astype(np.float32)
        for item in model.graph.input
    }
