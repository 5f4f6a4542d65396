"""Small ONNX models for tests, and the check that rooftile computes what onnxruntime does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import onnxruntime
from onnx import helper, numpy_helper

import rooftile
from rooftile.core.journal import Journal
from rooftile.frontends.onnx import read
from rooftile.ir.graph import Graph
from rooftile.ops.evaluate import check_types, evaluate
from rooftile.passes import simplify
from rooftile.plan.layout import channels_last

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Const:
    """An input of a node that is an initializer of the model."""

    array: Any


def ints(*values: int) -> Const:
    """A constant list of i64."""
    return Const(np.array(values, np.int64))


def floats(*shape: int, seed: int = 0) -> Array:
    """Normal f32 numbers."""
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def model_of(
    nodes: Sequence[Any],
    inputs: dict[str, Array],
    outputs: Sequence[str],
    constants: dict[str, Array] | None = None,
    opset: int = 17,
    domains: Sequence[str] = (),
) -> Any:
    """A ModelProto with inputs of the shapes of some arrays."""
    infos = [
        helper.make_tensor_value_info(
            name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape
        )
        for name, array in inputs.items()
    ]
    results = [helper.make_empty_tensor_value_info(name) for name in outputs]
    weights = [numpy_helper.from_array(array, name) for name, array in (constants or {}).items()]
    graph = helper.make_graph(list(nodes), "small", infos, results, weights)
    imports = [helper.make_opsetid("", opset), *(helper.make_opsetid(name, 1) for name in domains)]
    return helper.make_model(graph, opset_imports=imports, ir_version=8)


def one_node(
    op: str, *inputs: Any, opset: int = 17, outputs: int = 1, domain: str = "", **attributes: Any
) -> tuple[Any, dict[str, Array]]:
    """A model of one node, and its feeds. Inputs are arrays, Const, or None for one left out."""
    names, feeds, constants = [], {}, {}
    for number, item in enumerate(inputs):
        name = "" if item is None else f"in{number}"
        names.append(name)
        if isinstance(item, Const):
            constants[name] = np.asarray(item.array)
        elif item is not None:
            feeds[name] = np.asarray(item)
    results = [f"out{number}" for number in range(outputs)]
    node = helper.make_node(op, names, results, name="it", domain=domain, **attributes)
    domains = [domain] if domain else []
    return model_of([node], feeds, results, constants, opset, domains), feeds


def truth(model: Any, feeds: dict[str, Array]) -> list[Array]:
    """What onnxruntime computes, without its own optimizations."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options)
    return list(session.run(None, feeds))


def optimized(graph: Graph, level: int = 1) -> Graph:
    """The graph after the passes and the layout, its types checked."""
    return check_types(simplify(channels_last(simplify(graph, level), Journal()), level))


def agrees(model: Any, feeds: dict[str, Array], rtol: float = 2e-5, atol: float = 2e-6) -> Graph:
    """Assert equality with onnxruntime before and after the passes; gives the graph as read."""
    graph = check_types(read(model))
    wanted = truth(model, feeds)
    assert list(graph.outputs) == [item.name for item in model.graph.output]
    for stage in (graph, optimized(graph, 0), optimized(graph, 1)):
        found = evaluate(stage, feeds)
        assert list(found) == list(graph.outputs)
        for name, array in zip(found, wanted, strict=True):
            assert stage.values[name].shape == array.shape, name
            np.testing.assert_allclose(
                found[name].astype(np.float64), array.astype(np.float64), rtol, atol, err_msg=name
            )
    return graph


def same(op: str, *inputs: Any, opset: int = 17, **more: Any) -> Graph:
    """`agrees` for a model of one node."""
    return agrees(*one_node(op, *inputs, opset=opset, **more))


def compiled(op: str, *inputs: Any, opset: int = 17, **more: Any) -> list[Array]:
    """`agrees` for a model of one node, which is then compiled and run as well; its outputs."""
    bounds = {name: more.pop(name) for name in ("rtol", "atol") if name in more}
    model, feeds = one_node(op, *inputs, opset=opset, **more)
    agrees(model, feeds, **bounds)
    found = rooftile.InferenceSession(model.SerializeToString()).run(None, feeds)
    limits = {"rtol": 2e-5, "atol": 2e-6} | bounds
    for got, want in zip(found, truth(model, feeds), strict=True):
        assert (got.dtype, got.shape) == (want.dtype, want.shape)
        np.testing.assert_allclose(got, want, **limits)
    return list(found)
