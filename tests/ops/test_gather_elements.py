"""gather_elements against a loop, its body, its errors, and GatherElements through a model."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from pointwise import check_body

import rooftile
from rooftile.core.errors import InvalidInput, InvalidModel
from rooftile.ir.graph import Value
from rooftile.ops import OPS

DATA = np.arange(12, dtype=np.float64).reshape(3, 4)
INDICES = np.array([[0, -1, 2], [2, 1, -3]])


def test_reference_and_body() -> None:
    (found,) = OPS["gather_elements"].reference({"axis": 0}, [DATA, INDICES])
    wanted = [[DATA[INDICES[i, j], j] for j in range(3)] for i in range(2)]
    np.testing.assert_array_equal(found, wanted)
    check_body("gather_elements", [DATA, INDICES], ["f32", "i64"], axis=0)


def test_shapes_that_do_not_fit() -> None:
    values = [Value("d", (3, 4), "f32"), Value("i", (2, 5), "i64")]
    with pytest.raises(InvalidModel, match=r"indices .* reach outside dim 1"):
        OPS["gather_elements"].infer({"axis": 0}, values)
    with pytest.raises(InvalidModel, match="must be i32 or i64"):
        OPS["gather_elements"].infer({"axis": 0}, [values[0], Value("i", (2, 4), "f32")])


@pytest.mark.parametrize("kind", [TensorProto.INT32, TensorProto.INT64])
def test_model(kind: int) -> None:
    node = helper.make_node("GatherElements", ["x", "i"], ["y"], "pick", axis=1)
    inputs = [
        helper.make_tensor_value_info("x", TensorProto.FLOAT, [3, 40]),
        helper.make_tensor_value_info("i", kind, [3, 21]),
    ]
    output = helper.make_tensor_value_info("y", TensorProto.FLOAT, [3, 21])
    graph = helper.make_graph([node], "g", inputs, [output])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)])
    rng = np.random.default_rng(0)
    x = rng.normal(size=(3, 40)).astype(np.float32)
    i = rng.integers(-40, 40, (3, 21)).astype(helper.tensor_dtype_to_np_dtype(kind))
    session = rooftile.InferenceSession(model.SerializeToString())
    np.testing.assert_array_equal(
        session.run(None, {"x": x, "i": i})[0], np.take_along_axis(x, i, 1)
    )
    i[1, 7] = 40
    with pytest.raises(InvalidInput, match="pick"):
        session.run(None, {"x": x, "i": i})
    onnx.checker.check_model(model)
