"""The version of this package."""

from __future__ import annotations

from functools import lru_cache
from importlib import metadata


@lru_cache(maxsize=1)
def version() -> str:
    """As it was installed; "unknown" for a tree that was not."""
    try:
        return metadata.version("rooftile")
    except metadata.PackageNotFoundError:
        return "unknown"
