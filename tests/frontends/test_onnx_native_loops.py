"""Loop and Scan with constant trips as native loops, against onnxruntime."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from onnx import TensorProto, helper
from onnx_models import Array, floats, model_of, truth

from rooftile.frontends.onnx import read
from rooftile.ops.evaluate import check_types, evaluate
from rooftile.pipeline import compile_model

Signature = dict[str, tuple[int, ...]]


def body(nodes: Sequence[Any], inputs: Signature, outputs: Signature, loop: bool = False) -> Any:
    """A body graph of f32 values; a Loop's takes and gives what belongs to it in front."""

    def info(name: str, shape: tuple[int, ...], kind: int = TensorProto.FLOAT) -> Any:
        return helper.make_tensor_value_info(name, kind, shape)

    taken = [info(name, shape) for name, shape in inputs.items()]
    given = [info(name, shape) for name, shape in outputs.items()]
    if loop:
        taken = [info("i", (), TensorProto.INT64), info("go", (), TensorProto.BOOL), *taken]
        given = [info("on", (), TensorProto.BOOL), *given]
    return helper.make_graph(list(nodes), "body", taken, given)


def op(name: str, inputs: str, outputs: str, **attributes: Any) -> Any:
    return helper.make_node(name, inputs.split(), outputs.split(), **attributes)


def same(model: Any, feeds: dict[str, Array], loops: int) -> None:
    wanted = truth(model, feeds)
    graph = check_types(read(model))
    assert sum(node.op == "scan" for node in graph.nodes) == loops
    compiled = compile_model(model).executable.run(list(feeds.values()))
    for name, got, want in zip(graph.outputs, compiled, wanted, strict=True):
        assert got.shape == want.shape and got.dtype == want.dtype
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6, err_msg=name)
        np.testing.assert_allclose(evaluate(graph, feeds)[name], want, rtol=1e-5, atol=1e-6)


def test_scan_in_both_directions_along_other_axes() -> None:
    inner = body(
        [
            op("MatMul", "s W", "p"),
            op("Add", "p x", "q"),
            op("Tanh", "q", "t"),
            op("Mul", "t outer", "z"),
            op("Sub", "x2 x", "d"),
        ],
        {"s": (2, 4), "x": (2, 4), "x2": (2, 4)},
        {"t": (2, 4), "z": (2, 4), "d": (2, 4)},
    )
    node = op(
        "Scan",
        "s0 X X2",
        "S Z D",
        body=inner,
        num_scan_inputs=2,
        scan_input_directions=[1, 0],
        scan_input_axes=[0, 1],
        scan_output_directions=[0, 1],
        scan_output_axes=[1, 0],
    )
    feeds = {
        "s0": floats(2, 4),
        "X": floats(9, 2, 4),
        "X2": floats(2, 9, 4, seed=1),
        "o": floats(2, 4, seed=2),
    }
    nodes = [op("Exp", "o", "outer"), node]
    same(model_of(nodes, feeds, ["S", "Z", "D"], {"W": floats(4, 4)}), feeds, 1)


def test_loop_with_a_counter_and_captured_values() -> None:
    inner = body(
        [
            op("Cast", "i", "number", to=1),
            op("Mul", "a outer", "t"),
            op("Add", "t number", "a2"),
            op("Identity", "a", "b2"),
            op("Identity", "go", "on"),
        ],
        {"a": (3,), "b": (3,)},
        {"a2": (3,), "b2": (3,), "t": (3,)},
        loop=True,
    )
    feeds = {"a0": floats(3), "b0": floats(3, seed=1), "o": floats(3, seed=2) / 2}
    nodes = [
        op("Abs", "o", "outer"),
        helper.make_node("Loop", ["M", "", "a0", "b0"], ["A", "B", "T"], body=inner),
    ]
    same(model_of(nodes, feeds, ["A", "B", "T"], {"M": np.array(20)}), feeds, 1)


def test_loops_nest() -> None:
    row = body(
        [op("Add", "s x", "q"), op("Tanh", "q", "t"), op("Identity", "t", "y")],
        {"s": (4,), "x": (4,)},
        {"t": (4,), "y": (4,)},
    )
    outer = body(
        [op("Scan", "a rows", "a2 ys", body=row, num_scan_inputs=1), op("Mul", "ys two", "y2")],
        {"a": (4,), "rows": (6, 4)},
        {"a2": (4,), "y2": (6, 4), "ys": (6, 4)},
    )
    feeds = {"a0": floats(4), "X": floats(8, 6, 4)}
    node = op("Scan", "a0 X", "A Y Z", body=outer, num_scan_inputs=1)
    same(model_of([node], feeds, ["A", "Y", "Z"], {"two": np.full(1, 2, np.float32)}), feeds, 1)


def test_a_condition_that_depends_on_the_counter_is_unrolled() -> None:
    inner = body(
        [op("Mul", "a half", "a2"), op("Less", "i limit", "on")],
        {"a": (3,)},
        {"a2": (3,)},
        loop=True,
    )
    feeds = {"a0": floats(3)}
    constants = {"M": np.array(40), "limit": np.array(7), "half": np.full(1, 0.5, np.float32)}
    node = helper.make_node("Loop", ["M", "", "a0"], ["A"], body=inner)
    same(model_of([node], feeds, ["A"], constants), feeds, 0)


def test_short_bodies_are_written_out() -> None:
    inner = body(
        [op("Add", "a a", "a2"), op("Identity", "go", "on")], {"a": (3,)}, {"a2": (3,)}, loop=True
    )
    feeds = {"a0": floats(3)}
    node = helper.make_node("Loop", ["M", "", "a0"], ["A"], body=inner)
    same(model_of([node], feeds, ["A"], {"M": np.array(9)}), feeds, 0)
