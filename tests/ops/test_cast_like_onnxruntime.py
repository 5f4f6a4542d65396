"""cast gives what onnxruntime gives on x86, outside the range of the target too."""

from __future__ import annotations

import platform

import numpy as np
import pytest

from rooftile.ops import OPS

onnx = pytest.importorskip("onnx")
ort = pytest.importorskip("onnxruntime")

TARGETS = {
    "i8": "INT8",
    "u8": "UINT8",
    "i16": "INT16",
    "u16": "UINT16",
    "i32": "INT32",
    "u32": "UINT32",
    "i64": "INT64",
    "u64": "UINT64",
    "bool": "BOOL",
}


@pytest.mark.skipif(platform.machine() != "x86_64", reason="other processors convert otherwise")
@pytest.mark.parametrize("dtype", TARGETS)
def test_cast_from_f32(dtype: str) -> None:
    some = [2.9, -2.9, np.nan, np.inf, -np.inf, 3e9, -3e9, 1e19, 300.0, -300.0, 7e4, 1e12]
    x = np.array(some * 3, np.float32)
    target = getattr(onnx.TensorProto, TARGETS[dtype])
    helper = onnx.helper
    graph = helper.make_graph(
        [helper.make_node("Cast", ["x"], ["y"], to=target)],
        "cast",
        [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [x.size])],
        [helper.make_tensor_value_info("y", target, [x.size])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=9)
    session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    (wanted,) = session.run(None, {"x": x})
    with np.errstate(invalid="ignore"):
        (got,) = OPS["cast"].reference({"dtype": dtype}, [x.astype(np.float64)])
    np.testing.assert_array_equal(got, wanted)
