"""The name under which onnxruntime's own Python code imports `onnxruntime_pybind11_state`."""

from rooftile.capi.onnxruntime_pybind11_state import *  # noqa: F403
