"""Runs that call back."""

import threading

import numpy as np
import onnxruntime as ort

session = ort.InferenceSession("mlp.onnx")
done = threading.Event()


def finished(outputs, user_data, error):
    print(user_data, [o.shape for o in outputs], bool(error))
    done.set()


for tag, x in (("good", np.ones((2, 16), np.float32)), ("unfit", np.ones((2, 3), np.float32))):
    done.clear()
    session.run_async(["scores"], {"x": x}, finished, tag)
    done.wait(10)
try:
    session.run_async(None, {}, finished, "missing")
except ValueError:
    print("missing")
ro = ort.RunOptions()
ro.terminate = True
try:
    session.run(None, {"x": np.ones((2, 16), np.float32)}, ro)
except Exception as error:
    print("terminat" in str(error), isinstance(error, ort.capi.onnxruntime_pybind11_state.Fail))
