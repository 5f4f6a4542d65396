"""Small models of every family: the node tests of ONNX, and a few graphs with weights."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper

LARGEST = 50_000
SHARE = 20
"""How often each model made here is among the seeds: they have what ONNX's cases lack."""


def seeds() -> list[bytes]:
    """Serialized models of at most 50 kB."""
    from onnx.backend.test.case.node import collect_testcases

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        shipped = [test.model.SerializeToString() for test in collect_testcases(None)]
    mine = [_network(), _loop(), _functions()] * SHARE
    return [model for model in (*shipped, *mine) if len(model) <= LARGEST]


def _functions() -> bytes:
    """Functions that call functions, one of them from a branch, and one with an attribute."""
    imports = [helper.make_opsetid("", 18), helper.make_opsetid("own", 1)]

    def function(name: str, nodes: Sequence[Any], attributes: Sequence[str] = ()) -> Any:
        return helper.make_function("own", name, ["a"], ["b"], nodes, imports, list(attributes))

    scaled = helper.make_node("LeakyRelu", ["a"], ["b"])
    scaled.attribute.add(name="alpha", ref_attr_name="slope", type=1)
    inner = helper.make_node("Scaled", ["a"], ["t"], domain="own", slope=0.5)
    branch = helper.make_graph(
        [inner], "branch", [], [helper.make_tensor_value_info("t", TensorProto.FLOAT, [4])]
    )
    chosen = [
        helper.make_node("ReduceMax", ["a"], ["top"], keepdims=0),
        helper.make_node("Cast", ["top"], ["positive"], to=9),
        helper.make_node("If", ["positive"], ["b"], then_branch=branch, else_branch=branch),
    ]
    graph = helper.make_graph(
        [
            helper.make_node("Chosen", ["x"], ["h"], domain="own"),
            helper.make_node("Scaled", ["h"], ["y"], domain="own", slope=2.0),
        ],
        "functions",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [4])],
    )
    functions = [function("Scaled", [scaled], ["slope"]), function("Chosen", chosen)]
    model = helper.make_model(graph, opset_imports=imports, functions=functions)
    return bytes(model.SerializeToString())


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
