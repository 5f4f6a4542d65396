"""Readers about positions against onnxruntime, compiled: extremes, orders, masks, scatters."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import helper
from onnx_models import Const, agrees, compiled, floats, ints, model_of, one_node

import rooftile
from rooftile.core.errors import InvalidInput, InvalidModel
from rooftile.frontends.onnx import read

X = floats(3, 5, 4)
TIES = np.array([[1, 3, 3, 0], [2, 2, 1, 2], [5, 0, 5, 5]], np.float32)


@pytest.mark.parametrize("op", ["ArgMax", "ArgMin"])
@pytest.mark.parametrize("last", [0, 1])
@pytest.mark.parametrize("axis", [0, -1])
def test_arg_of_extremes(op: str, last: int, axis: int) -> None:
    compiled(op, TIES, axis=axis, keepdims=last, select_last_index=last)
    compiled(op, TIES.astype(np.int32), axis=axis, select_last_index=last)


@pytest.mark.parametrize("row", [[1, np.nan, 3, 2], [np.nan, 1, 2, 5], [3, np.nan, -1, np.nan]])
def test_arg_of_extremes_steps_over_nan(row: list[float]) -> None:
    x = np.array([row], np.float32)
    compiled("ArgMax", x, axis=1)
    compiled("ArgMin", x, axis=1, select_last_index=1)


def test_arg_of_an_empty_axis() -> None:
    with pytest.raises(InvalidModel, match=r"axis 0 of \[0, 2\] has no element to choose from"):
        read(one_node("ArgMax", np.zeros((0, 2), np.float32), axis=0)[0])


def test_hardmax() -> None:
    compiled("Hardmax", TIES, axis=0)
    compiled("Hardmax", X, opset=11, axis=1)


@pytest.mark.parametrize("axis", [0, -1])
def test_one_hot(axis: int) -> None:
    indices = np.array([[0, 4, -1], [-5, 5, 99]])
    compiled("OneHot", indices, ints(5), np.array([2, 7], np.float32), axis=axis)
    compiled("OneHot", indices.astype(np.float32), ints(5), np.array([0, 1]), axis=axis)
    with pytest.raises(InvalidModel, match="depth 0 must be at least 1"):
        read(one_node("OneHot", indices, ints(0), np.array([2, 7], np.float32))[0])


@pytest.mark.parametrize("shift", [-9, -1, 0, 2])
def test_trilu(shift: int) -> None:
    compiled("Trilu", X, Const(np.array(shift)), upper=1)
    compiled("Trilu", X, Const(np.array(shift)), upper=0)


def test_reverse_sequence() -> None:
    compiled("ReverseSequence", X, np.array([0, 1, 3, 2, 3]), batch_axis=1, time_axis=0)
    compiled("ReverseSequence", X, np.array([5, 0, 2]), batch_axis=0, time_axis=1)
    with pytest.raises(InvalidModel, match=r"lengths \[3\] do not fit axis 1"):
        read(one_node("ReverseSequence", X, np.array([5, 0, 2]))[0])


@pytest.mark.parametrize("largest", [0, 1])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, np.int32])
def test_top_k(largest: int, dtype: Any) -> None:
    x = np.random.default_rng(0).integers(-9, 9, (2, 37, 3)).astype(dtype)
    compiled("TopK", x, ints(20), outputs=2, axis=1, largest=largest)


def test_top_k_of_long_rows_with_nan() -> None:
    x = np.round(floats(2, 700) * 20)
    x[0, ::9], x[1, ::5] = np.nan, -0.0
    for largest in (0, 1):
        compiled("TopK", x, ints(300), outputs=2, largest=largest)
    with pytest.raises(InvalidModel, match=r"k 701 is not within axis 1 of \[2, 700\]"):
        read(one_node("TopK", x, ints(701), outputs=2)[0])


@pytest.mark.parametrize("reduction", ["none", "add", "mul", "max", "min"])
def test_scatter(reduction: str) -> None:
    rng = np.random.default_rng(0)
    indices, updates = rng.integers(-5, 5, (3, 9, 2)), floats(3, 9, 2, seed=1)
    compiled("ScatterElements", X, indices, updates, opset=18, axis=1, reduction=reduction)
    rows = np.array([[0, 1], [-1, -1], [0, 1], [2, 4]])
    compiled("ScatterND", X, rows, floats(4, 4, seed=2), opset=18, reduction=reduction)
    compiled("ScatterND", X, rows[:, :1], floats(4, 5, 4), opset=18, reduction=reduction)


def test_programs_beside_concat_and_views() -> None:
    """What a program computes is copied into a Concat's buffer; it reads parts and views."""
    nodes = [
        helper.make_node("Transpose", ["x"], ["t"]),
        helper.make_node("Exp", ["t"], ["e"]),
        helper.make_node("CumSum", ["e", "axis"], ["sums"]),
        helper.make_node("ScatterElements", ["t", "i", "e"], ["s"], axis=1),
        helper.make_node("Concat", ["sums", "e", "s"], ["y"], axis=0),
    ]
    feeds = {"x": TIES, "i": np.array([[2, 1, 0]] * 4)}
    model = model_of(nodes, feeds, ["y"], {"axis": np.array(0)})
    agrees(model, feeds)
    (found,) = rooftile.InferenceSession(model.SerializeToString()).run(None, feeds)
    grown = np.exp(TIES.T)
    np.testing.assert_allclose(found, [*np.cumsum(grown, 0), *grown, *grown[:, ::-1]], rtol=1e-5)


