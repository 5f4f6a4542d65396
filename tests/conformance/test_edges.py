"""Models at the edges of what a model can be: no nodes, no elements, no dims, outputs that nothing
computes, each element type."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest
from onnx import TensorProto, helper, numpy_helper

import rooftile

Array = npt.NDArray[Any]
X = np.arange(6, dtype=np.float32).reshape(2, 3)


def run(
    nodes: Sequence[Any],
    feeds: Mapping[str, Array],
    outputs: Sequence[str],
    constants: Mapping[str, Array] | None = None,
) -> list[Array]:
    """What a model made of these nodes gives; dims of no elements are left open, as files do."""
    infos = [
        helper.make_tensor_value_info(
            name,
            helper.np_dtype_to_tensor_dtype(array.dtype),
            [size or f"{name}{dim}" for dim, size in enumerate(array.shape)],
        )
        for name, array in feeds.items()
    ]
    results = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs]
    held = [numpy_helper.from_array(array, name) for name, array in (constants or {}).items()]
    graph = helper.make_graph(list(nodes), "edge", infos, results, held)
    opset = helper.make_opsetid("", 18)
    model = helper.make_model(graph, opset_imports=[opset], ir_version=9)
    session = rooftile.InferenceSession(model.SerializeToString())
    found: list[Array] = session.run(None, feeds)
    return found


def node(op: str, inputs: str, outputs: str, **attributes: Any) -> Any:
    return helper.make_node(op, inputs.split(), outputs.split(), **attributes)


def same(found: Sequence[Array], *wanted: Array) -> None:
    assert len(found) == len(wanted)
    for got, want in zip(found, wanted, strict=True):
        assert got.dtype == want.dtype
        assert got.shape == want.shape
        np.testing.assert_allclose(got, want, rtol=1e-6)


def test_outputs_that_are_inputs() -> None:
    same(run([node("Identity", "x", "y")], {"x": X}, ["y"]), X)
    same(run([node("Exp", "x", "y")], {"x": X}, ["x", "y"]), X, np.exp(X))
    same(
        run(
            [node("Identity", "x", "y"), node("Reshape", "x s", "z")],
            {"x": X},
            ["y", "z"],
            {"s": np.array([3, 2])},
        ),
        X,
        X.reshape(3, 2),
    )


def test_a_model_without_nodes() -> None:
    same(run([], {"x": X}, ["x"]), X)


def test_outputs_that_are_constants() -> None:
    c = np.array([1.5, -2.0], np.float32)
    same(run([node("Identity", "c", "y")], {}, ["y"], {"c": c}), c)
    same(run([node("Identity", "c", "y")], {"x": X}, ["y", "c"], {"c": c}), c, c)
    same(run([node("Add", "c c", "y")], {}, ["y"], {"c": c}), c + c)


def test_outputs_that_are_the_same_value() -> None:
    nodes = [node("Exp", "x", "y"), node("Exp", "x", "z"), node("Identity", "y", "w")]
    same(run(nodes, {"x": X}, ["y", "z", "w"]), *[np.exp(X)] * 3)


def test_an_output_that_is_read_again() -> None:
    nodes = [node("Exp", "x", "y"), node("Neg", "y", "z")]
    same(run(nodes, {"x": X}, ["y", "z"]), np.exp(X), -np.exp(X))
    same(run(nodes, {"x": X}, ["y"]), np.exp(X))


def test_an_output_declared_twice_is_given_twice() -> None:
    same(run([node("Exp", "x", "y")], {"x": X}, ["y", "y"]), np.exp(X), np.exp(X))


def test_inputs_that_nothing_reads() -> None:
    same(
        run([node("Exp", "x", "y")], {"x": X, "unused": np.zeros(4, np.float32)}, ["y"]), np.exp(X)
    )


def test_values_called_as_the_compiler_s_own() -> None:
    nodes = [node("Softmax", "scratch", "rooftile_entry"), node("Neg", "rooftile_entry", "arena")]
    raised = np.exp(X - X.max(1, keepdims=True))
    same(run(nodes, {"scratch": X}, ["arena"]), -raised / raised.sum(1, keepdims=True))


def test_scalars() -> None:
    x, y = np.float32(0.5).reshape(()), np.float32(2.0).reshape(())
    same(run([node("Mul", "x y", "z")], {"x": x, "y": y}, ["z"]), np.asarray(x * y))
    same(run([node("ReduceSum", "x", "z", keepdims=0)], {"x": X}, ["z"]), np.asarray(X.sum()))


EMPTY = [(0, 3), (2, 0)]


@pytest.mark.parametrize("shape", EMPTY)
def test_tensors_of_no_elements(shape: tuple[int, int]) -> None:
    x = np.zeros(shape, np.float32)
    same(run([node("Exp", "x", "y")], {"x": x}, ["y"]), x)
    same(run([node("Softmax", "x", "y")], {"x": x}, ["y"]), x)
    same(run([node("Transpose", "x", "y")], {"x": x}, ["y"]), x.T)
    same(run([node("Add", "x c", "y")], {"x": x}, ["y"], {"c": np.ones(1, np.float32)}), x)
    same(run([node("Identity", "x", "y")], {"x": x}, ["y"]), x)


@pytest.mark.parametrize("shape", EMPTY)
def test_what_no_elements_give(shape: tuple[int, int]) -> None:
    x = np.zeros(shape, np.float32)
    axes = {"a": np.array([1])}
    same(run([node("ReduceSum", "x a", "y")], {"x": x}, ["y"], axes), x.sum(1, keepdims=True))
    same(run([node("ReduceProd", "x a", "y")], {"x": x}, ["y"], axes), x.prod(1, keepdims=True))
    w = np.ones((shape[1], 4), np.float32)
    same(run([node("MatMul", "x w", "y")], {"x": x}, ["y"], {"w": w}), x @ w)
    same(run([node("Pad", "x p", "y")], {"x": x}, ["y"], {"p": np.ones(4, np.int64)}), np.pad(x, 1))
    more = np.ones((5, shape[1]), np.float32)
    joined = [node("Concat", "x w", "y", axis=0)]
    same(run(joined, {"x": x, "w": more}, ["y"]), np.concatenate([x, more]))


def test_the_greatest_of_nothing() -> None:
    x = np.zeros((2, 0), np.float32)
    axes = {"a": np.array([1])}
    for op, value in (("ReduceMax", -np.inf), ("ReduceMin", np.inf)):
        found = run([node(op, "x a", "y")], {"x": x}, ["y"], axes)
        same(found, np.full((2, 1), value, np.float32))


TYPES = [
    np.float64,
    np.float16,
    ml_dtypes.bfloat16,
    *(getattr(np, f"{sign}int{bits}") for sign in ("", "u") for bits in (8, 16, 32, 64)),
]


@pytest.mark.parametrize("dtype", TYPES, ids=lambda dtype: np.dtype(dtype).name)
def test_each_element_type(dtype: Any) -> None:
    """Sums, products, comparisons and moves, with wrapping integers."""
    rng = np.random.default_rng(0)
    a, b = (rng.integers(0, 20, (5, 7)).astype(dtype) for _ in range(2))
    feeds = {"a": a, "b": b}
    same(run([node("Add", "a b", "y")], feeds, ["y"]), a + b)
    same(run([node("Mul", "a b", "y")], feeds, ["y"]), (a * b).astype(dtype))
    same(run([node("Sub", "a b", "y")], feeds, ["y"]), a - b)
    same(run([node("Less", "a b", "y")], feeds, ["y"]), a < b)
    same(run([node("Max", "a b", "y")], feeds, ["y"]), np.maximum(a, b))
    same(run([node("Transpose", "a", "y")], {"a": a}, ["y"]), a.T)
    same(run([node("Concat", "a b", "y", axis=1)], feeds, ["y"]), np.concatenate([a, b], 1))
    small = (a.astype(np.float64) % 4).astype(dtype)
    total = small.astype(np.float64).sum(1, keepdims=True).astype(dtype)
    axes = {"x": np.array([1])}
    same(run([node("ReduceSum", "a x", "y")], {"a": small}, ["y"], axes), total)


def test_bool() -> None:
    a, b = np.array([True, True, False]), np.array([True, False, False])
    same(run([node("And", "a b", "y")], {"a": a, "b": b}, ["y"]), a & b)
    same(run([node("Xor", "a b", "y")], {"a": a, "b": b}, ["y"]), a ^ b)
    same(run([node("Not", "a", "y")], {"a": a}, ["y"]), ~a)
    same(run([node("Cast", "a", "y", to=TensorProto.FLOAT)], {"a": a}, ["y"]), a.astype(np.float32))


def test_powers() -> None:
    i = np.array([2, -3, 0, 7, 2], np.int64)
    e = np.array([10, 3, 0, 1, -1], np.int64)
    same(run([node("Pow", "i e", "y")], {"i": i, "e": e}, ["y"]), np.array([1024, -27, 1, 7, 0]))
    x = np.array([0.5, 2.0, 9.0, -2.0], np.float32)
    f = np.array([3.0, -1.5, 0.5, 3.0], np.float32)
    same(run([node("Pow", "x f", "y")], {"x": x, "f": f}, ["y"]), x**f)
    half = np.array([0.5], np.float32)
    nine = np.array([9, 16], np.int32)
    same(run([node("Pow", "i f", "y")], {"i": nine, "f": half}, ["y"]), np.array([3, 4], np.int32))


def test_casts_outside_the_range_wrap_as_on_x86() -> None:
    x = np.array([300.0, -2.9, np.nan, 3e9], np.float32)
    for dtype, wanted in (
        (np.int8, [44, -2, 0, 0]),
        (np.uint8, [44, 254, 0, 0]),
        (np.int32, [300, -2, -(2**31), -(2**31)]),
        (np.uint32, [300, 2**32 - 2, 2**31, 3_000_000_000]),
        (np.int64, [300, -2, -(2**63), 3_000_000_000]),
    ):
        to = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        found = run([node("Cast", "x", "y", to=to)], {"x": x}, ["y"])
        assert found[0].tolist() == wanted
        assert found[0].dtype == dtype


def test_an_index_out_of_range_names_the_node() -> None:
    gather = helper.make_node("Gather", ["x", "i"], ["y"], name="look_up")
    with pytest.raises(rooftile.InvalidInput, match="'look_up': an index is out of range"):
        run([gather], {"x": X, "i": np.array([0, 2])}, ["y"])
