"""Dims that are fixed, weights that are given by the caller."""

import numpy as np
import onnxruntime as ort

so = ort.SessionOptions()
so.add_free_dimension_override_by_name("batch", 2)
session = ort.InferenceSession("mlp.onnx", so)
print([arg.shape for arg in session.get_inputs() + session.get_outputs()])
try:
    session.run(None, {"x": np.ones((3, 16), np.float32)})
except ort.capi.onnxruntime_pybind11_state.InvalidArgument:
    print("fixed")
so = ort.SessionOptions()
so.add_free_dimension_override_by_denotation("DATA_BATCH", 3)
print(ort.InferenceSession("mlp.onnx", so).get_inputs()[0].shape)
so = ort.SessionOptions()
bias = np.array([9, 0, 0, 0, 0], np.float32)
value = ort.OrtValue.ortvalue_from_numpy(bias)
so.add_initializer("bias", value)
session = ort.InferenceSession("mlp.onnx", so)
print(session.run(["label"], {"x": np.ones((2, 16), np.float32)})[0])
session = ort.InferenceSession("overridable.onnx")
print([arg.name for arg in session.get_overridable_initializers()])
x = np.ones(3, np.float32)
print(session.run(None, {"x": x})[0], session.run(None, {"x": x, "scale": x * 5})[0])
