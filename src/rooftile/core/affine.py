"""Affine expressions: sums of integer multiples of names. Dims of graphs and indices of tiles."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Affine:
    """`sum(coef * name) + const`: terms sorted by name, never zero. Made by `affine`, + and *."""

    terms: tuple[tuple[str, int], ...] = ()
    const: int = 0

    def __add__(self, other: AffineLike) -> Affine:
        other = affine(other)
        total = dict(self.terms)
        for name, coef in other.terms:
            total[name] = total.get(name, 0) + coef
        return _make(total, self.const + other.const)

    __radd__ = __add__

    def __sub__(self, other: AffineLike) -> Affine:
        return self + affine(other) * -1

    def __mul__(self, factor: int) -> Affine:
        return _make({name: coef * factor for name, coef in self.terms}, self.const * factor)

    __rmul__ = __mul__

    def __str__(self) -> str:
        parts = [name if coef == 1 else f"{coef}*{name}" for name, coef in self.terms]
        if self.const or not parts:
            parts.append(str(self.const))
        return "+".join(parts).replace("+-", "-")

    @property
    def names(self) -> tuple[str, ...]:
        """The names that take part, sorted."""
        return tuple(name for name, _ in self.terms)

    def coef(self, name: str) -> int:
        """The multiple of `name`, 0 where it takes no part."""
        return dict(self.terms).get(name, 0)

    def substitute(self, values: Mapping[str, AffineLike]) -> Affine:
        """The expression with some names replaced by integers or other expressions."""
        total = Affine((), self.const)
        for name, coef in self.terms:
            total = total + affine(values.get(name, name)) * coef
        return total

    def value(self, values: Mapping[str, int] | None = None) -> int:
        """The integer it stands for; KeyError for a name without a value."""
        known = values or {}
        return self.const + sum(coef * known[name] for name, coef in self.terms)

    def range(self, extents: Mapping[str, int]) -> tuple[int, int]:
        """Smallest and largest value when each name runs over `0 .. extents[name]-1`."""
        low = high = self.const
        for name, coef in self.terms:
            reach = coef * (extents[name] - 1)
            low, high = low + min(0, reach), high + max(0, reach)
        return low, high


AffineLike = Affine | int | str
Dim = int | Affine
"""The extent of a tensor's or a buffer's dim: an integer, or affine in run-time symbols."""


def affine(value: AffineLike) -> Affine:
    """An integer, a name or an affine expression as an affine expression."""
    if isinstance(value, Affine):
        return value
    return Affine(((value, 1),)) if isinstance(value, str) else Affine((), value)


def dim(value: AffineLike) -> Dim:
    """The same, but a constant comes out as a plain integer."""
    value = affine(value)
    return value if value.terms else value.const


def bind(value: Dim, symbols: Mapping[str, int] | None = None) -> int:
    """The integer of a dim under values for its symbols; KeyError names a missing one."""
    return value if isinstance(value, int) else value.value(symbols)


def _make(total: Mapping[str, int], const: int) -> Affine:
    return Affine(tuple(sorted((name, coef) for name, coef in total.items() if coef)), const)
