"""Files that rooftile keeps between runs."""

from __future__ import annotations

import os
import time
from pathlib import Path

STALE_S = 3600.0
"""A temporary file so old was left by a process that was killed as it wrote."""
_TEMPORARY = ".tmp"


def cache_folder() -> Path:
    """Where rooftile keeps files: $ROOFTILE_CACHE, else ~/.cache/rooftile."""
    chosen = os.environ.get("ROOFTILE_CACHE")
    return Path(chosen) if chosen else Path(os.path.expanduser("~")) / ".cache" / "rooftile"


def write_atomic(path: Path, data: bytes) -> bool:
    """Write a file whole or not at all; False where the folder cannot be written."""
    import tempfile  # takes a while to import, which a start that writes nothing saves

    temporary: str | None = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(prefix=".", suffix=_TEMPORARY, dir=path.parent)
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.replace(temporary, path)
    except OSError:
        if temporary is not None:
            remove(Path(temporary))
        return False
    return True


def remove(path: Path) -> None:
    """Remove a file if that is possible."""
    try:
        path.unlink()
    except OSError:  # gone already, or a folder that cannot be written
        return


def remove_stale(folder: Path) -> None:
    """Remove what processes left in a folder that were killed in `write_atomic`."""
    try:
        left = [path for path in folder.iterdir() if path.suffix == _TEMPORARY]
    except OSError:
        return
    for path in left:
        try:
            old = time.time() - path.stat().st_mtime > STALE_S
        except OSError:  # its writer renamed it
            continue
        if old:
            remove(path)
