"""SVMClassifier against onnxruntime: pairs, votes, probabilities and linear forms."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import helper
from onnx_models import floats
from onnx_sessions import any_of, hosted, info, model_with, ran

import rooftile as rt

KERNELS = ("LINEAR", "RBF", "POLY", "SIGMOID")


def numbers(*shape: int, seed: int) -> list[float]:
    return [float(item) for item in floats(*shape, seed=seed).ravel()]


def model(classes: int, counts: list[int], strings: bool = False, **more: Any) -> Any:
    pairs, vectors = classes * (classes - 1) // 2, sum(counts)
    attributes: dict[str, Any] = {"kernel_params": [0.3, 0.5, 2.0], "vectors_per_class": counts}
    attributes["coefficients"] = numbers(classes - 1, vectors, seed=1)
    attributes["support_vectors"] = numbers(vectors, 3, seed=2)
    attributes["rho"] = numbers(pairs, seed=3)
    if strings:
        attributes["classlabels_strings"] = [f"class {number}" for number in range(classes)]
    else:
        attributes["classlabels_ints"] = [10 * number + 3 for number in range(classes)]
    attributes.update(more)
    held = {name: value for name, value in attributes.items() if value not in ([], None)}
    node = helper.make_node(
        "SVMClassifier", ["x"], ["label", "scores"], name="it", domain="ai.onnx.ml", **held
    )
    return model_with([node], [info("x", shape=[20, 3])], any_of("label", "scores"))


@pytest.mark.parametrize("transform", ["NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO"])
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("classes", [2, 3, 4])
def test_pairs_of_classes(classes: int, kernel: str, transform: str) -> None:
    counts = [2, 3, 1, 2][:classes]
    made = model(classes, counts, kernel == "RBF", kernel_type=kernel, post_transform=transform)
    session = ran(made, {"x": floats(20, 3)}, rtol=1e-4, atol=1e-5)
    assert hosted(session) == ["SVMClassifier"]


@pytest.mark.parametrize("classes", [2, 3, 4])
def test_probabilities(classes: int) -> None:
    pairs = classes * (classes - 1) // 2
    more = {"prob_a": numbers(pairs, seed=5), "prob_b": numbers(pairs, seed=6)}
    made = model(classes, [2, 3, 1, 2][:classes], kernel_type="RBF", **more)
    session = ran(made, {"x": floats(20, 3)}, rtol=1e-4, atol=1e-5)
    scores = session.run(None, {"x": floats(20, 3)})[1]
    np.testing.assert_allclose(scores.sum(-1), 1, rtol=1e-5)


@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("classes", [2, 3])
def test_linear_forms(classes: int, positive: bool) -> None:
    weights = [abs(w) if positive else w for w in numbers(classes, 3, seed=7)]
    more = {"support_vectors": None, "vectors_per_class": None, "coefficients": weights}
    ran(model(classes, [], rho=[0.1], **more), {"x": floats(20, 3)}, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"coefficients": [1.0]}, "coefficients holds 1 numbers"),
        ({"support_vectors": [1.0]}, "support_vectors holds 1 numbers"),
        ({"rho": [1.0, 2.0]}, "2 numbers rho do not fit 2 classes"),
        ({"vectors_per_class": [6, -1]}, "has a negative count"),
        ({"vectors_per_class": [1 << 62, 1 << 62]}, "are needed"),
        ({"prob_a": [1.0, 1.0], "prob_b": [1.0]}, "prob_a and prob_b must hold 1 numbers each"),
        ({"kernel_type": "CUBIC"}, "kernel_type must be LINEAR, POLY, RBF or SIGMOID"),
        ({"post_transform": "PROBIT", "prob_a": [1.0], "prob_b": [1.0]}, "'PROBIT' is not NONE"),
        ({"classlabels_ints": []}, "0 labels do not fit"),
    ],
)
def test_refused(more: dict[str, Any], message: str) -> None:
    session = rt.InferenceSession(model(2, [2, 3], **more).SerializeToString())
    with pytest.raises(rt.InvalidInput, match=rf"^node it \(SVMClassifier\).*{message}"):
        session.run(None, {"x": floats(20, 3)})
