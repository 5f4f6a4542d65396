"""The form of linked code that starts without a linker: `pack` writes it, `unpack` reads it.

    header   magic, where code and data lie, counts
    tables   places of symbols, slots of externals, pairs of relative slots, the names
    code     instructions and constants, from a page boundary to one
    data     what variables start as

In memory code comes first and data directly behind it. A place is an offset into both together.
Slots are words of data that are filled in when an image is loaded: with the address of an external
(a function of libc or libm), or with that of a place.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rooftile.core.errors import NativeError

MAGIC = b"RTIMAGE\x01"
PAGE = 4096
MOST_BYTES = 1 << 31
"""Code reaches what lies so near."""
_HEADER = struct.Struct("<8s9Q")


@dataclass(frozen=True)
class Image:
    """Linked code. `code` and `data` are views; `code_at` is where code starts in the bytes that
    the image was read from, a multiple of `PAGE`. `data_span` is `data` with the zeros behind it.

    `externals` are slots and the names that belong there, `relatives` slots and places.
    """

    code: memoryview
    code_at: int
    data: memoryview
    data_span: int
    symbols: Mapping[str, int]
    externals: Sequence[tuple[int, str]]
    relatives: Sequence[tuple[int, int]]

    @property
    def nbytes(self) -> int:
        """Bytes in memory, code and data together."""
        return len(self.code) + self.data_span


def pack(
    code: bytes,
    data: bytes,
    data_span: int,
    symbols: Mapping[str, int],
    externals: Sequence[tuple[int, str]],
    relatives: Sequence[tuple[int, int]],
) -> bytes:
    """The bytes of an image; `code` is whole pages."""
    names = [*symbols, *(name for _, name in externals)]
    encoded = b"".join(name.encode() + b"\0" for name in names)
    words = [*symbols.values(), *(slot for slot, _ in externals)]
    words += [word for pair in relatives for word in pair]
    code_at = rounded(_HEADER.size + 8 * len(words) + len(encoded))
    header = _HEADER.pack(
        MAGIC,
        code_at,
        len(code),
        code_at + len(code),
        len(data),
        data_span,
        len(symbols),
        len(externals),
        len(relatives),
        len(encoded),
    )
    head = header + struct.pack(f"<{len(words)}Q", *words) + encoded
    return head.ljust(code_at, b"\0") + code + data


def unpack(raw: bytes | memoryview) -> Image:
    """Read an image; NativeError where anything in it leads outside. Code itself is not judged."""
    view = memoryview(raw).toreadonly()
    if len(view) < _HEADER.size or view[: len(MAGIC)] != MAGIC:
        raise NativeError("linked code is not recognized, or was made by another version")
    code_at, code_size, data_at, data_size, span, *counts = _HEADER.unpack_from(view)[1:]
    symbols, externals, relatives, names_size = counts
    count = symbols + externals + 2 * relatives
    names_at = _HEADER.size + 8 * count
    _require(names_at + names_size <= code_at, "its tables")
    _require(code_at % PAGE == 0 and code_size % PAGE == 0, "where its code lies")
    _require(data_at == code_at + code_size and data_at + data_size == len(view), "its size")
    _require(data_size <= span and code_size + span <= MOST_BYTES, "its size in memory")
    words = struct.unpack_from(f"<{count}Q", view, _HEADER.size)
    names = _names(view[names_at : names_at + names_size], symbols + externals)
    slots = words[symbols : symbols + externals]
    pairs = words[symbols + externals :]
    end = code_size + span
    _require(max((*words[:symbols], *pairs[1::2]), default=0) <= end, "a place")
    for slot in (*slots, *pairs[::2]):
        _require(code_size <= slot <= end - 8, "a slot")
    table = dict(zip(names, words[:symbols], strict=False))
    _require(len(table) == symbols, "a name that is there twice")
    return Image(
        view[code_at:data_at],
        code_at,
        view[data_at:],
        span,
        table,
        list(zip(slots, names[symbols:], strict=True)),
        list(zip(pairs[::2], pairs[1::2], strict=True)),
    )


def rounded(nbytes: int) -> int:
    """The bytes of as many whole pages."""
    return nbytes + -nbytes % PAGE


def _names(table: memoryview, count: int) -> list[str]:
    try:
        names = bytes(table).decode().split("\0")
    except UnicodeDecodeError:
        names = []
    _require(len(names) == count + 1 and not names[-1], "its names")
    return names[:-1]


def _require(sound: bool, what: str) -> None:
    if not sound:
        raise NativeError(f"linked code is damaged: {what} cannot be right")
