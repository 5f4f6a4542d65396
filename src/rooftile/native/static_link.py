"""A static linker: objects for x86-64 become one image, which loads without LLVM.

Functions and constants of all objects lie behind one another, then their variables. What no object
defines is an external: code calls it through a stub, `jmp *slot`, and finds its address in a slot.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from rooftile.core.errors import NativeError
from rooftile.native.elf import EXEC, WRITE, ObjectFile, Relocation, Section, read_object
from rooftile.native.image import MOST_BYTES, pack, rounded

ADDRESS, PC32, PLT32, GOTPCREL, PC64, GOTPCRELX, REX_GOTPCRELX = 1, 2, 4, 9, 24, 41, 42
"""The relocations of position-independent code, by their numbers in ELF."""
_THROUGH_SLOT = (GOTPCREL, GOTPCRELX, REX_GOTPCRELX)
_KNOWN = (ADDRESS, PC32, PLT32, PC64, *_THROUGH_SLOT)
_UNKNOWN = {10: "R_X86_64_32", 11: "R_X86_64_32S", 22: "R_X86_64_GOTTPOFF"}
_LINE = 64
"""Functions of different objects share no cache line, so that none is slower for its neighbours."""
_STUB_BYTES = 8
_JUMP = b"\xff\x25"
"""`jmp *distance(%rip)`; the distance is counted from behind it."""

Key = tuple[int, int]
"""An object's number, and the number of a section or symbol in it."""


def link(objects: Sequence[bytes]) -> bytes:
    """The image of relocatable objects that may call one another and the process's libraries.

    NativeError for a broken object, a symbol that two define, or a relocation that is not known.
    """
    try:
        return _Linker([read_object(data) for data in objects]).image()
    except NativeError as error:
        raise NativeError(f"{len(objects)} objects could not be linked: {error}") from error


