"""What a tool prints about a model."""

import onnxruntime as ort

session = ort.InferenceSession("classifier.onnx", providers=ort.get_available_providers())
for kind, args in (("in", session.get_inputs()), ("out", session.get_outputs())):
    for arg in args:
        print(kind, arg.name, arg.shape, arg.type, str(arg))
meta = session.get_modelmeta()
print(meta.producer_name, meta.graph_name, meta.version, meta.domain, meta.description)
print(sorted(meta.custom_metadata_map.items()), meta.graph_description)
print(session.get_providers()[-1], session.get_provider_options()["CPUExecutionProvider"])
print(ort.get_device(), "CPUExecutionProvider" in ort.get_available_providers())
print(len(ort.__version__.split(".")) >= 2, session.get_session_options().intra_op_num_threads)
print(ort.InferenceSession("mlp.onnx").get_modelmeta().version)
