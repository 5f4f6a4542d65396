"""Linear models, support vectors and feature preparation of ai.onnx.ml, against onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import helper
from onnx_models import Array, Const, floats, model_of, truth

from rooftile.core.errors import InvalidModel, NeedsHost
from rooftile.frontends.onnx import read
from rooftile.ops.evaluate import check_types, evaluate
from rooftile.pipeline import compile_model

ML = "ai.onnx.ml"


def model(
    op: str, *inputs: Any, outputs: int = 1, version: int = 1, **attributes: Any
) -> tuple[Any, dict[str, Array]]:
    """A model of one node; inputs are arrays or constants."""
    names = [f"x{number}" for number in range(len(inputs))]
    feeds = {n: x for n, x in zip(names, inputs, strict=True) if not isinstance(x, Const)}
    constants = {n: x.array for n, x in zip(names, inputs, strict=True) if isinstance(x, Const)}
    results = ["y", "z"][:outputs]
    node = helper.make_node(op, names, results, domain=ML, **attributes)
    found = model_of([node], feeds, results, constants)
    found.opset_import.append(helper.make_opsetid(ML, version))
    return found, feeds


def same(op: str, *inputs: Any, **more: Any) -> None:
    made, feeds = model(op, *inputs, **more)
    wanted = truth(made, feeds)
    graph = check_types(read(made))
    compiled = compile_model(made).executable.run(list(feeds.values()))
    for name, got, want in zip(graph.outputs, compiled, wanted, strict=True):
        assert got.dtype == want.dtype and got.shape == want.shape
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=2e-6, err_msg=name)
        np.testing.assert_allclose(evaluate(graph, feeds)[name], want, rtol=1e-5, atol=2e-6)


X = floats(6, 4)
GRID = np.array([[1.0, np.nan, 3.0, 0.0], [2.0, 2.0, np.nan, 1.0]], np.float32)


def test_binarizer() -> None:
    same("Binarizer", X, threshold=0.25)


@pytest.mark.parametrize("count", [1, 4])
def test_scaler(count: int) -> None:
    same("Scaler", X, offset=[0.5, 1.0, -1.0, 2.0][:count], scale=[2.0, 0.5, 3.0, 1.0][:count])


@pytest.mark.parametrize("norm", ["MAX", "L1", "L2"])
def test_normalizer(norm: str) -> None:
    same("Normalizer", np.vstack([X, np.zeros((1, 4), np.float32)]), norm=norm)


def test_linear_regressor() -> None:
    weights = floats(3, 4, seed=1).ravel().tolist()
    same("LinearRegressor", X, coefficients=weights, intercepts=[0.1, 0.2, 0.3], targets=3)


@pytest.mark.parametrize("transform", ["NONE", "SOFTMAX", "LOGISTIC"])
def test_linear_classifier(transform: str) -> None:
    weights = floats(3, 4, seed=2).ravel().tolist()
    more: dict[str, Any] = {"post_transform": transform, "classlabels_ints": [3, 5, 7]}
    same(
        "LinearClassifier",
        X,
        outputs=2,
        coefficients=weights,
        intercepts=[0.1, 0.2, 0.3],
        **more,
    )


@pytest.mark.parametrize("transform", ["NONE", "LOGISTIC"])
def test_one_score_for_two_classes(transform: str) -> None:
    more: dict[str, Any] = {"post_transform": transform, "classlabels_ints": [3, 5]}
    weights = floats(4, seed=3).tolist()
    same("LinearClassifier", X, outputs=2, coefficients=weights, intercepts=[0.1], **more)


@pytest.mark.parametrize("kernel", ["LINEAR", "POLY", "RBF", "SIGMOID"])
@pytest.mark.parametrize("one_class", [0, 1])
def test_svm_regressor(kernel: str, one_class: int) -> None:
    same(
        "SVMRegressor",
        X,
        kernel_type=kernel,
        kernel_params=[0.3, 0.5, 3.0],
        n_supports=5,
        support_vectors=floats(5, 4, seed=4).ravel().tolist(),
        coefficients=floats(5, seed=5).tolist(),
        rho=[0.25],
        one_class=one_class,
    )


def test_linear_svm_regressor() -> None:
    same(
        "SVMRegressor",
        X,
        coefficients=floats(4, seed=5).tolist(),
        kernel_params=[0.0, 0.0, 0.0],
        rho=[0.25],
        n_supports=0,
    )


def test_imputer() -> None:
    same("Imputer", GRID, imputed_value_floats=[9.0], replaced_value_float=float("nan"))
    same("Imputer", GRID, imputed_value_floats=[9.0, 8.0, 7.0, 6.0], replaced_value_float=1.0)
    whole = np.array([[1, 2, 3], [3, 1, 0]])
    same("Imputer", whole, imputed_value_int64s=[7, 8, 9], replaced_value_int64=3)


def test_feature_vectorizer() -> None:
    same("FeatureVectorizer", X, floats(6, 2), inputdimensions=[4, 2])


def test_array_feature_extractor() -> None:
    same("ArrayFeatureExtractor", X, Const(np.array([3, 0, 3])))


def test_one_hot_encoder() -> None:
    same("OneHotEncoder", np.array([[1, 2], [5, 3]]), cats_int64s=[3, 1, 2], zeros=1)


@pytest.mark.parametrize(
    "table",
    [
        {"keys_int64s": [4, 2, 2], "values_floats": [1.5, 2.5, 3.5], "default_float": 9.0},
        {"keys_int64s": [4, 2, 7], "values_int64s": [1, 2, 3], "default_int64": 42},
    ],
)
def test_label_encoder_of_numbers(table: dict[str, Any]) -> None:
    same("LabelEncoder", np.array([[2, 4], [7, 9]]), version=2, **table)


def test_label_encoder_finds_nan_since_opset_4() -> None:
    keys, values = [1.0, float("nan"), 3.0], [10, 20, 30]
    same("LabelEncoder", GRID, version=4, keys_floats=keys, values_int64s=values, default_int64=0)


def test_strings_are_left_to_the_host() -> None:
    for op, version, more in (
        ("LabelEncoder", 2, {"keys_int64s": [1], "values_strings": ["a"]}),
        ("OneHotEncoder", 1, {"cats_strings": ["a"]}),
    ):
        with pytest.raises(NeedsHost, match="strings"):
            read(model(op, np.array([1]), version=version, **more)[0])


REFUSED: dict[str, tuple[str, dict[str, Any]]] = {
    "scale holds 3 values": ("Scaler", {"scale": [1.0] * 3}),
    "norm must be MAX, L1 or L2, not 'L3'": ("Normalizer", {"norm": "L3"}),
    "3 coefficients do not fit 1 rows of 4": ("LinearRegressor", {"coefficients": [1.0] * 3}),
    "2 intercepts do not fit 1 rows": (
        "LinearRegressor",
        {"coefficients": [1.0] * 4, "intercepts": [1.0] * 2},
    ),
    "5 numbers are no 2 vectors": (
        "SVMRegressor",
        {"n_supports": 2, "support_vectors": [1.0] * 5, "coefficients": [1.0] * 2},
    ),
    "imputed_value_floats holds 0 values": ("Imputer", {}),
}


@pytest.mark.parametrize("message", REFUSED)
def test_what_does_not_fit_is_refused(message: str) -> None:
    op, attributes = REFUSED[message]
    with pytest.raises(InvalidModel, match=message):
        read(model(op, X, **attributes)[0])
