"""LLVM text to machine code in this process: targets, objects, their cache, libraries, threads."""

from rooftile.native.aligned import aligned
from rooftile.native.assemble import assemble, assembly
from rooftile.native.cache import CacheStats, ObjectCache, build, cache_folder, default_cache
from rooftile.native.library import Library
from rooftile.native.pool import MAX_THREADS, Pool, has_pool, shared_pool
from rooftile.native.stop import NEVER, Stop
from rooftile.native.target import Target, cross_target, host_target

__all__ = [
    "MAX_THREADS",
    "NEVER",
    "CacheStats",
    "Library",
    "ObjectCache",
    "Pool",
    "Stop",
    "Target",
    "aligned",
    "assemble",
    "assembly",
    "build",
    "cache_folder",
    "cross_target",
    "default_cache",
    "has_pool",
    "host_target",
    "shared_pool",
]
