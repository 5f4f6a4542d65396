"""Extents that only a run knows: integers with a name, and what was assumed of them.

A `Sym` stands in for an int wherever the compiler computes with shapes. Arithmetic gives a `Sym`
again. Every symbol is at least 2. Where code must decide, the answer is proved for all values if
it can be; else the value at hand decides and the assumption is kept as a guard. Where an int is
asked for (`int(x)`, `range(x)`, a numpy shape), the value at hand is given and the guard is an
equation. What was compiled therefore holds for all values that keep the guards.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rooftile.core.affine import Affine, Dim, affine
from rooftile.core.poly import Atom, Poly, Quotient, constant, divided, plus, poly_of, times

_NO_BOUND = -(1 << 62)
LEAST = 2
"""The least value of a symbol: dims of 0 and 1 mean something else to most ops."""


@dataclass(frozen=True)
class Guard:
    """Something assumed: `poly` is 0 (`equal`), or at least 0."""

    poly: Poly
    equal: bool

    def __str__(self) -> str:
        return f"{self.poly} {'==' if self.equal else '>='} 0"

    def holds(self, values: Mapping[str, int]) -> bool:
        """Whether it is true for these values."""
        value = self.poly.value(values)
        return value == 0 if self.equal else value >= 0


@dataclass
class Symbols:
    """The symbols of one compilation: the values at hand, what was assumed, names of numbers."""

    values: dict[str, int] = field(default_factory=dict)
    guards: dict[Guard, None] = field(default_factory=dict)
    named: dict[Poly, str] = field(default_factory=dict)
    """Numbers computed from the symbols that kernels are given, by their polynomials."""
    least: dict[Atom, int] = field(default_factory=dict)
    """What atoms are known not to be below, by the guards."""
    bounds: dict[Poly, int | None] = field(default_factory=dict)
    """Lower bounds that were asked for, as far as the guards now say."""

    pinned: set[str] = field(default_factory=set)
    """Symbols that had to be taken for the numbers at hand."""
    divided: dict[str, int] = field(default_factory=dict)
    """Symbols of which quotients were assumed to be equal: they should be multiples of this."""
    fixed: set[str] = field(default_factory=set)
    """Names that are no symbols, but the numbers at hand; one set for all starts."""
    units: Mapping[str, int] = field(default_factory=dict)
    """What extents are multiples of: the symbol counts these."""

    def new(self, name: str, value: int) -> int:
        """An extent of which a symbol counts the units, one each if not said otherwise.

        The number itself where the symbol would be below 2, where it is not a multiple, or where
        the name stands for no symbol.
        """
        unit = self.units.get(name, 1)
        if value // unit < LEAST or value % unit or name in self.fixed:
            return value
        self.values[name] = value // unit
        return Sym(self, poly_of({(name,): unit}))  # type: ignore[no-any-return]

    def assume(self, poly: Poly, equal: bool) -> None:
        """Keep a guard, unless it says nothing."""
        if poly.is_const:
            return
        self.guards[Guard(poly, equal)] = None
        lone = [(product, coef) for product, coef in poly.terms if product]
        if len(lone) == 1 and len(lone[0][0]) == 1 and lone[0][1] > 0:
            [((atom,), coef)] = lone
            self.least[atom] = max(-(poly.const // coef), self._least(atom))
            self.bounds.clear()

    def pin(self, poly: Poly) -> int:
        """The number at hand, assumed from here on."""
        value = poly.value(self.values)
        self.assume(plus(poly, constant(-value)), equal=True)
        self.pinned.update(poly.names)
        return value

    def equate(self, apart: Poly) -> None:
        """Assume that two numbers, `apart` from one another, are equal. What they are quotients of
        had better be a multiple of the divisors: then they are one number, whatever it is."""
        self.assume(apart, equal=True)
        for atom in (atom for atom in apart.atoms if isinstance(atom, Quotient)):
            for name in atom.over.names if atom.by.is_const else ():
                divisor = math.lcm(self.divided.get(name, 1), atom.by.const)
                if not self.values[name] % divisor:
                    self.divided[name] = divisor

    def again(self) -> Symbols | None:
        """A better start with what was learned; None where there is nothing to better.

        What had to be a number somewhere is one everywhere; what is best counted in units is.
        """
        if not self.pinned and not self.divided:
            return None
        units = {name: unit * self.units.get(name, 1) for name, unit in self.divided.items()}
        self.fixed.update(self.pinned)
        return Symbols(fixed=self.fixed, units={**self.units, **units})

    def _least(self, atom: Atom) -> int:
        """A number that an atom is never below; very small where none is known."""
        known = self.least.get(atom)
        if known is not None or isinstance(atom, str):
            return LEAST if known is None else known
        low = self.lower_bound(atom.over)
        if low is None:
            return _NO_BOUND
        if atom.by.is_const:
            return low // atom.by.const
        return 0 if low >= 0 else _NO_BOUND

    def lower_bound(self, poly: Poly) -> int | None:
        """A number that a polynomial is never below; None where none is found."""
        if poly not in self.bounds:
            self.bounds[poly] = self._lower_bound(poly)
        return self.bounds[poly]

    def _lower_bound(self, poly: Poly) -> int | None:
        """Each atom is written as its least value plus a rest; where no coefficient of the rests is
        negative, the constant is a bound."""
        shifted = constant(0)
        for product, coef in poly.terms:
            term = constant(coef)
            for atom in product:
                term = times(term, plus(poly_of({(atom,): 1}), constant(self._least(atom))))
            shifted = plus(shifted, term)
        if any(coef < 0 and product for product, coef in shifted.terms):
            return None
        return shifted.const

    def name(self, poly: Poly) -> str:
        """The name under which kernels know a number."""
        if len(poly.terms) == 1:
            [(product, coef)] = poly.terms
            if coef == 1 and len(product) == 1 and isinstance(product[0], str):
                return product[0]
        return self.named.setdefault(poly, f"q{len(self.named)}")

    def number(self, name: str) -> int:
        """What a name of a kernel's number stands for."""
        for poly, own in self.named.items():
            if own == name:
                return Sym(self, poly)  # type: ignore[no-any-return]
        return Sym(self, poly_of({(name,): 1}))  # type: ignore[no-any-return]

    def extent(self, extent: Dim) -> int:
        """What an extent in the names of kernels stands for: the inverse of `to_dim`."""
        value = affine(extent)
        return sum((self.number(name) * coef for name, coef in value.terms), value.const)

    def reaches(self, extent: Dim, least: int) -> None:
        """Assume that an extent, in the names of kernels, is at least a number."""
        if not self.extent(extent) >= least:
            raise AssertionError(f"{extent} is below {least} for the values at hand")

    @property
    def hints(self) -> dict[str, int]:
        """The numbers at hand by their names in kernels."""
        own = {name: poly.value(self.values) for poly, name in self.named.items()}
        return {**self.values, **own}

    def hold(self, values: Mapping[str, int]) -> bool:
        """Whether what was assumed is true for these values."""
        least = all(value >= LEAST for value in values.values())
        return least and all(guard.holds(values) for guard in self.guards)


