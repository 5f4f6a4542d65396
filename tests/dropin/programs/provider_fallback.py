"""The GPU where there is one, else the CPU."""

import numpy as np
import onnxruntime as ort

wanted = ["CUDAExecutionProvider", "CPUExecutionProvider"]
providers = [name for name in wanted if name in ort.get_available_providers()]
print(providers)
session = ort.InferenceSession("mlp.onnx", providers=wanted)
print(session.get_providers())
options = [("CUDAExecutionProvider", {"device_id": 0}), ("CPUExecutionProvider", {})]
session = ort.InferenceSession("mlp.onnx", providers=options)
print(session.get_providers(), "CPUExecutionProvider" in ort.get_all_providers())
session = ort.InferenceSession(
    "mlp.onnx",
    providers=["CPUExecutionProvider"],
    provider_options=[{"arena_extend_strategy": "kSameAsRequested"}],
)
session.set_providers(["CPUExecutionProvider"])
session.disable_fallback()
print(session.run(["label"], {"x": np.ones((2, 16), np.float32)})[0])
try:
    session.set_providers(["NoSuchProvider"])
except RuntimeError:
    print("no such provider")
