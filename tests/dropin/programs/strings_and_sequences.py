"""Outputs that are no tensors of numbers."""

import numpy as np
import onnxruntime as ort

session = ort.InferenceSession("sequence.onnx")
print([(arg.name, arg.type) for arg in session.get_inputs() + session.get_outputs()])
texts = np.array(["roof", "tile", "é"], dtype=object)
names, parts = session.run(None, {"texts": texts, "x": np.arange(6, dtype=np.float32)})
print(names.dtype, names.tolist(), type(parts).__name__, [part.tolist() for part in parts])
names, _ = session.run(None, {"texts": np.array(["a", "bc"]), "x": np.arange(6, dtype=np.float32)})
print(names.tolist())
print(session.run(["names"], {"texts": ["one"], "x": np.arange(4, dtype=np.float32)})[0].tolist())
