"""Tree ensembles of ai.onnx.ml: both forms of forests, every mode, aggregate and transform."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import helper
from onnx_models import Array, model_of, truth

from rooftile.core.errors import InvalidModel, InvalidOption, NeedsHost
from rooftile.frontends.onnx import read
from rooftile.native.target import FORCE, host_target
from rooftile.ops.evaluate import check_types, evaluate
from rooftile.pipeline import compile_model

ML = "ai.onnx.ml"
MODES = ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ"]
FEATURES = 5


class Trees:
    """Random trees, written down node by node; values are on a grid so that equality happens."""

    def __init__(self, seed: int, trees: int, depth: int, modes: list[str]) -> None:
        self.rng = np.random.default_rng(seed)
        self.modes = modes
        self.rows: list[dict[str, Any]] = []
        self.leaves: list[tuple[int, int]] = []
        for tree in range(trees):
            self._node(tree, [0], depth)

    def _node(self, tree: int, counter: list[int], depth: int) -> int:
        number = counter[0]
        counter[0] += 1
        row: dict[str, Any] = {"tree": tree, "node": number, "mode": "LEAF"}
        self.rows.append(row)
        if depth == 0 or (depth < 3 and self.rng.random() < 0.3):
            self.leaves.append((tree, number))
            return number
        row["mode"] = str(self.rng.choice(self.modes))
        row["feature"] = int(self.rng.integers(FEATURES))
        row["value"] = float(self.rng.integers(-3, 4)) / 2
        row["track"] = int(self.rng.integers(2))
        row["true"] = self._node(tree, counter, depth - 1)
        row["false"] = self._node(tree, counter, depth - 1)
        return number

    def attributes(self) -> dict[str, Any]:
        """The nodes in the form of opsets 1 and 3."""

        def column(name: str, default: Any) -> list[Any]:
            return [row.get(name, default) for row in self.rows]

        return {
            "nodes_treeids": column("tree", 0),
            "nodes_nodeids": column("node", 0),
            "nodes_modes": column("mode", "LEAF"),
            "nodes_featureids": column("feature", 0),
            "nodes_values": column("value", 0.0),
            "nodes_truenodeids": column("true", 0),
            "nodes_falsenodeids": column("false", 0),
            "nodes_missing_value_tracks_true": column("track", 0),
        }

    def votes(self, what: str, targets: list[int], low: float = -1.0) -> dict[str, Any]:
        """One vote of each leaf for each target."""
        pairs = [(leaf, target) for leaf in self.leaves for target in targets]
        found = {"n_targets": len(targets)} if what == "target" else {}
        return found | {
            f"{what}_treeids": [leaf[0] for leaf, _ in pairs],
            f"{what}_nodeids": [leaf[1] for leaf, _ in pairs],
            f"{what}_ids": [target for _, target in pairs],
            f"{what}_weights": self.rng.uniform(low, 1, len(pairs)).astype(np.float32).tolist(),
        }


def rows(seed: int, missing: bool = True) -> Array:
    """Inputs on the grid of the splits, some of them missing."""
    rng = np.random.default_rng(seed)
    x = (rng.integers(-4, 5, (7, FEATURES)) / 2).astype(np.float32)
    if missing:
        x[rng.random(x.shape) < 0.2] = np.nan
    return x


def model(op: str, x: Array, outputs: int, version: int = 3, **attributes: Any) -> Any:
    """A model of one node."""
    names = ["y", "z"][:outputs]
    node = helper.make_node(op, ["x"], names, domain=ML, **attributes)
    found = model_of([node], {"x": x}, names)
    found.opset_import.append(helper.make_opsetid(ML, version))
    return found


def same(model: Any, x: Array, **tolerance: float) -> None:
    """The graph and the compiled program give what onnxruntime gives."""
    wanted = truth(model, {"x": x})
    graph = check_types(read(model))
    compiled = compile_model(model).executable.run([x])
    for name, got, want in zip(graph.outputs, compiled, wanted, strict=True):
        reference = evaluate(graph, {"x": x})[name]
        assert got.dtype == want.dtype and got.shape == want.shape
        np.testing.assert_allclose(got, want, **{"rtol": 1e-5, "atol": 1e-6, **tolerance})
        np.testing.assert_allclose(reference, want, **{"rtol": 1e-5, "atol": 1e-6, **tolerance})


@pytest.mark.parametrize("mode", MODES)
def test_each_mode(mode: str) -> None:
    trees = Trees(3, 4, 5, [mode])
    x = rows(1)
    same(
        model("TreeEnsembleRegressor", x, 1, **trees.attributes(), **trees.votes("target", [0])), x
    )


@pytest.mark.parametrize("depth", [0, 1, 7, 11])
def test_mixed_modes_at_each_depth(depth: int) -> None:
    trees = Trees(depth, 6, depth, MODES)
    x = rows(2)
    votes = trees.votes("target", [0])
    same(model("TreeEnsembleRegressor", x, 1, **trees.attributes(), **votes), x)


@pytest.mark.parametrize("aggregate", ["SUM", "AVERAGE", "MIN", "MAX"])
@pytest.mark.parametrize("targets", [1, 3])
def test_aggregates(aggregate: str, targets: int) -> None:
    trees = Trees(5, 3, 4, ["BRANCH_LEQ"])
    x = rows(3)
    attributes: dict[str, Any] = {"aggregate_function": aggregate}
    attributes |= trees.attributes() | trees.votes("target", list(range(targets)))
    attributes["base_values"] = [0.5, -0.25, 1.0][:targets]
    same(model("TreeEnsembleRegressor", x, 1, **attributes), x)


@pytest.mark.parametrize("transform", ["SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"])
def test_transforms(transform: str) -> None:
    trees = Trees(6, 1, 4, ["BRANCH_LEQ"])
    x = rows(4)
    votes = trees.votes("target", [0, 1, 2], low=0.1)
    attributes = {"post_transform": transform} | trees.attributes() | votes
    atol = 1e-4 if transform == "PROBIT" else 1e-6  # it takes differences of near numbers
    same(model("TreeEnsembleRegressor", x, 1, **attributes), x, atol=atol)


def test_a_single_target_is_transformed_too() -> None:
    trees = Trees(7, 2, 3, ["BRANCH_LEQ"])
    x = rows(5)
    attributes = trees.attributes() | trees.votes("target", [0])
    plain = evaluate(read(model("TreeEnsembleRegressor", x, 1, **attributes)), {"x": x})["y"]
    found = model("TreeEnsembleRegressor", x, 1, post_transform="LOGISTIC", **attributes)
    np.testing.assert_allclose(evaluate(read(found), {"x": x})["y"], 1 / (1 + np.exp(-plain)))


def test_integer_features() -> None:
    """onnxruntime has no kernel for them: they count as f32."""
    trees = Trees(8, 3, 4, MODES)
    x = np.random.default_rng(0).integers(-3, 4, (5, FEATURES))
    attributes = trees.attributes() | trees.votes("target", [0])
    floats = model("TreeEnsembleRegressor", x.astype(np.float32), 1, **attributes)
    whole = evaluate(read(model("TreeEnsembleRegressor", x, 1, **attributes)), {"x": x})
    np.testing.assert_allclose(whole["y"], truth(floats, {"x": x.astype(np.float32)})[0], 1e-5)


def test_double_splits_are_compared_as_doubles() -> None:
    trees = Trees(9, 3, 6, ["BRANCH_LT", "BRANCH_LEQ"])
    attributes = trees.attributes() | trees.votes("target", [0])
    splits = np.array(attributes.pop("nodes_values")) + 1e-12
    weights = np.array(attributes.pop("target_weights"))
    attributes["nodes_values_as_tensor"] = helper.make_tensor("v", 11, splits.shape, splits)
    attributes["target_weights_as_tensor"] = helper.make_tensor("w", 11, weights.shape, weights)
    x = rows(6).astype(np.float64)
    same(model("TreeEnsembleRegressor", x, 1, **attributes), x)


@pytest.mark.parametrize("transform", ["NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO"])
@pytest.mark.parametrize("low", [0.0, -1.0])
def test_two_classes_by_votes_for_one(transform: str, low: float) -> None:
    trees = Trees(10, 1, 4, MODES)
    x = rows(7)
    attributes = trees.attributes() | trees.votes("class", [0], low)
    attributes |= {"classlabels_int64s": [4, 9], "post_transform": transform}
    same(model("TreeEnsembleClassifier", x, 2, **attributes), x)
    attributes["base_values"] = [0.125]
    same(model("TreeEnsembleClassifier", x, 2, **attributes), x)


def test_two_classes_by_votes_for_the_second() -> None:
    trees = Trees(11, 2, 4, MODES)
    x = rows(8)
    attributes = trees.attributes() | trees.votes("class", [1])
    same(model("TreeEnsembleClassifier", x, 2, classlabels_int64s=[4, 9], **attributes), x)


@pytest.mark.parametrize("transform", ["NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO"])
def test_many_classes(transform: str) -> None:
    trees = Trees(12, 5, 4, MODES)
    x = rows(9)
    attributes = trees.attributes() | trees.votes("class", [0, 1, 2])
    attributes |= {"classlabels_int64s": [3, 1, 2], "post_transform": transform}
    attributes["base_values"] = [0.1, 0.2, 0.3]
    same(model("TreeEnsembleClassifier", x, 2, **attributes), x)


def test_string_labels_are_left_to_the_host() -> None:
    trees = Trees(13, 1, 2, MODES)
    attributes = trees.attributes() | trees.votes("class", [0, 1])
    found = model(
        "TreeEnsembleClassifier", rows(0), 2, classlabels_strings=["a", "b"], **attributes
    )
    with pytest.raises(NeedsHost, match="its labels are strings"):
        read(found)


def ensemble(x: Array, **changes: Any) -> Any:
    """Opset 5: x0 in {1, 2, 3} ? w0 : (x1 < 0.5 ? w1 : w2), one target of two each."""
    dtype = helper.np_dtype_to_tensor_dtype(x.dtype)

    def tensor(name: str, kind: int, values: list[float]) -> Any:
        return helper.make_tensor(name, kind, [len(values)], values)

    attributes: dict[str, Any] = {
        "n_targets": 2,
        "tree_roots": [0],
        "nodes_featureids": [0, 1],
        "nodes_modes": tensor("m", 2, [6, 1]),
        "nodes_splits": tensor("s", dtype, [0.0, 0.5]),
        "nodes_trueleafs": [1, 1],
        "nodes_truenodeids": [0, 1],
        "nodes_falseleafs": [0, 1],
        "nodes_falsenodeids": [1, 2],
        "membership_values": tensor("v", dtype, [1.0, 2.0, 3.0]),
        "leaf_targetids": [0, 1, 0],
        "leaf_weights": tensor("w", dtype, [1.0, 2.0, 4.0]),
    }
    return model("TreeEnsemble", x, 1, 5, **{**attributes, **changes})


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_membership(dtype: Any) -> None:
    x = np.array([[1, 0], [2, 9], [3, 0], [4, 0], [0, 0.5], [np.nan, 0.25]], dtype)
    wanted = np.array([[1, 0], [1, 0], [1, 0], [0, 2], [4, 0], [0, 2]], dtype)
    [found] = compile_model(ensemble(x)).executable.run([x])
    np.testing.assert_array_equal(found, wanted)
    np.testing.assert_array_equal(evaluate(read(ensemble(x)), {"x": x})["y"], wanted)


REFUSED = {
    "a branch leads to a node that is not there": {"nodes_falsenodeids": [1, 3]},
    "the branches of its trees go in a circle": {
        "nodes_falsenodeids": [1, 0],
        "nodes_falseleafs": [0, 0],
    },
    "attributes nodes_... must have equal lengths": {"nodes_trueleafs": [1]},
    "a weight belongs to a leaf or target": {"leaf_targetids": [0, 2, 0]},
    "leaf_targetids and leaf_weights must have equal lengths": {"leaf_targetids": [0, 1]},
    "nodes_modes holds a mode": {"nodes_modes": helper.make_tensor("m", 2, [2], [7, 1])},
    "membership_values does not hold a set": {
        "membership_values": helper.make_tensor("v", 1, [0], [])
    },
    "a test asks for feature 5; X has 2": {"nodes_featureids": [0, 5]},
    "a test asks for a feature that cannot be there": {"nodes_featureids": [0, 1 << 33]},
}


@pytest.mark.parametrize("message", REFUSED)
def test_broken_forests_are_refused(message: str) -> None:
    x = np.zeros((3, 2), np.float32)
    with pytest.raises(InvalidModel, match=message):
        read(ensemble(x, **REFUSED[message]))


def test_broken_nodes_are_refused() -> None:
    trees = Trees(14, 1, 2, MODES)
    x = rows(0)
    attributes = trees.attributes() | trees.votes("target", [0])
    twice = attributes | {"nodes_nodeids": [0] * len(trees.rows)}
    with pytest.raises(InvalidModel, match="node 0 of tree 0 is there twice"):
        read(model("TreeEnsembleRegressor", x, 1, **twice))
    with pytest.raises(InvalidModel, match="aggregate_function must be one of"):
        read(model("TreeEnsembleRegressor", x, 1, aggregate_function="MEDIAN", **attributes))
    with pytest.raises(InvalidModel, match="post_transform must be one of"):
        read(model("TreeEnsembleRegressor", x, 1, post_transform="TANH", **attributes))
    with pytest.raises(InvalidModel, match="base_values holds 3 values for 1 targets"):
        read(model("TreeEnsembleRegressor", x, 1, base_values=[0.0] * 3, **attributes))


@pytest.fixture(params=["", "avx2", "sse4.2"])
def lowered(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Code for this host, and for lesser ones."""
    monkeypatch.setenv(FORCE, request.param)
    try:
        host_target()
    except InvalidOption as error:
        pytest.skip(str(error))


