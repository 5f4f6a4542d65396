"""The canonical ops. A file of this folder registers one op, or one family; none is listed."""

import importlib
import pkgutil

from rooftile.ops.base import OPS, Body, Index, Op, register

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")

__all__ = ["OPS", "Body", "Index", "Op", "register"]
