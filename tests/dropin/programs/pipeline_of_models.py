"""The outputs of one model are the inputs of the next."""

import numpy as np
import onnxruntime as ort

options = ort.SessionOptions()
options.intra_op_num_threads = 1
sessions = [ort.InferenceSession(name, options) for name in ("image.onnx", "mlp.onnx")]
image = np.arange(2 * 3 * 8 * 8, dtype=np.float32).reshape(2, 3, 8, 8) / 400
feed = {sessions[0].get_inputs()[0].name: image}
for session, following in zip(sessions, sessions[1:] + [None]):
    outputs = session.run([session.get_outputs()[0].name], feed)
    print(session.get_outputs()[0].name, outputs[0].shape, np.round(outputs[0][0, :3], 3))
    if following is not None:
        feed = {following.get_inputs()[0].name: outputs[0]}
