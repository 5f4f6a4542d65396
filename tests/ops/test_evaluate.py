"""Whole graphs: values, types held, freeing, checked types, and errors that name the node."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from rooftile.core.affine import affine
from rooftile.core.errors import (
    InvalidInput,
    InvalidIR,
    InvalidModel,
    InvalidOption,
    UnsupportedOp,
)
from rooftile.ir.graph import Graph, Node, Value, attrs
from rooftile.ops.evaluate import check_types, evaluate, evaluate_all, infer_node

X = Value("x", (2, 3), "f32")


def chain(dtype: str = "f32") -> Graph:
    """y = (x + c) * (x + c), z its sum over rows."""
    value = Value("x", (2, 3), dtype)
    held = np.array([[0.1, 0.2, 0.3]], np.float32).astype(
        ml_dtypes.bfloat16 if dtype == "bf16" else np.float32
    )
    return Graph(
        "chain",
        (value,),
        (
            Node("add", ("x", "c"), (Value("a", (2, 3), dtype),)),
            Node("mul", ("a", "a"), (Value("y", (2, 3), dtype),)),
            Node("reduce", ("y",), (Value("z", (2, 1), dtype),), attrs(op="sum", dims=(1,))),
            Node("neg", ("z",), (Value("unused", (2, 1), dtype),)),
        ),
        ("z", "y"),
        {"c": held},
    )


def test_float64() -> None:
    x = np.random.default_rng(0).normal(size=(2, 3)).astype(np.float32)
    got = evaluate(chain(), {"x": x})
    held = x.astype(np.float64) + np.array([0.1, 0.2, 0.3], np.float32).astype(np.float64)
    assert list(got) == ["z", "y"]
    assert got["y"].dtype == np.float64
    np.testing.assert_array_equal(got["y"], held**2)
    np.testing.assert_array_equal(got["z"], (held**2).sum(1, keepdims=True))


def test_native_types() -> None:
    x = np.full((2, 3), 1.0, np.float32)
    assert evaluate(chain(), {"x": x}, "native")["z"].dtype == np.float32
    got = evaluate_all(chain("bf16"), {"x": x.astype(ml_dtypes.bfloat16)}, "native")
    assert {str(array.dtype) for array in got.values()} == {"bfloat16"}
    assert set(got) == {"x", "c", "a", "y", "z", "unused"}
    # Each value is rounded to its type once, after a computation in float32.
    assert got["a"][0, 0] == ml_dtypes.bfloat16(np.float32(1) + np.float32(got["c"][0, 0]))


def test_casts_between_floats_change_nothing_in_float64() -> None:
    y, z = Value("y", (2, 3), "f16"), Value("z", (2, 3), "f32")
    graph = Graph(
        "casts",
        (X,),
        (
            Node("cast", ("x",), (y,), attrs(dtype="f16")),
            Node("cast", ("y",), (z,), attrs(dtype="f32")),
        ),
        ("z",),
    )
    x = np.full((2, 3), 0.1)
    np.testing.assert_array_equal(evaluate(graph, {"x": x})["z"], x)
    assert evaluate(graph, {"x": x}, "native")["z"][0, 0] == np.float32(np.float16(0.1))


def test_output_that_is_input_or_constant() -> None:
    graph = Graph("id", (X,), (), ("x", "c"), {"c": np.arange(2)})
    got = evaluate(graph, {"x": np.ones((2, 3))})
    assert (got["x"].sum(), got["c"].tolist()) == (6.0, [0, 1])


def test_inputs_that_do_not_fit() -> None:
    with pytest.raises(InvalidInput, match="chain: input x is missing"):
        evaluate(chain(), {})
    with pytest.raises(InvalidInput, match=r"input x must be f32\[2,3\], not float64 \[3\]"):
        evaluate(chain(), {"x": np.zeros(3)})
    with pytest.raises(InvalidInput, match=r"input x must be f32\[2,3\], not int64 \[2, 3\]"):
        evaluate(chain(), {"x": np.zeros((2, 3), np.int64)})
    with pytest.raises(InvalidOption, match="precision 'f8' must be f64 or native"):
        evaluate(chain(), {"x": np.zeros((2, 3))}, "f8")  # type: ignore[arg-type]


def test_symbolic_dims_fit_any_extent() -> None:
    value = Value("x", (affine("n"), 3), "f32")
    node = Node("neg", ("x",), (Value("y", (affine("n"), 3), "f32"),))
    graph = check_types(Graph("g", (value,), (node,), ("y",)))
    assert evaluate(graph, {"x": np.ones((5, 3))})["y"].shape == (5, 3)


def one(op: str, output: Value, **attributes: Any) -> Graph:
    return Graph("g", (X,), (Node(op, ("x",), (output,), attrs(**attributes)),), (output.name,))


def test_run_time_errors_name_the_node() -> None:
    y = Value("y", (1, 3), "f32")
    node = Node("gather", ("x", "i"), (y,), attrs(axis=0))
    graph = Graph("g", (X,), (node,), ("y",), {"i": np.array([9])})
    with pytest.raises(InvalidInput, match="g: %y: gather: index 9 is outside axis 0 of 2 eleme"):
        evaluate(graph, {"x": np.zeros((2, 3))})
    with pytest.raises(UnsupportedOp, match="g: %y: op softmax is not canonical; the ops are abs"):
        evaluate(one("softmax", y), {"x": np.zeros((2, 3))})
    with pytest.raises(InvalidIR, match=r"%y is recorded with shape \(1, 3\), but neg computed"):
        evaluate(one("neg", y), {"x": np.zeros((2, 3))})


def test_check_types() -> None:
    assert check_types(chain()).name == "chain"
    with pytest.raises(InvalidIR) as caught:
        check_types(one("neg", Value("y", (2, 4), "f32")))
    assert str(caught.value) == "g: %y is recorded as f32[2,4], but neg gives f32[2,3]"
    with pytest.raises(InvalidIR, match="g: %y: transpose: attribute perm is missing"):
        check_types(one("transpose", Value("y", (2, 4), "f32")))


def test_infer_node() -> None:
    assert infer_node("transpose", {"perm": (1, 0)}, (X,)) == (((3, 2), "f32"),)
    with pytest.raises(InvalidModel, match="transpose: takes 1 inputs, not 2"):
        infer_node("transpose", {"perm": (1, 0)}, (X, X))
