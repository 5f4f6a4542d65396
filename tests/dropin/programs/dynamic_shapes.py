"""Sentences of any length, in batches of any size."""

import numpy as np
import onnxruntime as ort

session = ort.InferenceSession("tokens.onnx", providers=["CPUExecutionProvider"])
print([arg.shape for arg in session.get_inputs()])
rng = np.random.default_rng(0)
for batch, length in ((1, 3), (2, 7), (1, 16), (4, 5), (1, 3), (3, 11)):
    ids = rng.integers(0, 50, (batch, length), dtype=np.int64)
    mask = (np.arange(length) < length - 1).astype(np.int64)[None].repeat(batch, 0)
    (pooled,) = session.run(["pooled"], {"input_ids": ids, "attention_mask": mask})
    print(batch, length, pooled.shape, pooled.dtype, np.round(pooled[0, :3], 3))
