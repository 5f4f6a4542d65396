"""Images in the memory of this process: code that is run but never written, data next to it."""

from __future__ import annotations

import ctypes
import mmap
import os
import struct
import weakref
from dataclasses import dataclass
from functools import lru_cache

from rooftile.core.errors import NativeError
from rooftile.native.image import Image

_FIXED = 0x10
_NORESERVE = 0x4000
_NONE = 0
_ANONYMOUS = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
_FAILED = ctypes.c_void_p(-1).value


@dataclass(frozen=True)
class FilePart:
    """Where an image lies in an open file: its descriptor, and a place on a page boundary."""

    descriptor: int
    start: int


class Mapping:
    """An image in memory from `base` on, until this value is dropped."""

    def __init__(self, image: Image, part: FilePart | None = None) -> None:
        """Load an image; from `part`, where that is given, processes share the pages of code.

        NativeError where an external is not in this process, or memory is not to be had.
        """
        addresses = [(slot, external(name)) for slot, name in image.externals]
        self.base = _map(None, image.nbytes, _NONE, _ANONYMOUS | _NORESERVE)
        self._end = weakref.finalize(self, _libc().munmap, self.base, image.nbytes)
        # At exit threads may still be on their way through the code.
        self._end.atexit = False
        if len(image.code) and not (part and _map_code(self.base, image, part)):
            _copy_code(self.base, image)
        if image.data_span:
            self._make_data(image, addresses)

    def _make_data(self, image: Image, addresses: list[tuple[int, int]]) -> None:
        start, size = self.base + len(image.code), image.data_span
        _map(start, size, mmap.PROT_READ | mmap.PROT_WRITE, _ANONYMOUS | _FIXED)
        memory = memoryview((ctypes.c_char * size).from_address(start)).cast("B")
        memory[: len(image.data)] = image.data
        for slot, address in addresses:
            struct.pack_into("<Q", memory, slot - len(image.code), address)
        for slot, place in image.relatives:
            struct.pack_into("<Q", memory, slot - len(image.code), self.base + place)


def external(name: str) -> int:
    """The address of a function of this process or of libm; NativeError where there is none."""
    for library in _libraries():
        try:
            return ctypes.cast(library[name], ctypes.c_void_p).value or 0
        except AttributeError:
            continue
    raise NativeError(f"code calls {name!r}, which is missing from the objects and this process")


def _map_code(base: int, image: Image, part: FilePart) -> bool:
    """Whether code could be mapped from its file; some file systems allow no code."""
    start = part.start + image.code_at
    if os.fstat(part.descriptor).st_size < start + len(image.code):
        raise NativeError("linked code is cut short in its file")
    mode, flags = mmap.PROT_READ | mmap.PROT_EXEC, mmap.MAP_PRIVATE | _FIXED
    try:
        _map(base, len(image.code), mode, flags, part.descriptor, start)
    except NativeError:
        return False
    return True


def _copy_code(base: int, image: Image) -> None:
    size = len(image.code)
    _map(base, size, mmap.PROT_READ | mmap.PROT_WRITE, _ANONYMOUS | _FIXED)
    memoryview((ctypes.c_char * size).from_address(base)).cast("B")[:] = image.code
    if _libc().mprotect(base, size, mmap.PROT_READ | mmap.PROT_EXEC):
        raise NativeError(f"memory cannot hold code: {os.strerror(ctypes.get_errno())}")


def _map(
    address: int | None, size: int, mode: int, flags: int, descriptor: int = -1, start: int = 0
) -> int:
    # Nothing is smaller than a page, not even an image without code or data.
    found = _libc().mmap(address, max(size, 1), mode, flags, descriptor, start)
    if found == _FAILED:
        reason = os.strerror(ctypes.get_errno())
        raise NativeError(f"{size} bytes for code cannot be mapped: {reason}")
    return int(found)


@lru_cache(maxsize=1)
def _libc() -> ctypes.CDLL:
    libc = ctypes.CDLL(None, use_errno=True)
    pointer, size, number = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
    libc.mmap.argtypes = [pointer, size, number, number, number, ctypes.c_int64]
    libc.mmap.restype = pointer
    libc.munmap.argtypes = [pointer, size]
    libc.mprotect.argtypes = [pointer, size, number]
    return libc


@lru_cache(maxsize=1)
def _libraries() -> tuple[ctypes.CDLL, ...]:
    return ctypes.CDLL(None), ctypes.CDLL("libm.so.6")