class _Linker:
    """Lays sections out, gives slots and stubs to what needs them, then fills addresses in."""

    def __init__(self, files: Sequence[ObjectFile]) -> None:
        self.files = files
        self.sections = {
            (number, index): section
            for number, file in enumerate(files)
            for index, section in file.sections.items()
        }
        self.defined = self._definitions()
        self.places: dict[Key, int] = {}
        self.slots: dict[Key | str, int] = {}
        self.stubs: dict[str, int] = {}
        self.externals: list[tuple[int, str]] = []
        self.relatives: list[tuple[int, int]] = []

    def image(self) -> bytes:
        """All of it."""
        called, held = self._needs()
        end = self._place(0, lambda section: bool(section.flags & EXEC), _LINE)
        for name in called:
            end += -end % _STUB_BYTES
            self.stubs[name] = end
            end += _STUB_BYTES
        end = self._place(end, lambda section: not section.flags & (EXEC | WRITE))
        code_size = rounded(end)
        end = self._place(code_size, lambda section: _is_variable(section, zero=False))
        for target in held:
            end += -end % 8
            self.slots[target] = end
            end += 8
        data_size = end - code_size
        end = self._place(end, lambda section: _is_variable(section, zero=True))
        if end > MOST_BYTES:
            raise NativeError(f"{end} bytes are more than code can reach")
        memory = self._memory(code_size, data_size)
        symbols = {name: self._place_of(key) for name, key in self.defined.items()}
        code, data = bytes(memory[:code_size]), bytes(memory[code_size:])
        return pack(code, data, end - code_size, symbols, self.externals, self.relatives)

    def _definitions(self) -> dict[str, Key]:
        """What objects define for one another."""
        found: dict[str, Key] = {}
        for number, file in enumerate(self.files):
            for index, symbol in enumerate(file.symbols):
                if symbol.is_local or symbol.section is None:
                    continue
                if symbol.name in found:
                    raise NativeError(f"duplicate definition of symbol {symbol.name!r}")
                found[symbol.name] = (number, index)
        return found

    def _needs(self) -> tuple[dict[str, None], dict[Key | str, None]]:
        """The externals that are called, and all that needs a slot, in order."""
        called: dict[str, None] = {}
        held: dict[Key | str, None] = {}
        for number, section, relocation in self._relocations():
            target = self._target(number, relocation)
            if relocation.kind not in _KNOWN:
                name = _UNKNOWN.get(relocation.kind, f"number {relocation.kind}")
                raise NativeError(f"relocation {name} in section {section.name!r} is not known")
            if relocation.offset + _width(relocation.kind) > len(section.data):
                raise NativeError(f"a relocation leads outside section {section.name!r}")
            if relocation.kind in _THROUGH_SLOT:
                held[target] = None
            elif isinstance(target, str) and relocation.kind == PLT32:
                called[target] = held[target] = None
            elif isinstance(target, str) and relocation.kind != ADDRESS:
                raise NativeError(f"{target!r} is used as a variable that no object defines")
        return called, held

    def _relocations(self) -> Iterator[tuple[int, Section, Relocation]]:
        for (number, _), section in self.sections.items():
            for relocation in section.relocations:
                yield number, section, relocation

    def _target(self, number: int, relocation: Relocation) -> Key | str:
        """The symbol that a relocation names, or the name of an external."""
        symbols = self.files[number].symbols
        if relocation.symbol >= len(symbols):
            raise NativeError("an object is damaged: a relocation names no symbol")
        symbol = symbols[relocation.symbol]
        if symbol.section is not None:
            return number, relocation.symbol
        if not symbol.name or symbol.is_local:
            raise NativeError("an object is damaged: a relocation names nothing in memory")
        return self.defined.get(symbol.name, symbol.name)

    def _place(self, end: int, wanted: Callable[[Section], bool], align: int = 1) -> int:
        """Give places to the sections that are `wanted`; where they end."""
        for key, section in self.sections.items():
            if wanted(section):
                end += -end % max(align, section.align)
                self.places[key] = end
                end += section.size
        return end

    def _place_of(self, key: Key) -> int:
        number, index = key
        symbol = self.files[number].symbols[index]
        assert symbol.section is not None  # only such symbols become keys
        return self.places[number, symbol.section] + symbol.value

    def _memory(self, code_size: int, data_size: int) -> bytearray:
        """Code and data with all addresses that are known now."""
        memory = bytearray(code_size + data_size)
        for key, section in self.sections.items():
            place = self.places[key]
            memory[place : place + len(section.data)] = section.data
        for name, place in self.stubs.items():
            distance = self.slots[name] - (place + 6)
            memory[place : place + 6] = _JUMP + _signed(distance, 4)
        for target, slot in self.slots.items():
            if isinstance(target, str):
                self.externals.append((slot, target))
            else:
                self.relatives.append((slot, self._place_of(target)))
        for (number, index), section in self.sections.items():
            for relocation in section.relocations:
                place = self.places[number, index] + relocation.offset
                target = self._target(number, relocation)
                if relocation.kind == ADDRESS:
                    self._fill_in(place, target, relocation.addend, code_size)
                else:
                    self._relocate(memory, place, target, relocation)
        return memory

    def _relocate(
        self, memory: bytearray, place: int, target: Key | str, relocation: Relocation
    ) -> None:
        """The distance from a place of code to what it names."""
        kind, addend = relocation.kind, relocation.addend
        if kind in _THROUGH_SLOT:
            aim = self.slots[target]
        elif isinstance(target, str):
            aim = self.stubs[target]
        else:
            aim = self._place_of(target)
        distance = aim + addend - place
        memory[place : place + _width(kind)] = _signed(distance, _width(kind))

    def _fill_in(self, place: int, target: Key | str, addend: int, code_size: int) -> None:
        """A word of data that is an address: known only when the image is loaded."""
        if place < code_size:
            raise NativeError(
                "relocation R_X86_64_64 in memory that cannot be written is not known"
            )
        if not isinstance(target, str):
            self.relatives.append((place, self._place_of(target) + addend))
        elif addend:
            raise NativeError(
                f"an address inside {target!r}, which no object defines, is not known"
            )
        else:
            self.externals.append((place, target))


def _width(kind: int) -> int:
    """Bytes that a relocation fills in."""
    return 8 if kind in (ADDRESS, PC64) else 4


def _signed(distance: int, width: int) -> bytes:
    try:
        return distance.to_bytes(width, "little", signed=True)
    except OverflowError:
        raise NativeError(f"a distance of {distance} bytes is too far for a relocation") from None


def _is_variable(section: Section, zero: bool) -> bool:
    """Whether a section can be written, and is all `zero` at first."""
    return bool(section.flags & WRITE) and (len(section.data) < section.size) == zero
