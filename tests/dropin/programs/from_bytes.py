"""A model from memory, as one that was downloaded or built."""

import io
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort

content = Path("mlp.onnx").read_bytes()
x = np.ones((1, 16), np.float32)
buffer = io.BytesIO()
onnx.save(onnx.load("mlp.onnx"), buffer)
for model in (content, "mlp.onnx", Path("mlp.onnx"), buffer.getvalue()):
    session = ort.InferenceSession(model, None, ["CPUExecutionProvider"])
    print(type(model).__name__.replace("Posix", ""), session.run(None, {"x": x})[1])
