"""Files that rooftile keeps between runs."""

from __future__ import annotations

import os
from pathlib import Path


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
        handle, temporary = tempfile.mkstemp(prefix=".", suffix=".tmp", dir=path.parent)
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
