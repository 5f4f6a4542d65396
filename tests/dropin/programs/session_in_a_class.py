"""The wrapper that every project has."""

import copy

import numpy as np
import onnxruntime as ort


class Predictor:
    def __init__(self, path, providers=None, threads=0):
        options = ort.SessionOptions()
        options.intra_op_num_threads = threads
        providers = providers or ["CPUExecutionProvider"]
        self.session = ort.InferenceSession(path, sess_options=options, providers=providers)
        self.inputs = [i.name for i in self.session.get_inputs()]
        self.outputs = [o.name for o in self.session.get_outputs()]

    def __call__(self, *arrays, **named):
        feed = {**dict(zip(self.inputs, arrays)), **named}
        return dict(zip(self.outputs, self.session.run(self.outputs, feed)))


predictor = Predictor("mlp.onnx", threads=1)
x = np.full((1, 16), 0.25, np.float32)
print({k: v.shape for k, v in predictor(x).items()}, predictor(x=x)["label"])
print(copy.copy(predictor.session).run(["label"], {"x": x})[0])
try:
    copy.deepcopy(predictor)
except TypeError:
    print("sessions are not copied")
before = predictor(x)["scores"]
predictor(x * 9)
print(np.array_equal(before, predictor(x)["scores"]))
