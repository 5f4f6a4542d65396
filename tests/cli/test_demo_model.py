"""The shipped model is as good as it should be, and is what the example's export would write."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import onnx
import pytest

import rooftile
from rooftile.cli import demo

pytest.importorskip("sklearn")
sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))
import train_digits


def test_accuracy_on_the_test_split(digits: Path) -> None:
    _, _, images, labels = train_digits.split()
    images = np.ascontiguousarray(images.transpose(0, 3, 1, 2))
    compiled = rooftile.compile(str(digits), shapes={"images": images.shape})
    (probabilities,) = compiled(images)
    assert (probabilities.argmax(1) == labels).mean() >= 0.98


def test_shipped_images_are_test_images() -> None:
    _, _, images, labels = train_digits.split()
    shipped, shipped_labels = demo.test_images()
    count = len(shipped_labels)
    assert count == train_digits.SHIPPED
    np.testing.assert_array_equal(shipped, images[:count].transpose(0, 3, 1, 2))
    np.testing.assert_array_equal(shipped_labels, labels[:count])


def test_export_is_the_network() -> None:
    """An untrained network, exported and compiled, computes what its forward pass does."""
    network = train_digits.Network(seed=3)
    model = train_digits.export(network)
    images = train_digits.split()[2][:4]
    want, _ = network.forward(images)
    given = np.ascontiguousarray(images.transpose(0, 3, 1, 2))
    (got,) = rooftile.compile(model, shapes={"images": given.shape})(given)
    np.testing.assert_allclose(got, want, atol=1e-5)
    shipped = onnx.load_from_string(demo.model_bytes())
    assert [node.name for node in shipped.graph.node] == [node.name for node in model.graph.node]


def test_gradient() -> None:
    """The hand-written backward pass against differences of the loss."""
    network = train_digits.Network(seed=4)
    images, labels = train_digits.split()[:2]
    images, labels = images[:3], labels[:3]
    rng = np.random.default_rng(0)
    # Biases of zero would put blank parts of the images onto the kink of relu.
    network.w = {
        name: value + rng.normal(0, 0.05, value.shape) for name, value in network.w.items()
    }
    gradient = network.gradient(images.astype(np.float64), labels)

    def loss() -> float:
        probabilities, _ = network.forward(images.astype(np.float64))
        return float(-np.log(probabilities[np.arange(3), labels]).mean())

    for name, weight in network.w.items():
        place = tuple(int(rng.integers(extent)) for extent in weight.shape)
        before, step = weight[place], 1e-6
        weight[place] = before + step
        above = loss()
        weight[place] = before - step
        below = loss()
        weight[place] = before
        assert gradient[name][place] == pytest.approx((above - below) / (2 * step), abs=1e-6), name
