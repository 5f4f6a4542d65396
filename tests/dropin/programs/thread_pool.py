"""One session for many threads."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import onnxruntime as ort

session = ort.InferenceSession("mlp.onnx", providers=["CPUExecutionProvider"])


def predict(seed):
    x = np.random.default_rng(seed).standard_normal((1 + seed % 3, 16)).astype(np.float32)
    return seed, session.run(["label"], {"x": x})[0].tolist()


with ThreadPoolExecutor(max_workers=8) as pool:
    for seed, labels in pool.map(predict, range(24)):
        print(seed, labels)
