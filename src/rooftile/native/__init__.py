"""LLVM text to machine code in this process: targets, objects, their cache, libraries, threads."""

from rooftile.native.aligned import aligned
from rooftile.native.assemble import assemble, assembly
from rooftile.native.cache import CacheStats, ObjectCache, build, default_cache
from rooftile.native.files import cache_folder
from rooftile.native.library import Code, Library, link
from rooftile.native.mapping import FilePart
from rooftile.native.pool import MAX_THREADS, Pool, has_pool, shared_pool
from rooftile.native.stop import NEVER, Stop
from rooftile.native.target import Target, cross_target, host_target

__all__ = [
    "MAX_THREADS",
    "NEVER",
    "CacheStats",
    "Code",
    "FilePart",
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
    "link",
    "shared_pool",
]
