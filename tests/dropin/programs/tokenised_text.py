"""Token ids padded to one length, as tokenizers give them: lists, then int64."""

import numpy as np
import onnxruntime as ort

session = ort.InferenceSession("tokens.onnx")
sentences = ["a tile of the roof", "rain", "seven words are here to be read"]
words = sorted({word for text in sentences for word in text.split()})
ids = [[1 + words.index(word) for word in text.split()] for text in sentences]
length = max(map(len, ids))
padded = [row + [0] * (length - len(row)) for row in ids]
mask = [[int(token > 0) for token in row] for row in padded]
wanted = {arg.name for arg in session.get_inputs()}
encoded = {"input_ids": padded, "attention_mask": mask, "token_type_ids": mask}
feed = {k: np.array(v, dtype=np.int64) for k, v in encoded.items() if k in wanted}
pooled = session.run(None, feed)[0]
norm = pooled / np.linalg.norm(pooled, axis=1, keepdims=True)
print(np.round(norm @ norm.T, 3))
print(np.array_equal(session.run(None, {"input_ids": padded, "attention_mask": mask})[0], pooled))
