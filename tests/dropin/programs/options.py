"""Every option that scripts set."""

import numpy as np
import onnxruntime as ort

ort.set_default_logger_severity(3)
so = ort.SessionOptions()
print(so.intra_op_num_threads, so.inter_op_num_threads, so.enable_profiling, so.log_severity_level)
print(so.execution_mode == ort.ExecutionMode.ORT_SEQUENTIAL, so.enable_mem_pattern)
print(so.graph_optimization_level == ort.GraphOptimizationLevel.ORT_ENABLE_ALL)
so.intra_op_num_threads = 2
so.inter_op_num_threads = 1
so.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
so.execution_mode = ort.ExecutionMode.ORT_PARALLEL
so.enable_cpu_mem_arena = False
so.enable_mem_pattern = False
so.enable_mem_reuse = False
so.log_severity_level = 3
so.logid = "mine"
so.use_deterministic_compute = True
so.add_session_config_entry("session.intra_op.allow_spinning", "0")
print(so.get_session_config_entry("session.intra_op.allow_spinning"))
try:
    so.get_session_config_entry("nothing")
except RuntimeError:
    print("no such entry")
session = ort.InferenceSession("mlp.onnx", sess_options=so, providers=["CPUExecutionProvider"])
ro = ort.RunOptions()
ro.log_severity_level = 3
ro.logid = "run"
ro.add_run_config_entry("disable_synchronize_execution_providers", "1")
print(ro.terminate, ro.get_run_config_entry("disable_synchronize_execution_providers"))
print(session.run(["scores"], {"x": np.zeros((1, 16), np.float32)}, run_options=ro)[0].shape)
