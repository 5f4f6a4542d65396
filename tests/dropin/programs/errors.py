"""A service that answers each kind of error with its own code."""

import numpy as np
import onnxruntime as ort
from onnxruntime.capi.onnxruntime_pybind11_state import (
    Fail,
    InvalidArgument,
    InvalidGraph,
    InvalidProtobuf,
    NoSuchFile,
)

for model in ("none.onnx", b"no model at all", "unknown_op.onnx", "wrong_axis.onnx"):
    try:
        ort.InferenceSession(model, providers=["CPUExecutionProvider"])
    except NoSuchFile:
        print("404")
    except InvalidProtobuf:
        print("415")
    except (InvalidGraph, Fail):
        print("422")
try:
    ort.InferenceSession(3)
except TypeError:
    print("TypeError")
session = ort.InferenceSession("mlp.onnx", providers=["CPUExecutionProvider"])
x = np.zeros((2, 16), np.float32)
for names, feed in (
    (None, {}),
    (None, {"y": x}),
    (None, {"x": x, "y": x}),
    (["nothing"], {"x": x}),
    (None, {"x": x[0]}),
    (None, {"x": x[:, :3]}),
    (None, {"x": x.astype(np.float64)}),
    (None, {"x": x.astype(np.int64)}),
    (None, {"x": "text"}),
    (None, {"x": x}),
):
    try:
        print("200", session.run(names, feed)[0].shape)
    except ValueError:
        print("400 missing")
    except RuntimeError:
        print("400 no tensor")
    except InvalidArgument:
        print("400 unfit")
try:
    session.run(None, {"x": x[0]})
except ort.capi.onnxruntime_pybind11_state.InvalidArgument as error:
    print("x" in str(error))
