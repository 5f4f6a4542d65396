"""Sparse initializers, and initializers that a run overrides."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import SparseTensorProto, helper, numpy_helper
from onnx_models import floats, truth
from onnx_sessions import any_of, check, info

import rooftile as rt
from rooftile.core.errors import InvalidInput, InvalidModel

X = floats(2, 3)
ADD = helper.make_node("Add", ["x", "w"], ["y"], name="sum")


def sparse(indices: Any, values: Any = (5.0, 7.0), dims: Any = (2, 3)) -> Any:
    held = SparseTensorProto(dims=dims)
    held.values.CopyFrom(numpy_helper.from_array(np.array(values, np.float32), "w"))
    held.indices.CopyFrom(numpy_helper.from_array(np.array(indices, np.int64), "places"))
    return held


def model(*nodes: Any, inputs: Any = (), version: int = 8) -> Any:
    given = [info("x", X), *inputs]
    graph = helper.make_graph(list(nodes) or [ADD], "small", given, any_of("y"))
    opsets = [helper.make_opsetid("", 17)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=version)


@pytest.mark.parametrize(
    "indices", [[1, 4], [4, 1], [4, 4], [[0, 1], [1, 1]], [[1, 2], [0, 0]]], ids=str
)
def test_sparse_initializers_become_dense(indices: Any) -> None:
    made = model()
    made.graph.sparse_initializer.append(sparse(indices))
    check(rt.InferenceSession(made.SerializeToString()), made, {"x": X})


def test_sparse_constants() -> None:
    node = helper.make_node("Constant", [], ["w"], sparse_value=sparse([1, 4]))
    made = model(node, ADD)
    check(rt.InferenceSession(made.SerializeToString()), made, {"x": X})
    steps = model(node, ADD, helper.make_node("NonZero", ["w"], ["n"]))
    steps.graph.output.extend(any_of("n"))
    check(rt.InferenceSession(steps.SerializeToString()), steps, {"x": X})


def test_sparse_initializers_of_bodies_and_of_models_in_steps() -> None:
    branch = helper.make_graph([ADD], "branch", [], any_of("y"))
    branch.sparse_initializer.append(sparse([0, 5]))
    node = helper.make_node("If", ["c"], ["y"], then_branch=branch, else_branch=branch)
    wanted = X + np.array([[5, 0, 0], [0, 0, 7]], np.float32)
    for inputs, feeds in (((), {}), ((info("c", np.array(True)),), {"c": np.array(True)})):
        made = model(node, inputs=inputs)
        if not inputs:
            made.graph.initializer.append(numpy_helper.from_array(np.array(True), "c"))
        [found] = rt.InferenceSession(made.SerializeToString()).run(None, {"x": X, **feeds})
        np.testing.assert_allclose(found, wanted)


@pytest.mark.parametrize(
    ("damaged", "message"),
    [
        (sparse([1, 6]), r"an index is outside its shape \[2, 3\]"),
        (sparse([-1, 4]), "an index is outside its shape"),
        (sparse([[0, 3], [1, 1]]), "an index is outside its shape"),
        (sparse([1]), r"indices \[1\] do not fit 2 values"),
        (sparse([[1, 1, 1], [0, 0, 0]]), r"indices \[2, 3\] do not fit"),
        (sparse([[1], [2]]), r"indices \[2, 1\] do not fit"),
        (sparse([0, 1], dims=[1 << 40]), "the dense tensor at most 2147483648 bytes"),
        (sparse([0, 1], dims=[1 << 62, 1 << 62]), "the dense tensor at most"),
        (sparse([0, 1], dims=[-2, -3]), "dims must be positive"),
        (sparse([0, 1], dims=[1] * 40), "at most 32"),
        (sparse([0, 1], values=[[1.0], [2.0]]), "its values must be a list"),
    ],
)
def test_damaged_sparse_initializers(damaged: Any, message: str) -> None:
    made = model()
    made.graph.sparse_initializer.append(damaged)
    with pytest.raises(InvalidModel, match=f"^sparse tensor w.*{message}"):
        rt.InferenceSession(made.SerializeToString())


def defaulted(version: int = 8, shape: Any = (2, 3)) -> Any:
    made = model(inputs=[info("w", shape=list(shape))], version=version)
    made.graph.initializer.append(numpy_helper.from_array(X * 2, "w"))
    return made


def test_weights_that_are_inputs_too_can_be_overridden(tmp_path: Any) -> None:
    made = defaulted()
    path = tmp_path / "model.onnx"
    path.write_bytes(made.SerializeToString())
    for given in (made.SerializeToString(), path, made):
        session = rt.InferenceSession(given)
        assert [item.name for item in session.get_inputs()] == ["x"]
        [weight] = session.get_overridable_initializers()
        assert (weight.name, weight.shape, weight.type) == ("w", [2, 3], "tensor(float)")
        check(session, made, {"x": X})
        check(session, made, {"x": X, "w": X * 7})
        check(session, made, {"x": X})


def test_overridden_weights_are_checked_like_inputs() -> None:
    session = rt.InferenceSession(defaulted().SerializeToString())
    with pytest.raises(InvalidInput, match=r"input 'w' has the shape \[1, 3\]"):
        session.run(None, {"x": X, "w": X[:1]})
    with pytest.raises(InvalidInput, match="small has no input 'v'"):
        session.run(None, {"x": X, "w": X, "v": X})
    with pytest.raises(InvalidInput, match="missing: 'x'"):
        session.run(None, {"w": X})


def test_before_version_4_weights_are_constants() -> None:
    session = rt.InferenceSession(defaulted(version=3).SerializeToString())
    assert session.get_overridable_initializers() == []
    with pytest.raises(InvalidInput, match="has no input 'w'"):
        session.run(None, {"x": X, "w": X})


def test_shapes_and_sparse_weights_can_be_overridden() -> None:
    node = helper.make_node("Reshape", ["x", "to"], ["y"])
    made = model(node, inputs=[helper.make_tensor_value_info("to", 7, ["rank"])])
    made.graph.initializer.append(numpy_helper.from_array(np.array([6]), "to"))
    session = rt.InferenceSession(made.SerializeToString())
    for to in ([3, 2], [-1], [1, 6, 1]):
        check(session, made, {"x": X, "to": np.array(to)})
    check(session, made, {"x": X})
    light = model(inputs=[info("w", X)])
    light.graph.sparse_initializer.append(sparse([0, 5]))
    session = rt.InferenceSession(light.SerializeToString())
    [found] = session.run(None, {"x": X, "w": X})
    np.testing.assert_allclose(found, X * 2)


def test_few_sets_of_overridden_weights_are_kept() -> None:
    names = [f"w{number}" for number in range(5)]
    nodes = [helper.make_node("Sum", ["x", *names], ["y"])]
    made = model(*nodes, inputs=[info(name, X) for name in names])
    made.graph.initializer.extend(numpy_helper.from_array(X, name) for name in names)
    session = rt.InferenceSession(made.SerializeToString())
    for bits in range(1, 32, 3):
        feeds = {name: X * 3 for place, name in enumerate(names) if bits >> place & 1}
        [wanted] = truth(made, {"x": X, **feeds})
        np.testing.assert_allclose(session.run(None, {"x": X, **feeds})[0], wanted, rtol=1e-6)
    assert 0 < len(session._variants) <= 8
