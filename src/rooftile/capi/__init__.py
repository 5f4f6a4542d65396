"""Where code written for onnxruntime finds its exceptions: in `onnxruntime_pybind11_state`.

Modules are imported when they are asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

_MODULES = ("onnxruntime_inference_collection", "onnxruntime_pybind11_state")


def __getattr__(name: str) -> Any:
    if name == "_pybind_state":
        name = "onnxruntime_pybind11_state"
    if name not in _MODULES:
        raise AttributeError(f"module 'rooftile.capi' has no attribute {name!r}")
    return import_module(f"rooftile.capi.{name}")
