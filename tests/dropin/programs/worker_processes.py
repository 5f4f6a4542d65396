"""A session in each worker, made by the initializer."""

import multiprocessing as mp

import numpy as np
import onnxruntime as ort

session = None


def start(path):
    global session
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    session = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def predict(seed):
    x = np.random.default_rng(seed).standard_normal((2, 16)).astype(np.float32)
    return session.run(["label"], {"x": x})[0].tolist()


if __name__ == "__main__":
    with mp.get_context("spawn").Pool(2, start, ("mlp.onnx",)) as pool:
        print(pool.map(predict, range(6)))
    import pickle

    start("mlp.onnx")
    try:
        pickle.dumps(session)
    except TypeError as error:
        print("pickle" in str(error))
