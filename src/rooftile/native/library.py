"""Compiled code in this process, symbols by name: `link` makes it of objects, `Library` loads it.

On x86-64 Linux linked code is an image, which loads without LLVM; elsewhere it is the objects
themselves, which LLVM links at each start.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rooftile.core.errors import NativeError
from rooftile.native.image import MAGIC, unpack
from rooftile.native.mapping import FilePart, Mapping

if TYPE_CHECKING:
    from rooftile.native.jit import Linked

Code = bytes | memoryview
"""What `link` gives."""


def link(objects: Sequence[bytes]) -> bytes:
    """Relocatable objects of this host as code that `Library` loads.

    NativeError for broken objects or a symbol that two of them define.
    """
    if _has_images():
        from rooftile.native.static_link import link as link_image

        return link_image(objects)
    from rooftile.native.jit import bundle

    return bundle(objects)


class Library:
    """Code whose functions call one another, libm and libc, loaded for the life of this value.

    Addresses die with the library: whoever holds one holds the library too.
    """

    def __init__(self, code: Code, part: FilePart | None = None) -> None:
        """Load what `link` gave; NativeError where it is damaged, or calls what is not there.

        `part`: where `code` lies in an open file, for processes to share its pages.
        """
        self._linked: Linked | _Loaded = _load(code, part)

    def address(self, name: str) -> int:
        """The address of a function or global, an integer; NativeError if it is not there."""
        return self._linked.address(name)


class _Loaded:
    """An image in memory."""

    def __init__(self, code: Code, part: FilePart | None) -> None:
        image = unpack(code)
        self._mapping = Mapping(image, part)
        self._symbols = image.symbols

    def address(self, name: str) -> int:
        """See `Library.address`."""
        place = self._symbols.get(name)
        if place is None:
            raise NativeError(f"no object of the library defines {name!r}")
        return self._mapping.base + place


def _load(code: Code, part: FilePart | None) -> Linked | _Loaded:
    if code[: len(MAGIC)] == MAGIC:
        if not _has_images():
            raise NativeError("linked code is for x86-64 and Linux, which this is not")
        return _Loaded(code, part)
    from rooftile.native import jit

    if code[: len(jit.MAGIC)] != jit.MAGIC:
        raise NativeError("code is not recognized, or was made by another version of rooftile")
    return jit.Linked(jit.unbundle(code))


def _has_images() -> bool:
    """Whether this process can load images."""
    return sys.platform == "linux" and os.uname().machine == "x86_64"
