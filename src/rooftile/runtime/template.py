"""A program whose code serves many shapes, and its bindings to shapes."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any

from rooftile.core.symbolic import Sym, Symbols, hint
from rooftile.ir.program import Program, bound
from rooftile.native import Code, Library
from rooftile.native.locks import new_lock
from rooftile.runtime.executable import Executable, aligned_constants

KEPT_BINDINGS = 16
"""For how many sets of shapes the memory plan is kept; the one used longest ago goes."""

FEW = 16
"""Tiles that were chosen for fewer elements are small."""
FAR = 8
"""Extents so many times larger than those at hand are compiled for, if those were few."""

Shapes = Sequence[Sequence[int]]


def _is_far(value: int, at_hand: int) -> bool:
    """Whether tiles that fit the value at hand are much too small for another."""
    return at_hand < FEW and value > FAR * at_hand


class Template:
    """Compiled code with extents left open. Safe to use from several threads.

    `program` holds symbols in its shapes and sizes, `symbols` what was assumed of them. Code and
    constants are loaded once; what a set of shapes adds is a memory plan and an arena.
    """

    def __init__(
        self,
        program: Program,
        code: Code,
        functions: Mapping[str, str],
        constants: Any,
        symbols: Symbols,
        library: Library | None = None,
    ) -> None:
        """`functions`: the native symbol of each kernel; `library`: `code` where it is loaded
        already. NativeError where code cannot be loaded."""
        self.program = program
        self.symbols = symbols
        self.code = code
        self.functions = dict(functions)
        self.constants = aligned_constants(program, constants)
        self.library = Library(code) if library is None else library
        self._kept: OrderedDict[tuple[tuple[int, ...], ...], Executable] = OrderedDict()
        self._lock = new_lock()

    def values(self, shapes: Shapes) -> dict[str, int] | None:
        """The symbols' values for shapes of the inputs; None where the code does not hold for
        them."""
        found: dict[str, int] = {}
        for port, shape in zip(self.program.inputs, shapes, strict=True):
            if len(shape) != len(port.shape):
                return None
            for extent, size in zip(port.shape, shape, strict=True):
                if not isinstance(extent, Sym):
                    if extent != size:
                        return None
                    continue
                [((name,), unit)] = extent.poly.terms  # an input's dim is so many units
                if size % unit or found.setdefault(str(name), size // unit) != size // unit:
                    return None
        if any(_is_far(value, self.symbols.values[name]) for name, value in found.items()):
            return None
        return found if self.symbols.hold(found) else None

    def at_hand(self) -> Executable:
        """The program for the values that it was compiled at."""
        shapes = [[hint(extent) for extent in port.shape] for port in self.program.inputs]
        found = self.bind(shapes)
        if found is None:
            raise AssertionError("what was assumed of the symbols is not true of their values")
        return found

    def bind(self, shapes: Shapes) -> Executable | None:
        """The program for these shapes, ready to run; None where it does not hold for them."""
        key = tuple(tuple(shape) for shape in shapes)
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
            like = next((made.program for made in self._kept.values()), None)
        values = self.values(shapes)
        if values is None:
            return None
        made = Executable(
            bound(self.program, values, like),
            self.code,
            self.functions,
            self.constants,
            library=self.library,
        )
        with self._lock:
            self._kept[key] = made
            if len(self._kept) > KEPT_BINDINGS:
                self._kept.popitem(last=False)
        return made
