"""OrtValues from arrays and from shapes, updated in place, bound and run."""

import numpy as np
import onnxruntime as ort

session = ort.InferenceSession("mlp.onnx", providers=["CPUExecutionProvider"])
value = ort.OrtValue.ortvalue_from_numpy(np.full((4, 16), 0.5, np.float32))
print(value.shape(), value.data_type(), value.element_type(), value.device_name())
print(value.is_tensor(), value.has_value(), value.is_tensor_sequence(), value.data_ptr() != 0)
out = ort.OrtValue.ortvalue_from_shape_and_type([4, 5], np.float32, "cpu", 0)
binding = session.io_binding()
binding.bind_ortvalue_input("x", value)
binding.bind_ortvalue_output("scores", out)
session.run_with_iobinding(binding)
print(np.round(out.numpy()[0], 3))
value.update_inplace(np.full((4, 16), -1.0, np.float32))
session.run_with_iobinding(binding)
print(np.round(out.numpy()[0], 3))
(result,) = session.run_with_ort_values(["scores"], {"x": value})
print(type(result).__name__, np.allclose(result.numpy(), out.numpy()))
try:
    value.update_inplace(np.zeros(3, np.float32))
except RuntimeError as error:
    print("refused", type(error).__mro__[-2].__name__)