class Sym(int if TYPE_CHECKING else object):  # type: ignore[misc]
    """An integer that a run knows. Code that takes ints takes it; see the module."""

    __slots__ = ("poly", "symbols")

    symbols: Symbols
    poly: Poly

    def __new__(cls, symbols: Symbols, poly: Poly) -> Any:
        """A plain int where no symbol takes part."""
        if poly.is_const:
            return poly.const
        made = object.__new__(cls)
        made.symbols, made.poly = symbols, poly
        return made

    @property
    def hint(self) -> int:
        """The value at hand, with nothing assumed: for estimates and choices."""
        return self.poly.value(self.symbols.values)

    # -- arithmetic

    def _with(self, other: Any, combine: Any, plain: Any) -> Any:
        if isinstance(other, Sym):
            return Sym(self.symbols, combine(self.poly, other.poly))
        if _is_int(other):
            return Sym(self.symbols, combine(self.poly, constant(operator.index(other))))
        if isinstance(other, float):
            return plain(self._pinned(), other)
        return NotImplemented

    def __add__(self, other: Any) -> Any:
        return self._with(other, plus, operator.add)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        return self._with(other, lambda a, b: plus(a, b, -1), operator.sub)

    def __rsub__(self, other: Any) -> Any:
        return self._with(other, lambda a, b: plus(b, a, -1), lambda a, b: b - a)

    def __mul__(self, other: Any) -> Any:
        return self._with(other, times, operator.mul)

    __rmul__ = __mul__

    def __neg__(self) -> Any:
        return self * -1

    def __pos__(self) -> Any:
        return self

    def __abs__(self) -> Any:
        return self if self >= 0 else -self

    def __floordiv__(self, other: Any) -> Any:
        if _is_int(other) and other < 0:
            return -self // -other
        if isinstance(other, Sym) and not other > 0:
            return self._pinned() // other._pinned()
        if _is_int(other) and other == 0:
            raise ZeroDivisionError(f"{self} // 0")
        return self._with(other, divided, operator.floordiv)

    def __rfloordiv__(self, other: Any) -> Any:
        if not _is_int(other):
            return NotImplemented
        return Sym(self.symbols, divided(constant(operator.index(other)), self.poly))

    def __mod__(self, other: Any) -> Any:
        return self - self // other * other

    def __rmod__(self, other: Any) -> Any:
        return other - other // self * self

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> Any:
        return other // self, other % self

    def __pow__(self, other: Any, modulus: Any = None) -> Any:
        return self._pinned() ** int(other)

    # -- comparison

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Sym):
            return self.symbols is other.symbols and self.poly == other.poly
        if not _is_int(other):
            return False
        # Dims of 0 and 1 are special everywhere; other numbers only happen to be equal.
        value = operator.index(other)  # type: ignore[arg-type]
        return value < LEAST and self._decide(value)

    def _decide(self, value: int) -> bool:
        """Whether it is a small number, for all values that keep the guards."""
        apart = plus(self.poly, constant(-value))
        low = self.symbols.lower_bound(apart)
        if low is not None and low > 0:
            return False
        hint = self.hint
        if hint == value:
            self.symbols.assume(apart, equal=True)
            return True
        beyond = plus(apart, constant(-1)) if hint > value else plus(constant(-1), apart, -1)
        self.symbols.assume(beyond, equal=False)
        return False

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash((id(self.symbols), self.poly))

    def __bool__(self) -> bool:
        return self != 0

    def _at_least(self, other: Any) -> bool:
        """self >= other: proved, or assumed."""
        apart = self - other
        if not isinstance(apart, Sym):
            return bool(apart >= 0)
        low = self.symbols.lower_bound(apart.poly)
        if low is not None and low >= 0:
            return True
        negative = plus(constant(-1), apart.poly, -1)
        low = self.symbols.lower_bound(negative)
        if low is not None and low >= 0:
            return False
        found = apart.hint >= 0
        self.symbols.assume(apart.poly if found else negative, equal=False)
        return found

    def _compared(self, other: Any, answer: Any, on_float: Any) -> Any:
        if isinstance(other, float) and not isinstance(other, Sym):
            return on_float(self._pinned(), other)
        return answer() if isinstance(other, Sym) or _is_int(other) else NotImplemented

    def __ge__(self, other: Any) -> Any:
        return self._compared(other, lambda: self._at_least(other), operator.ge)

    def __gt__(self, other: Any) -> Any:
        return self._compared(other, lambda: self._at_least(other + 1), operator.gt)

    def __lt__(self, other: Any) -> Any:
        return self._compared(other, lambda: not self._at_least(other), operator.lt)

    def __le__(self, other: Any) -> Any:
        return self._compared(other, lambda: not self._at_least(other + 1), operator.le)

    # -- where a number is needed

    def _pinned(self) -> int:
        return self.symbols.pin(self.poly)

    def __index__(self) -> int:
        return self._pinned()

    def __int__(self) -> int:
        return self._pinned()

    def __float__(self) -> float:
        return float(self._pinned())

    def __truediv__(self, other: Any) -> Any:
        return self._pinned() / other

    def __rtruediv__(self, other: Any) -> Any:
        return other / self._pinned()

    def __str__(self) -> str:
        return str(self.poly)

    __repr__ = __str__

    def __format__(self, spec: str) -> str:
        return format(str(self), spec)


