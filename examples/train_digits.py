"""Train the demo's model: a small CNN on scikit-learn's digits, in plain numpy, seeded.

    python examples/train_digits.py [--out FOLDER] [--epochs N]

Writes digits.onnx and digits.npz (test images and labels). The network: a 3x3 convolution, a
depthwise-separable block, a residual block with squeeze-and-excitation, pooling, a linear layer
and softmax. Takes about a minute on one core; needs scikit-learn, onnx and numpy.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import helper, numpy_helper
from sklearn.datasets import load_digits

Array = npt.NDArray[Any]
ASSETS = Path(__file__).parents[1] / "src" / "rooftile" / "cli" / "assets"
SHIPPED = 64
"""How many test images go into digits.npz."""
WIDTH, SQUEEZED, CLASSES = 32, 8, 10


def split(seed: int = 0) -> tuple[Array, Array, Array, Array]:
    """Images [n, 8, 8, 1] of 0..16 and labels, for training and (the last fifth) for testing."""
    digits = load_digits()
    order = np.random.default_rng(seed).permutation(len(digits.target))
    images = digits.images[order][..., None].astype(np.float32)
    labels = digits.target[order].astype(np.int64)
    cut = len(labels) * 4 // 5
    return images[:cut], labels[:cut], images[cut:], labels[cut:]


def windows(x: Array) -> Array:
    """The 3x3 neighbourhood of each pixel, zero outside: [n, h, w, c] -> [n, h, w, c, 3, 3]."""
    padded = np.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
    return np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(1, 2))


class Network:
    """Weights by name, the forward pass, and the gradient of the mean cross-entropy.

    Images have their channels last here; the ONNX file has them first.
    """

    def __init__(self, seed: int = 0) -> None:
        rng = np.random.default_rng(seed)

        def normal(fan_in: int, *shape: int) -> Array:
            return rng.normal(0, np.sqrt(2 / fan_in), shape).astype(np.float32)

        c, s = WIDTH, SQUEEZED
        self.w: dict[str, Array] = {
            "stem": normal(9, 3, 3, 1, c),
            "depthwise": normal(9, 3, 3, c),
            "pointwise": normal(c, c, c),
            "residual": normal(9 * c, 3, 3, c, c),
            "squeeze": normal(c, c, s),
            "excite": normal(s, s, c),
            "head": normal(4 * 4 * c, 4 * 4 * c, CLASSES),
        }
        sizes = {"squeeze": s, "head": CLASSES}
        for name in list(self.w):
            self.w[name + "_bias"] = np.zeros(sizes.get(name, c), np.float32)

    def forward(self, images: Array) -> tuple[Array, dict[str, Array]]:
        """Probabilities [n, 10] of images [n, 8, 8, 1], and what the backward pass needs."""
        w, kept = self.w, {"x": images / 16}
        kept["a"] = np.maximum(self._conv(kept["x"], "stem"), 0)
        spatial = np.einsum("nhwcij,ijc->nhwc", windows(kept["a"]), w["depthwise"])
        kept["b"] = np.maximum(spatial + w["depthwise_bias"], 0)
        kept["c"] = np.maximum(kept["b"] @ w["pointwise"] + w["pointwise_bias"], 0)
        kept["d"] = self._conv(kept["c"], "residual")
        kept["mean"] = kept["d"].mean((1, 2))
        kept["s"] = np.maximum(kept["mean"] @ w["squeeze"] + w["squeeze_bias"], 0)
        kept["gate"] = 1 / (1 + np.exp(-(kept["s"] @ w["excite"] + w["excite_bias"])))
        kept["e"] = np.maximum(kept["d"] * kept["gate"][:, None, None] + kept["c"], 0)
        n = len(images)
        pooled = kept["e"].reshape(n, 4, 2, 4, 2, WIDTH)
        kept["f"] = pooled.max((2, 4)).reshape(n, -1)
        logits = kept["f"] @ w["head"] + w["head_bias"]
        powers = np.exp(logits - logits.max(1, keepdims=True))
        return powers / powers.sum(1, keepdims=True), kept

    def gradient(self, images: Array, labels: Array) -> dict[str, Array]:
        """The gradient by weight name."""
        probabilities, k = self.forward(images)
        w, n, g = self.w, len(images), {}
        top = probabilities.copy()
        top[np.arange(n), labels] -= 1
        d_f = self._linear(g, "head", k["f"], top / n)
        e = k["e"].reshape(n, 4, 2, 4, 2, WIDTH)
        best = e == e.max((2, 4), keepdims=True)
        share = best / best.sum((2, 4), keepdims=True)
        d_e = (share * d_f.reshape(n, 4, 1, 4, 1, WIDTH)).reshape(n, 8, 8, WIDTH) * (k["e"] > 0)
        gate = k["gate"][:, None, None]
        d_gate = (d_e * k["d"]).sum((1, 2)) * k["gate"] * (1 - k["gate"])
        d_s = self._linear(g, "excite", k["s"], d_gate) * (k["s"] > 0)
        d_mean = self._linear(g, "squeeze", k["mean"], d_s)
        d_d = d_e * gate + d_mean[:, None, None] / 64
        d_c = (d_e + self._conv_gradient(g, "residual", k["c"], d_d)) * (k["c"] > 0)
        d_b = self._linear(g, "pointwise", k["b"], d_c) * (k["b"] > 0)
        g["depthwise"] = np.einsum("nhwcij,nhwc->ijc", windows(k["a"]), d_b)
        g["depthwise_bias"] = d_b.sum((0, 1, 2))
        d_a = np.einsum("nhwcij,ijc->nhwc", windows(d_b), w["depthwise"][::-1, ::-1])
        self._conv_gradient(g, "stem", k["x"], d_a * (k["a"] > 0))
        return g

    def _conv(self, x: Array, name: str) -> Array:
        kernel = self.w[name]
        columns = windows(x).transpose(0, 1, 2, 4, 5, 3).reshape(-1, kernel[..., 0].size)
        out = columns @ kernel.reshape(-1, kernel.shape[-1]) + self.w[name + "_bias"]
        return out.reshape(*x.shape[:3], -1)

    def _conv_gradient(self, g: dict[str, Array], name: str, x: Array, top: Array) -> Array:
        kernel = self.w[name]
        columns = windows(x).transpose(0, 1, 2, 4, 5, 3).reshape(-1, kernel[..., 0].size)
        g[name] = (columns.T @ top.reshape(-1, top.shape[-1])).reshape(kernel.shape)
        g[name + "_bias"] = top.sum((0, 1, 2))
        back = windows(top).transpose(0, 1, 2, 4, 5, 3).reshape(-1, 9 * top.shape[-1])
        turned = kernel[::-1, ::-1].transpose(0, 1, 3, 2).reshape(-1, x.shape[-1])
        return (back @ turned).reshape(x.shape)

    def _linear(self, g: dict[str, Array], name: str, x: Array, top: Array) -> Array:
        flat, above = x.reshape(-1, x.shape[-1]), top.reshape(-1, top.shape[-1])
        g[name], g[name + "_bias"] = flat.T @ above, above.sum(0)
        return top @ self.w[name].T


def train(network: Network, images: Array, labels: Array, epochs: int, seed: int = 1) -> None:
    """Adam with a falling rate on shuffled batches of 64."""
    rng, batch = np.random.default_rng(seed), 64
    mean = {name: np.zeros_like(value) for name, value in network.w.items()}
    square = {name: np.zeros_like(value) for name, value in network.w.items()}
    step, steps = 0, epochs * -(-len(labels) // batch)
    for epoch in range(epochs):
        order = rng.permutation(len(labels))
        for start in range(0, len(labels), batch):
            chosen = order[start : start + batch]
            step += 1
            rate = 2e-3 * (1 - (step - 1) / steps)
            for name, grad in network.gradient(images[chosen], labels[chosen]).items():
                mean[name] += 0.1 * (grad - mean[name])
                square[name] += 0.01 * (grad * grad - square[name])
                scale = np.sqrt(square[name] / (1 - 0.99**step)) + 1e-8
                network.w[name] -= rate * mean[name] / (1 - 0.9**step) / scale
        print(f"epoch {epoch + 1}: {accuracy(network, images, labels):.4f} on the training images")


def accuracy(network: Network, images: Array, labels: Array) -> float:
    """Share of images whose most probable class is the label."""
    return float((network.forward(images)[0].argmax(1) == labels).mean())


def export(network: Network) -> Any:
    """The network as an ONNX model: images [batch, 1, 8, 8] of 0..16 -> probabilities."""
    w = network.w
    first = (3, 2, 0, 1)  # a kernel's dims with its channels first
    by_channel = w["head"].reshape(4, 4, WIDTH, CLASSES).transpose(2, 0, 1, 3)
    weights = {
        "sixteenth": np.array(1 / 16, np.float32),
        "stem": w["stem"].transpose(first),
        "depthwise": w["depthwise"].transpose(2, 0, 1)[:, None],
        "pointwise": w["pointwise"].T[:, :, None, None],
        "residual": w["residual"].transpose(first),
        "squeeze": w["squeeze"].T[:, :, None, None],
        "excite": w["excite"].T[:, :, None, None],
        "head": by_channel.reshape(-1, CLASSES),
    }
    weights |= {name: value for name, value in w.items() if name.endswith("_bias")}

    def conv(x: str, name: str, y: str, window: int = 1, **more: int) -> Any:
        pads = [window // 2] * 4
        return helper.make_node("Conv", [x, name, name + "_bias"], [y], name, pads=pads, **more)

    def node(op: str, inputs: str, y: str, **more: Any) -> Any:
        return helper.make_node(op, inputs.split(), [y], f"{op.lower()}_{y}", **more)

    nodes = [
        node("Mul", "images sixteenth", "x"),
        conv("x", "stem", "stem_y", 3),
        node("Relu", "stem_y", "a"),
        conv("a", "depthwise", "depthwise_y", 3, group=WIDTH),
        node("Relu", "depthwise_y", "b"),
        conv("b", "pointwise", "pointwise_y"),
        node("Relu", "pointwise_y", "c"),
        conv("c", "residual", "d", 3),
        node("GlobalAveragePool", "d", "mean"),
        conv("mean", "squeeze", "squeeze_y"),
        node("Relu", "squeeze_y", "s"),
        conv("s", "excite", "excite_y"),
        node("Sigmoid", "excite_y", "gate"),
        node("Mul", "d gate", "gated"),
        node("Add", "gated c", "sum"),
        node("Relu", "sum", "e"),
        node("MaxPool", "e", "pooled", kernel_shape=[2, 2], strides=[2, 2]),
        node("Flatten", "pooled", "f"),
        node("Gemm", "f head head_bias", "logits"),
        node("Softmax", "logits", "probabilities", axis=1),
    ]
    tensors = [
        numpy_helper.from_array(np.ascontiguousarray(value, np.float32), name)
        for name, value in weights.items()
    ]
    signature = [("images", ["batch", 1, 8, 8]), ("probabilities", ["batch", CLASSES])]
    given, found = (
        helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape)
        for name, shape in signature
    )
    graph = helper.make_graph(nodes, "digits", [given], [found], tensors)
    opsets = [helper.make_opsetid("", 17)]
    model = helper.make_model(graph, producer_name="rooftile", opset_imports=opsets, ir_version=8)
    onnx.checker.check_model(model, full_check=True)
    return model


def main() -> None:
    """Train, tell the accuracy, write the files."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=ASSETS)
    parser.add_argument("--epochs", type=int, default=15)
    arguments = parser.parse_args()
    images, labels, test_images, test_labels = split()
    network = Network()
    train(network, images, labels, arguments.epochs)
    print(f"{accuracy(network, test_images, test_labels):.4f} on the test images")
    arguments.out.mkdir(parents=True, exist_ok=True)
    onnx.save(export(network), arguments.out / "digits.onnx")
    shipped = test_images[:SHIPPED].transpose(0, 3, 1, 2).astype(np.uint8)
    np.savez_compressed(
        arguments.out / "digits.npz", images=shipped, labels=test_labels[:SHIPPED].astype(np.uint8)
    )


if __name__ == "__main__":
    main()
