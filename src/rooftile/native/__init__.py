"""LLVM text to machine code in this process: targets, objects, the object cache, libraries."""

from rooftile.native.aligned import aligned
from rooftile.native.assemble import assemble, assembly
from rooftile.native.cache import CacheStats, ObjectCache, build, cache_folder, default_cache
from rooftile.native.library import Library
from rooftile.native.stop import NEVER, Stop
from rooftile.native.target import Target, cross_target, host_target

__all__ = [
    "NEVER",
    "CacheStats",
    "Library",
    "ObjectCache",
    "Stop",
    "Target",
    "aligned",
    "assemble",
    "assembly",
    "build",
    "cache_folder",
    "cross_target",
    "default_cache",
    "host_target",
]
