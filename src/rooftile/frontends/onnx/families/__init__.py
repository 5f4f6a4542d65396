"""Readers of ONNX ops, a file a family. Each registers itself with `reads`; none is listed."""

import importlib
import pkgutil

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")
