"""The public API: sessions as onnxruntime has them, `compile` and `load`."""

from rooftile.session.binding import IOBinding
from rooftile.session.compiled import Compiled, compile, load
from rooftile.session.inference import InferenceSession, ModelMetadata, NodeArg
from rooftile.session.options import (
    ExecutionMode,
    GraphOptimizationLevel,
    RunOptions,
    SessionOptions,
    get_all_providers,
    get_available_providers,
    get_device,
    set_default_logger_severity,
    set_default_logger_verbosity,
)
from rooftile.session.values import OrtValue

__all__ = [
    "Compiled",
    "ExecutionMode",
    "GraphOptimizationLevel",
    "IOBinding",
    "InferenceSession",
    "ModelMetadata",
    "NodeArg",
    "OrtValue",
    "RunOptions",
    "SessionOptions",
    "compile",
    "get_all_providers",
    "get_available_providers",
    "get_device",
    "load",
    "set_default_logger_severity",
    "set_default_logger_verbosity",
]
