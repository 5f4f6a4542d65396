"""Numpy bodies of ops that cannot be kernels: strings, sequences, maps, sizes that depend on data.

Each module registers its own; none is listed.
"""

import importlib
import pkgutil

from rooftile.host.registry import BODIES, HostOp, find_body

__all__ = ["BODIES", "HostOp", "find_body"]

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")