def of_depths(depths: list[int], modes: list[str] = MODES) -> Trees:
    """Full trees of the depths."""
    trees = Trees(15, 0, 0, modes)
    for tree, depth in enumerate(depths):
        trees._node(tree, [0], depth)
    return trees


def batch_of(count: int, dtype: Any = np.float32) -> Array:
    """Rows on the grid of the splits, with missing values and infinities."""
    rng = np.random.default_rng(count)
    x = (rng.integers(-4, 5, (count, FEATURES)) / 2).astype(dtype)
    x[rng.random(x.shape) < 0.1] = np.nan
    x[rng.random(x.shape) < 0.1] = -np.inf
    return x


@pytest.mark.parametrize("modes", [["BRANCH_LEQ"], ["BRANCH_LT", "BRANCH_GT"], MODES])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_trees_of_many_depths(dtype: Any, modes: list[str], lowered: None) -> None:
    trees = of_depths([0, 3, 9, 1, 0, 6, 2, 2, 5, 1, 4], modes)
    attributes = trees.attributes() | trees.votes("target", [0])
    if dtype == np.float64:
        for name, kept in (("nodes_values", "v"), ("target_weights", "w")):
            values = attributes.pop(name)
            attributes[f"{name}_as_tensor"] = helper.make_tensor(kept, 11, [len(values)], values)
    for count in (1, 3, 8, 37):
        x = batch_of(count, dtype)
        same(model("TreeEnsembleRegressor", x, 1, **attributes), x)


