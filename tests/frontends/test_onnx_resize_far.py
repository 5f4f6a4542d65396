"""Resize by large factors with antialias: one dot instead of hundreds of taps."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

import rooftile
from rooftile.frontends.onnx import read


@pytest.mark.parametrize("mode", ["linear", "cubic"])
def test_antialias_over_many_elements(mode: str) -> None:
    x = np.random.default_rng(0).normal(size=(1, 2, 40, 255)).astype(np.float32)
    node = helper.make_node(
        "Resize", ["x", "", "", "s"], ["y"], mode=mode, antialias=1, exclude_outside=1
    )
    given = helper.make_tensor_value_info("x", TensorProto.FLOAT, x.shape)
    found = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    sizes = numpy_helper.from_array(np.array([1, 2, 3, 3]), "s")
    graph = helper.make_graph([node], "g", [given], [found], [sizes])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=9)
    content = model.SerializeToString()
    assert len(read(content).nodes) < 20
    (mine,) = rooftile.InferenceSession(content).run(None, {"x": x})
    (theirs,) = onnxruntime.InferenceSession(content).run(None, {"x": x})
    np.testing.assert_allclose(mine, theirs, rtol=0, atol=1e-5 * np.abs(theirs).max())
