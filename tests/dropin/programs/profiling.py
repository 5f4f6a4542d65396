"""Where the time goes, from the trace."""

import json
import os

import numpy as np
import onnxruntime as ort

so = ort.SessionOptions()
so.enable_profiling = True
so.profile_file_prefix = "trace"
session = ort.InferenceSession("mlp.onnx", so, providers=["CPUExecutionProvider"])
for _ in range(3):
    session.run(None, {"x": np.ones((4, 16), np.float32)})
path = session.end_profiling()
print(os.path.basename(path).startswith("trace_"), path.endswith(".json"))
with open(path) as file:
    events = json.load(file)
print(isinstance(events, list), {"cat", "pid", "tid", "dur", "ts", "ph", "name"} <= set(events[0]))
print(sum(event["name"] == "model_run" for event in events))
nodes = [event for event in events if event["cat"] == "Node"]
print(len(nodes) >= 3, all(event["name"].endswith("_kernel_time") for event in nodes))
print(all(event["dur"] >= 0 and event["args"]["op_name"] for event in nodes))
runs = [event for event in events if event["name"] == "model_run"]
print(all(a["ts"] + a["dur"] <= b["ts"] for a, b in zip(runs, runs[1:])))
print(session.get_profiling_start_time_ns() > 0)