@pytest.mark.parametrize("track", ["none", "all"])
def test_missing_values_are_told_by_all_tests_or_by_none(track: str) -> None:
    trees = Trees(16, 7, 5, ["BRANCH_LEQ"])
    x = batch_of(9)
    attributes = trees.attributes() | trees.votes("target", [0])
    attributes["nodes_missing_value_tracks_true"] = [int(track == "all")] * len(trees.rows)
    same(model("TreeEnsembleRegressor", x, 1, **attributes), x)


def test_no_rows() -> None:
    trees = Trees(17, 3, 4, ["BRANCH_LEQ"])
    attributes = trees.attributes() | trees.votes("target", [0])
    x = np.zeros((0, FEATURES), np.float32)
    [found] = compile_model(model("TreeEnsembleRegressor", x, 1, **attributes)).executable.run([x])
    assert found.shape == (0, 1)


@pytest.mark.parametrize(("count", "feature"), [(1, 0), (4, 1), (21, 0), (2, 1 << 20)])
def test_a_chain_of_a_thousand_tests(count: int, feature: int) -> None:
    """x <= 0, x <= 1, ...: each test that fails leads to the next. Words of a far feature have 64
    bits."""
    length = 1000
    x = np.zeros((count, feature + 1), np.float32)
    x[:, feature] = np.random.default_rng(count).integers(-5, length + 5, count)
    numbers = list(range(length))

    def floats(name: str, values: list[float]) -> Any:
        return helper.make_tensor(name, 1, [len(values)], values)

    found = model(
        "TreeEnsemble",
        x,
        1,
        5,
        n_targets=1,
        tree_roots=[0],
        nodes_featureids=[feature] * length,
        nodes_modes=helper.make_tensor("m", 2, [length], [0] * length),
        nodes_splits=floats("s", list(map(float, numbers))),
        nodes_trueleafs=[1] * length,
        nodes_truenodeids=numbers,
        nodes_falseleafs=[0] * (length - 1) + [1],
        nodes_falsenodeids=[*numbers[1:], length],
        leaf_targetids=[0] * (length + 1),
        leaf_weights=floats("w", list(map(float, [*numbers, length]))),
    )
    [got] = compile_model(found).executable.run([x])
    np.testing.assert_array_equal(got, np.clip(x[:, feature:], 0, length))


def test_limits_that_no_number_reaches_are_looked_up() -> None:
    """x < -inf holds for missing values alone, if they are to be told."""
    attributes = {
        "nodes_modes": helper.make_tensor("m", 2, [2], [1, 1]),
        "nodes_splits": helper.make_tensor("s", 1, [2], [-np.inf, 0.5]),
        "nodes_missing_value_tracks_true": [1, 0],
        "membership_values": None,
    }
    x = np.array([[np.nan, 0], [-np.inf, 0], [0, 0.5], [0, np.nan]], np.float32)
    found = ensemble(x, **attributes)
    [got] = compile_model(found).executable.run([x])
    np.testing.assert_array_equal(got, [[1, 0], [0, 2], [4, 0], [4, 0]])
