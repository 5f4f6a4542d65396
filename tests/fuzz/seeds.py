"""Small models of every family: the node tests of ONNX, and a few graphs with weights."""

from __future__ import annotations

import warnings

import numpy as np
from onnx import TensorProto, helper, numpy_helper

LARGEST = 50_000
EVERY = 7
"""One in so many of ONNX's own cases: enough for each family."""


def seeds() -> list[bytes]:
    """Serialized models of at most 50 kB."""
    from onnx.backend.test.case.node import collect_testcases

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        shipped = [test.model.SerializeToString() for test in collect_testcases(None)][::EVERY]
    return [model for model in (*shipped, _network(), _loop()) if len(model) <= LARGEST]


def _network() -> bytes:
    generator = np.random.default_rng(0)
    weights = {
        "w": generator.standard_normal((4, 3, 3, 3)).astype(np.float32),
        "b": generator.standard_normal(4).astype(np.float32),
        "m": generator.standard_normal((4, 5)).astype(np.float32),
        "shape": np.array([0, -1], np.int64),
    }
    nodes = [
        helper.make_node("Conv", ["x", "w", "b"], ["c"], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c"], ["r"]),
        helper.make_node("GlobalAveragePool", ["r"], ["g"]),
        helper.make_node("Reshape", ["g", "shape"], ["f"]),
        helper.make_node("Gemm", ["f", "m"], ["p"]),
        helper.make_node("Softmax", ["p"], ["y"], axis=-1),
    ]
    graph = helper.make_graph(
        nodes,
        "network",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 3, 8, 8])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 5])],
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
    )
    return bytes(helper.make_model(graph).SerializeToString())


def _loop() -> bytes:
    """A loop over the positions of values that are not 0, with a branch in its body."""
    body = helper.make_graph(
        [
            helper.make_node("Identity", ["going"], ["go_on"]),
            helper.make_node("Add", ["sum", "x"], ["next"]),
            helper.make_node(
                "If",
                ["going"],
                ["row"],
                then_branch=helper.make_graph(
                    [helper.make_node("Neg", ["next"], ["t"])],
                    "then",
                    [],
                    [helper.make_tensor_value_info("t", TensorProto.FLOAT, [4])],
                ),
                else_branch=helper.make_graph(
                    [helper.make_node("Abs", ["next"], ["e"])],
                    "else",
                    [],
                    [helper.make_tensor_value_info("e", TensorProto.FLOAT, [4])],
                ),
            ),
        ],
        "body",
        [
            helper.make_tensor_value_info("trip", TensorProto.INT64, []),
            helper.make_tensor_value_info("going", TensorProto.BOOL, []),
            helper.make_tensor_value_info("sum", TensorProto.FLOAT, [4]),
        ],
        [
            helper.make_tensor_value_info("go_on", TensorProto.BOOL, []),
            helper.make_tensor_value_info("next", TensorProto.FLOAT, [4]),
            helper.make_tensor_value_info("row", TensorProto.FLOAT, [4]),
        ],
    )
    nodes = [
        helper.make_node("NonZero", ["x"], ["places"]),
        helper.make_node("Size", ["places"], ["count"]),
        helper.make_node("Loop", ["count", "", "x"], ["last", "rows"], body=body),
    ]
    graph = helper.make_graph(
        nodes,
        "loop",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [4])],
        [
            helper.make_tensor_value_info("last", TensorProto.FLOAT, [4]),
            helper.make_tensor_value_info("rows", TensorProto.FLOAT, ["N", 4]),
        ],
    )
    return bytes(helper.make_model(graph).SerializeToString())
