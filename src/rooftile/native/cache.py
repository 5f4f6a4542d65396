"""Objects kept on disk by the content that they were made from."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from rooftile.core.errors import InvalidOption
from rooftile.core.version import version
from rooftile.native.assemble import assemble
from rooftile.native.files import cache_folder, remove, remove_stale, write_atomic
from rooftile.native.host_cpu import llvm_stamp
from rooftile.native.image import MAGIC as IMAGE_FORMAT
from rooftile.native.library import link
from rooftile.native.locks import new_lock
from rooftile.native.target import Target

MOST_REMOVED = 4096
"""Entries that go at once: a folder that is much too full is emptied over several compilations."""
_MAGIC = b"rooftile-object\n"
_DIGEST_BYTES = 32
_KEY = re.compile(r"[0-9A-Za-z_-]+")


@dataclass(frozen=True)
class CacheStats:
    """How many entries a cache holds, their bytes on disk, and its folder."""

    entries: int
    bytes: int
    folder: Path


class FileCache:
    """A folder of files by key. Safe for several processes; a folder that cannot be written
    makes it empty, never an error. Above `limit_bytes`, or `limit_entries` (which take time to
    look through), the entries used longest ago go."""

    suffix = ""

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

    def path(self, key: str) -> Path:
        """Where the file of a key lies, or would lie."""
        if not _KEY.fullmatch(key):
            raise InvalidOption(f"cache key {key!r} must be letters, digits, _ and - only")
        return self.folder / (key + self.suffix)

    def added(self, size: int) -> None:
        """Count a file that was written; remove others where it makes them too many."""
        with self._lock:
            if self._held is None:
                self._held = self._evict()
                return
            held, count = self._held[0] + size, self._held[1] + 1
            full = held > self.limit_bytes or count > self.limit_entries
            self._held = self._evict() if full else (held, count)

    def stats(self) -> CacheStats:
        """What is on disk now."""
        entries = self._entries()
        return CacheStats(len(entries), sum(size for _, size, _ in entries), self.folder)

    def clear(self) -> None:
        """Remove every entry."""
        for _, _, path in self._entries():
            remove(path)
        remove_stale(self.folder)
        with self._lock:
            self._held = None

    def _entries(self) -> list[tuple[float, int, Path]]:
        """Time of last use, bytes and path of each entry, the oldest first."""
        found = []
        try:
            paths = [path for path in self.folder.iterdir() if path.suffix == self.suffix]
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
            remove(path)
            held, count = held - size, count - 1
        return held, count


class ObjectCache(FileCache):
    """Objects by key, each with a digest."""

    suffix = ".o"

    def get(self, key: str) -> bytes | None:
        """The object kept under `key`, or None; a damaged entry is removed and counts as none."""
        path = self.path(key)
        try:
            raw = path.read_bytes()
        except OSError:
            return None
        data = unsealed(raw)
        if data is None:
            remove(path)
            return None
        touch(path)
        return data

    def put(self, key: str, data: bytes) -> None:
        """Keep `data` under `key`, whole or not at all."""
        sealed = seal(data)
        if len(sealed) <= self.limit_bytes and write_atomic(self.path(key), sealed):
            self.added(len(sealed))


def default_cache() -> ObjectCache:
    """The cache of objects under `cache_folder()`."""
    return _cache_at(cache_folder() / "objects")


def build(
    texts: Sequence[str], target: Target, cache: ObjectCache | None = None, level: int = 1
) -> list[bytes]:
    """The objects of the distinct texts, in order of first appearance, ready for `link`.

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


def build_code(text: str, target: Target, cache: ObjectCache | None = None) -> bytes:
    """Linked code of one text, ready for `Library`. Where the cache has it, LLVM is not loaded."""
    kept = default_cache() if cache is None else cache
    facts = (text, target, llvm_stamp(), IMAGE_FORMAT)
    key = hashlib.sha256(repr(facts).encode()).hexdigest()
    code = kept.get(key)
    if code is None:
        code = link(build([text], target, kept))
        kept.put(key, code)
    return code


def object_key(text: str, target: Target, level: int = 1) -> str:
    """SHA-256 of everything that decides an object's bytes, as hex."""
    import llvmlite
    import llvmlite.binding as llvm

    maker = (llvmlite.__version__, llvm.llvm_version_info, version())
    digest = hashlib.sha256(repr((target, level, maker)).encode())
    digest.update(b"\0" + text.encode())
    return digest.hexdigest()


@lru_cache(maxsize=8)
def _cache_at(folder: Path) -> ObjectCache:
    return ObjectCache(folder)


def seal(data: bytes) -> bytes:
    """Data with a digest in front of it."""
    return _MAGIC + hashlib.sha256(data).digest() + data


def unsealed(raw: bytes) -> bytes | None:
    """The data that was sealed; None where it was changed since."""
    start = len(_MAGIC) + _DIGEST_BYTES
    digest, data = raw[len(_MAGIC) : start], raw[start:]
    sound = raw.startswith(_MAGIC) and hashlib.sha256(data).digest() == digest
    return data if sound else None


def touch(path: Path) -> None:
    """Note that a file was used now."""
    try:
        os.utime(path)
    except OSError:  # a folder that cannot be written
        return
