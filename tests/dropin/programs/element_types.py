"""Each type in its own, and the error of a wrong one."""

import numpy as np
import onnxruntime as ort
from onnxruntime.capi.onnxruntime_pybind11_state import InvalidArgument

session = ort.InferenceSession("types.onnx")
feed = {
    "f": np.ones(2, np.float32),
    "d": np.ones(2),
    "h": np.ones(2, np.float16),
    "i": np.ones(2, np.int32),
    "l": np.ones(2, np.int64),
    "b": np.array([True, False]),
    "u": np.ones(2, np.uint8),
}
for arg in session.get_inputs():
    print(arg.name, arg.type)
for arg, array in zip(session.get_outputs(), session.run(None, feed)):
    print(arg.name, arg.type, array.dtype, array.tolist())
for name, array in feed.items():
    wrong = array.astype(np.int16)
    try:
        session.run(None, {**feed, name: wrong})
    except InvalidArgument:
        print("wrong", name)