def test_scatter_outside_the_data_names_the_node() -> None:
    model, feeds = one_node("ScatterElements", X, np.array([[[5]]]), X[:1, :1, :1], axis=1)
    session = rooftile.InferenceSession(model.SerializeToString())
    with pytest.raises(InvalidInput, match=r"it.*out of range"):
        session.run(None, feeds)
    with pytest.raises(InvalidModel, match="reduction must be one of none, add"):
        wrong = one_node("ScatterND", X, np.array([[0]]), X[:1], opset=18, reduction="xor")
        read(wrong[0])


def test_scatter_without_updates() -> None:
    empty = np.zeros((0, 5, 4), np.float32)
    compiled("ScatterND", X, np.zeros((0, 1), np.int64), empty)


def test_scatter_of_the_whole() -> None:
    """Rows of no indices name the data itself."""
    indices, updates = np.zeros((2, 0), np.int64), floats(2, 3, 5, 4, seed=1)
    model, feeds = one_node("ScatterND", X, indices, updates, opset=18, reduction="add")
    (found,) = rooftile.InferenceSession(model.SerializeToString()).run(None, feeds)
    np.testing.assert_allclose(found, X + updates.sum(0), rtol=1e-5, atol=1e-6)


def test_tensor_scatter() -> None:
    cache, update = floats(2, 6, 3), floats(2, 4, 3, seed=1)
    starts = np.array([1, 4])
    model, feeds = one_node(
        "TensorScatter", cache, update, starts, opset=24, axis=1, mode="circular"
    )
    found = rooftile.InferenceSession(model.SerializeToString()).run(None, feeds)[0]
    with pytest.raises(InvalidModel, match="mode 'loop', axis 1 or the update"):
        read(one_node("TensorScatter", cache, update, opset=24, axis=1, mode="loop")[0])
    wanted = cache.copy()
    for batch, step in np.ndindex(2, 4):
        wanted[batch, (starts[batch] + step) % 6] = update[batch, step]
    np.testing.assert_array_equal(found, wanted)


def test_gather_nd() -> None:
    compiled("GatherND", X, np.array([[0, -1], [2, 3]]))
    compiled("GatherND", X, np.array([[[1], [-5]], [[0], [4]], [[2], [2]]]), batch_dims=1)
    model, feeds = one_node("GatherND", X, np.array([[0, 5]]))
    with pytest.raises(InvalidInput, match=r"it.*out of range"):
        rooftile.InferenceSession(model.SerializeToString()).run(None, feeds)


@pytest.mark.parametrize(("exclusive", "reverse"), [(0, 0), (1, 0), (0, 1), (1, 1)])
def test_cumulative(exclusive: int, reverse: int) -> None:
    for axis in (0, 1, -1):
        flags = {"exclusive": exclusive, "reverse": reverse}
        compiled("CumSum", X, Const(np.array(axis)), **flags)
        compiled("CumSum", (X * 9).astype(np.int64), Const(np.array(axis)), **flags)