def _is_int(value: object) -> bool:
    return not isinstance(value, Sym) and hasattr(type(value), "__index__")


def hint(extent: int) -> int:
    """An extent as a plain number, for estimates and choices that any number would do for."""
    return extent.hint if isinstance(extent, Sym) else int(extent)


def same(a: int, b: int) -> bool:
    """Whether two extents are equal; symbols whose values at hand are equal are assumed to be."""
    if a == b:
        return True
    if hint(a) != hint(b):
        return False
    apart = a - b
    if isinstance(apart, Sym):
        apart.symbols.equate(apart.poly)
        return True
    return False


def to_dim(extent: int) -> Dim:
    """An extent as the tile IR has it: affine in names that kernels are given numbers for."""
    if not isinstance(extent, Sym):
        return int(extent)
    total = Affine()
    for product, coef in extent.poly.terms:
        if not product:
            total = total + coef
            continue
        name = extent.symbols.name(poly_of({product: 1}))
        total = total + affine(name) * coef
    return total


def evaluated(extent: int, values: Mapping[str, int]) -> int:
    """An extent for values of its symbols."""
    return extent.poly.value(values) if isinstance(extent, Sym) else int(extent)


def symbolic(extents: Iterable[object]) -> bool:
    """Whether any of the extents is a symbol."""
    return any(isinstance(extent, Sym) for extent in extents)
