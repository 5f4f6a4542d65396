"""rooftile: a compiler and inference engine for trained neural networks.

Names are imported when they are first asked for, so that `import rooftile` is quick and a saved
model loads without compiler or onnx.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rooftile import machine, memory
    from rooftile.core import errors
    from rooftile.core.errors import (
        InvalidInput,
        InvalidIR,
        InvalidModel,
        InvalidOption,
        NativeError,
        NotLowered,
        OutOfBounds,
        RooftileError,
        Terminated,
        UnsupportedOp,
        UnsupportedType,
    )
    from rooftile.core.options import CompileOptions
    from rooftile.session import (
        Compiled,
        ExecutionMode,
        ExecutionOrder,
        GraphOptimizationLevel,
        InferenceSession,
        IOBinding,
        ModelMetadata,
        NodeArg,
        OrtValue,
        RunOptions,
        SessionOptions,
        compile,
        disable_telemetry_events,
        enable_telemetry_events,
        get_all_providers,
        get_available_providers,
        get_build_info,
        get_device,
        get_version_string,
        load,
        preload_dlls,
        set_default_logger_severity,
        set_default_logger_verbosity,
        set_global_thread_pool_sizes,
        set_seed,
    )

    __version__: str
    capi: Any

__all__ = [
    "CompileOptions",
    "Compiled",
    "ExecutionMode",
    "ExecutionOrder",
    "GraphOptimizationLevel",
    "IOBinding",
    "InferenceSession",
    "InvalidIR",
    "InvalidInput",
    "InvalidModel",
    "InvalidOption",
    "ModelMetadata",
    "NativeError",
    "NodeArg",
    "NotLowered",
    "OrtValue",
    "OutOfBounds",
    "RooftileError",
    "RunOptions",
    "SessionOptions",
    "Terminated",
    "UnsupportedOp",
    "UnsupportedType",
    "__version__",
    "capi",
    "compile",
    "disable_telemetry_events",
    "enable_telemetry_events",
    "errors",
    "get_all_providers",
    "get_available_providers",
    "get_build_info",
    "get_device",
    "get_version_string",
    "load",
    "machine",
    "memory",
    "preload_dlls",
    "set_default_logger_severity",
    "set_default_logger_verbosity",
    "set_global_thread_pool_sizes",
    "set_seed",
]

_MODULES = {
    "capi": "rooftile.capi",
    "errors": "rooftile.core.errors",
    "machine": "rooftile.machine",
    "memory": "rooftile.memory",
}
_HOMES = ("rooftile.core.errors", "rooftile.core.options", "rooftile.session")


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'rooftile' has no attribute {name!r}")
    found: Any = None
    if name == "__version__":
        found = import_module("rooftile.core.version").version()
    elif name in _MODULES:
        found = import_module(_MODULES[name])
    else:
        for home in _HOMES:
            found = getattr(import_module(home), name, None)
            if found is not None:
                break
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted(__all__)
