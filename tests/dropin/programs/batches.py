"""A data set in batches, the last one smaller."""

import numpy as np
import onnxruntime as ort

session = ort.InferenceSession("mlp.onnx", providers=["CPUExecutionProvider"])
name = session.get_inputs()[0].name
data = np.random.default_rng(1).standard_normal((70, 16)).astype(np.float32)
parts = []
for start in range(0, len(data), 32):
    parts.append(session.run(None, {name: data[start : start + 32]})[0])
    print(parts[-1].shape)
scores = np.concatenate(parts)
print(scores.shape, np.bincount(scores.argmax(1), minlength=5).tolist())
print(session.run(None, {name: data[:0]})[0].shape)
