"""Some of the outputs, in any order, by list, tuple or comprehension."""

import numpy as np
import onnxruntime as ort

session = ort.InferenceSession("classifier.onnx")
names = [o.name for o in session.get_outputs()]
print(names)
x = np.linspace(-1, 1, 16, dtype=np.float32).reshape(1, 16)
everything = session.run(None, {"x": x})
for wanted in (names[:1], tuple(names[1:]), names[::-1], [], [names[0], names[0]]):
    found = session.run(wanted, {"x": x})
    print([(a.shape, str(a.dtype)) for a in found])
print(np.array_equal(session.run(names[1:2], {"x": x})[0], everything[1]))
result = dict(zip(names, everything))
print(sorted(result), result["label"], np.round(result["probabilities"], 3))
