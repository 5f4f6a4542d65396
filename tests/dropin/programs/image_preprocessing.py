"""Bytes of an image to the layout of a network: transposed, flipped, scaled views."""

import numpy as np
import onnxruntime as ort

session = ort.InferenceSession("image.onnx")
print(session.get_inputs()[0].shape)
image = (np.arange(8 * 8 * 3) % 251).astype(np.uint8).reshape(8, 8, 3)
mean, std = np.array([0.4, 0.5, 0.6], np.float32), np.array([0.2, 0.3, 0.4], np.float32)
blob = ((image.astype(np.float32) / 255.0 - mean) / std).transpose(2, 0, 1)[None]
print(blob.flags["C_CONTIGUOUS"], np.round(session.run(None, {"image": blob})[0][0, :4], 3))
flipped = blob[:, ::-1, :, ::-1]
print(flipped.strides[1] < 0, np.round(session.run(None, {"image": flipped})[0][0, :4], 3))
fixed = np.ascontiguousarray(blob)
fixed.flags.writeable = False
print(np.round(session.run(None, {"image": fixed})[0][0, :4], 3))
crop = np.pad(blob, ((0, 0), (0, 0), (2, 2), (2, 2)))[:, :, 2:-2, 2:-2]
print(np.array_equal(session.run(None, {"image": crop})[0], session.run(None, {"image": fixed})[0]))
