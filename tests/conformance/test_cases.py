"""Small models that other engines got wrong, each with the right answer; one file a case.

A case names its ONNX nodes, constants, inputs and outputs; non-finite numbers are strings. A graph
inside a node names its nodes, and of its inputs and outputs their types and shapes.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import pytest
from node_cases import Case, difference
from onnx import helper, numpy_helper

import rooftile

CASES = sorted((Path(__file__).parent / "cases").glob("*.json"))


def array(content: dict[str, Any]) -> npt.NDArray[Any]:
    dtype = np.dtype(content["dtype"])
    flat = [float(item) if isinstance(item, str) else item for item in content["data"]]
    return np.array(flat, dtype).reshape(content["shape"])


def info(name: str, content: dict[str, Any], known: bool = True) -> onnx.ValueInfoProto:
    dtype = helper.np_dtype_to_tensor_dtype(np.dtype(content["dtype"]))
    return helper.make_tensor_value_info(name, dtype, content["shape"] if known else None)


def attribute(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    return (
        body(value["graph"])
        if "graph" in value
        else numpy_helper.from_array(array(value["tensor"]))
    )


def body(content: dict[str, Any]) -> onnx.GraphProto:
    inputs, outputs = (
        [info(name, item) for name, item in content[side].items()] for side in ("inputs", "outputs")
    )
    return helper.make_graph(nodes_of(content), "body", inputs, outputs)


def nodes_of(content: dict[str, Any]) -> list[onnx.NodeProto]:
    return [
        helper.make_node(
            node["op"],
            node["inputs"],
            node["outputs"],
            domain=node.get("domain"),
            **{name: attribute(value) for name, value in node["attributes"].items()},
        )
        for node in content["nodes"]
    ]


def load(path: Path) -> Case:
    """The case as a model with its feeds and expected outputs."""
    case = json.loads(path.read_text(encoding="utf-8"))
    constants = [numpy_helper.from_array(array(c), n) for n, c in case["constants"].items()]
    graph = helper.make_graph(
        nodes_of(case),
        path.stem,
        [info(name, content) for name, content in case["inputs"].items()],
        [info(name, content, known=False) for name, content in case["outputs"].items()],
        constants,
    )
    opset = helper.make_opsetid("", case["opset"])
    model = helper.make_model(graph, opset_imports=[opset], ir_version=10)
    feeds = {name: array(content) for name, content in case["inputs"].items()}
    wanted = [array(content) for content in case["outputs"].values()]
    return Case(path.stem, model, feeds, wanted, case["rtol"], case["atol"])


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_case(path: Path) -> None:
    case = load(path)
    session = rooftile.InferenceSession(case.model.SerializeToString())
    assert difference(case, session.run(None, case.feeds), case.wanted) == ""
