"""Relocatable ELF objects for x86-64, as LLVM writes them: sections, symbols, relocations."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

from rooftile.core.errors import NativeError

WRITE, ALLOC, EXEC, TLS = 1, 2, 4, 0x400
"""Flags of sections."""
_PROGBITS, _SYMTAB, _RELA, _NOBITS, _UNWIND = 1, 2, 4, 8, 0x70000001
_LOCAL = 0
_TYPE_SECTION, _TYPE_FILE = 3, 4
_FIRST_RESERVED = 0xFF00
"""Numbers of sections from here on have meanings of their own."""
_IDENT = b"\x7fELF\x02\x01\x01"
_RELOCATABLE, _X86_64 = 1, 62
_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_RELOCATION = struct.Struct("<QIIq")


@dataclass(frozen=True)
class Relocation:
    """A place in a section that holds the address of `symbol` (its number), in the way `kind`."""

    offset: int
    kind: int
    symbol: int
    addend: int


@dataclass(frozen=True)
class Section:
    """What an object wants in memory; `data` is empty where it is `size` zero bytes."""

    name: str
    flags: int
    size: int
    align: int
    data: bytes
    relocations: Sequence[Relocation]


@dataclass(frozen=True)
class Symbol:
    """A name for byte `value` of a section (its number); of none where another object has it."""

    name: str
    section: int | None
    value: int
    is_local: bool


@dataclass(frozen=True)
class ObjectFile:
    """An object's sections by number, and its symbols in order. Tables for unwinding are left out:
    nothing is thrown through compiled code."""

    sections: dict[int, Section]
    symbols: list[Symbol]


def read_object(data: bytes) -> ObjectFile:
    """Read an object; NativeError where it is none, is damaged, or holds what LLVM does not write
    for plain code."""
    try:
        return _read(data)
    except (struct.error, IndexError, ValueError) as error:  # of offsets that lead outside
        raise NativeError(f"an object is damaged: {error}") from error


def _read(data: bytes) -> ObjectFile:
    if len(data) < _HEADER.size or not data.startswith(_IDENT):
        raise NativeError("the format of an object is not recognized, it is no 64-bit ELF")
    fields = _HEADER.unpack_from(data)
    if fields[1:3] != (_RELOCATABLE, _X86_64):
        raise NativeError("an object is not recognized as relocatable code for x86-64")
    table, count, names = fields[6], fields[12], fields[13]
    headers = [_SECTION.unpack_from(data, table + n * _SECTION.size) for n in range(count)]
    strings = _bytes(data, headers[names])
    relocations = {
        header[7]: [Relocation(*entry) for entry in _RELOCATION.iter_unpack(_bytes(data, header))]
        for header in headers
        if header[1] == _RELA
    }
    sections = {}
    for number, header in enumerate(headers):
        name = _string(strings, header[0])
        if header[2] & ALLOC and header[1] != _UNWIND and name != ".eh_frame":
            sections[number] = _section(data, name, header, relocations.get(number, []))
    tables = [header for header in headers if header[1] == _SYMTAB]
    symbols = _symbols(data, tables[0], headers, sections) if tables else []
    return ObjectFile(sections, symbols)


def _section(
    data: bytes, name: str, header: Sequence[int], relocations: Sequence[Relocation]
) -> Section:
    _, kind, flags, _, _, size, _, _, align, _ = header
    if kind not in (_PROGBITS, _NOBITS) or flags & TLS or (flags & WRITE and flags & EXEC):
        raise NativeError(f"section {name!r} of an object is of a kind that cannot be linked")
    if align & (align - 1) or align > 4096:
        raise NativeError(f"section {name!r} of an object wants the alignment {align}")
    content = b"" if kind == _NOBITS else _bytes(data, header)
    return Section(name, flags, size, max(1, align), content, relocations)


def _symbols(
    data: bytes,
    table: Sequence[int],
    headers: Sequence[Sequence[int]],
    sections: dict[int, Section],
) -> list[Symbol]:
    strings = _bytes(data, headers[table[6]])
    found = []
    for name_at, info, _, place, value, _ in _SYMBOL.iter_unpack(_bytes(data, table)):
        name, kind = _string(strings, name_at), info & 15
        if place >= _FIRST_RESERVED and kind != _TYPE_FILE:
            raise NativeError(f"symbol {name!r} of an object lies in no section")
        section = place if place in sections else None
        if section is not None and value > sections[place].size:
            raise NativeError(f"symbol {name!r} of an object lies outside its section")
        name = sections[place].name if section is not None and kind == _TYPE_SECTION else name
        found.append(Symbol(name, section, value, info >> 4 == _LOCAL))
    return found


def _bytes(data: bytes, header: Sequence[int]) -> bytes:
    start, size = header[4], header[5]
    if start + size > len(data):
        raise ValueError("a section ends behind the end of the file")
    return data[start : start + size]


def _string(strings: bytes, start: int) -> str:
    return strings[start : strings.index(b"\0", start)].decode()
