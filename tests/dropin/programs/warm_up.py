"""A benchmark: warm up, then percentiles."""

import time

import numpy as np
import onnxruntime as ort

session = ort.InferenceSession("mlp.onnx", providers=["CPUExecutionProvider"])
shape = [dim if isinstance(dim, int) else 8 for dim in session.get_inputs()[0].shape]
kinds = {"tensor(float)": np.float32, "tensor(int64)": np.int64}
feed = {session.get_inputs()[0].name: np.zeros(shape, kinds[session.get_inputs()[0].type])}
for _ in range(10):
    session.run(None, feed)
times = []
for _ in range(50):
    start = time.perf_counter()
    outputs = session.run(None, feed)
    times.append((time.perf_counter() - start) * 1000)
print(shape, len(times), [o.shape for o in outputs])
print(0 < np.percentile(times, 50) <= np.percentile(times, 95))
