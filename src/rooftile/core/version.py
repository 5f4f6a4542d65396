"""The version of this package, and of its code."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path


@lru_cache(maxsize=1)
def version() -> str:
    """As it was installed; "unknown" for a tree that was not."""
    from importlib import metadata  # takes as long to import as a program to load

    try:
        return metadata.version("rooftile")
    except metadata.PackageNotFoundError:
        return "unknown"


@lru_cache(maxsize=1)
def fingerprint() -> str:
    """What changes with any file of the package's code, also where the version does not."""
    digest = hashlib.sha256()
    for name, size, changed in sorted(_files(Path(__file__).parent.parent)):
        digest.update(f"{name} {size} {changed}\n".encode())
    return digest.hexdigest()


def _files(folder: Path) -> Iterator[tuple[str, int, int]]:
    """Path, bytes and time of change of each file of code."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                yield from _files(Path(entry.path))
            elif entry.name.endswith((".py", ".toml")):
                status = entry.stat()
                yield entry.path, status.st_size, status.st_mtime_ns
