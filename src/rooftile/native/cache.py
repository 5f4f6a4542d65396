"""Objects kept on disk by the content that they were made from."""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import llvmlite
import llvmlite.binding as llvm

from rooftile.core.errors import InvalidOption
from rooftile.core.version import version
from rooftile.native.assemble import assemble
from rooftile.native.locks import new_lock
from rooftile.native.target import Target

MOST_REMOVED = 4096
"""Entries that go at once: a folder that is much too full is emptied over several compilations."""
STALE_S = 3600.0
"""A temporary file so old was left by a process that was killed as it wrote."""
_MAGIC = b"rooftile-object\n"
_DIGEST_BYTES = 32
_SUFFIX = ".o"
_TEMPORARY = ".tmp"
_KEY = re.compile(r"[0-9A-Za-z_-]+")


@dataclass(frozen=True)
class CacheStats:
    """How many entries a cache holds, their bytes on disk, and its folder."""

    entries: int
    bytes: int
    folder: Path


class ObjectCache:
    """A folder of objects by key. Safe for several processes; a folder that cannot be written
    makes it empty, never an error. Above `limit_bytes`, or `limit_entries` (which take time to
    look through), the entries used longest ago go."""

    def __init__(
        self,
        folder: str | os.PathLike[str],
        limit_bytes: int = 1 << 30,
        limit_entries: int = 1 << 15,
    ) -> None:
        if limit_bytes < 0 or limit_entries < 1:
            raise InvalidOption(
                f"a cache cannot be limited to {limit_bytes} bytes in {limit_entries} entries"
            )
        self.folder = Path(folder)
        self.limit_bytes, self.limit_entries = limit_bytes, limit_entries
        self._lock = new_lock()
        self._held: tuple[int, int] | None = None
        """Bytes and entries, as far as this process knows."""

    def get(self, key: str) -> bytes | None:
        """The object kept under `key`, or None; a damaged entry is removed and counts as none."""
        path = self._path(key)
        try:
            raw = path.read_bytes()
        except OSError:
            return None
        data = _unseal(raw)
        if data is None:
            _remove(path)
            return None
        _touch(path)
        return data

    def put(self, key: str, data: bytes) -> None:
        """Keep `data` under `key`, whole or not at all."""
        path = self._path(key)
        sealed = _seal(data)
        if len(sealed) > self.limit_bytes or not write_atomic(path, sealed):
            return
        with self._lock:
            if self._held is None:
                self._held = self._evict()
                return
            held, count = self._held[0] + len(sealed), self._held[1] + 1
            full = held > self.limit_bytes or count > self.limit_entries
            self._held = self._evict() if full else (held, count)

    def stats(self) -> CacheStats:
        """What is on disk now."""
        entries = self._entries()
        return CacheStats(len(entries), sum(size for _, size, _ in entries), self.folder)

    def clear(self) -> None:
        """Remove every entry."""
        for _, _, path in self._entries():
            _remove(path)
        remove_stale(self.folder)
        with self._lock:
            self._held = None

    def _path(self, key: str) -> Path:
        if not _KEY.fullmatch(key):
            raise InvalidOption(f"cache key {key!r} must be letters, digits, _ and - only")
        return self.folder / (key + _SUFFIX)

    def _entries(self) -> list[tuple[float, int, Path]]:
        """Time of last use, bytes and path of each entry, the oldest first."""
        found = []
        try:
            paths = [path for path in self.folder.iterdir() if path.suffix == _SUFFIX]
        except OSError:
            return []
        for path in paths:
            try:
                status = path.stat()
            except OSError:  # another process removed it
                continue
            found.append((status.st_mtime, status.st_size, path))
        return sorted(found)

    def _evict(self) -> tuple[int, int]:
        """What is held once the oldest entries went, a tenth below the limits to do it rarely."""
        remove_stale(self.folder)
        entries = self._entries()
        held, count = sum(size for _, size, _ in entries), len(entries)
        if held <= self.limit_bytes and count <= self.limit_entries:
            return held, count
        for _, size, path in entries[:-1][:MOST_REMOVED]:  # the last is the one just written
            if held <= self.limit_bytes * 9 // 10 and count <= self.limit_entries * 9 // 10:
                break
            _remove(path)
            held, count = held - size, count - 1
        return held, count


def cache_folder() -> Path:
    """Where rooftile keeps files: $ROOFTILE_CACHE, else ~/.cache/rooftile."""
    chosen = os.environ.get("ROOFTILE_CACHE")
    return Path(chosen) if chosen else Path(os.path.expanduser("~")) / ".cache" / "rooftile"


def default_cache() -> ObjectCache:
    """The cache of objects under `cache_folder()`."""
    return _cache_at(cache_folder() / "objects")


def build(
    texts: Sequence[str], target: Target, cache: ObjectCache | None = None, level: int = 1
) -> list[bytes]:
    """The objects of the distinct texts, in order of first appearance, ready for `Library`.

    `cache` is `default_cache()` where None.
    """
    kept = default_cache() if cache is None else cache
    objects = []
    for text in dict.fromkeys(texts):
        key = object_key(text, target, level)
        data = kept.get(key)
        if data is None:
            data = assemble(text, target, level)
            kept.put(key, data)
        objects.append(data)
    return objects


def object_key(text: str, target: Target, level: int = 1) -> str:
    """SHA-256 of everything that decides an object's bytes, as hex."""
    maker = (llvmlite.__version__, llvm.llvm_version_info, version())
    digest = hashlib.sha256(repr((target, level, maker)).encode())
    digest.update(b"\0" + text.encode())
    return digest.hexdigest()


def write_atomic(path: Path, data: bytes) -> bool:
    """Write a file whole or not at all; False where the folder cannot be written."""
    temporary: str | None = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(prefix=".", suffix=_TEMPORARY, dir=path.parent)
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.replace(temporary, path)
    except OSError:
        if temporary is not None:
            _remove(Path(temporary))
        return False
    return True


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
            _remove(path)


@lru_cache(maxsize=8)
def _cache_at(folder: Path) -> ObjectCache:
    return ObjectCache(folder)


def _seal(data: bytes) -> bytes:
    return _MAGIC + hashlib.sha256(data).digest() + data


def _unseal(raw: bytes) -> bytes | None:
    start = len(_MAGIC) + _DIGEST_BYTES
    digest, data = raw[len(_MAGIC) : start], raw[start:]
    sound = raw.startswith(_MAGIC) and hashlib.sha256(data).digest() == digest
    return data if sound else None


def _remove(path: Path) -> None:
    try:
        path.unlink()
    except OSError:  # gone already, or a folder that cannot be written
        return


def _touch(path: Path) -> None:
    try:
        os.utime(path)
    except OSError:  # a folder that cannot be written
        return
