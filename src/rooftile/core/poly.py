"""Polynomials with integer coefficients, and quotients of them rounded down, in one form each.

What extents of a run are computed by: `(N - 1)//2 + 1` of one branch and of another are equal.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias


@dataclass(frozen=True)
class Quotient:
    """`over // by`, rounded down; `by` is positive."""

    over: Poly
    by: Poly

    def __str__(self) -> str:
        return self._text

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _text(self) -> str:
        return f"{_in_parentheses(self.over)}//{_in_parentheses(self.by)}"

    @cached_property
    def _hash(self) -> int:
        return hash((self.over, self.by))

    def value(self, values: Mapping[str, int]) -> int:
        """The integer it is for values of its symbols."""
        return self.over.value(values) // max(1, self.by.value(values))


Atom: TypeAlias = "str | Quotient"
Monomial: TypeAlias = "tuple[Atom, ...]"


@dataclass(frozen=True)
class Poly:
    """A sum of integer multiples of products of atoms, in a canonical order.

    Its text is what `core.expression.parsed` reads.
    """

    terms: tuple[tuple[Monomial, int], ...]

    def __str__(self) -> str:
        return self._text

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash(self.terms)

    @cached_property
    def _text(self) -> str:
        parts = []
        for product, coef in self.terms:
            factors = [str(coef)] if coef != 1 or not product else []
            lone = coef == 1 and len(product) == 1
            atoms = [a if isinstance(a, str) or lone else f"({a})" for a in product]
            parts.append("*".join((*factors, *map(str, atoms))))
        return "+".join(parts).replace("+-", "-") or "0"

    @property
    def const(self) -> int:
        """The term without atoms."""
        return dict(self.terms).get((), 0)

    @property
    def is_const(self) -> bool:
        """Whether no atom takes part."""
        return all(not product for product, _ in self.terms)

    @property
    def atoms(self) -> tuple[Atom, ...]:
        """The atoms that take part, each once."""
        return tuple(dict.fromkeys(atom for product, _ in self.terms for atom in product))

    @property
    def names(self) -> frozenset[str]:
        """The symbols that take part, in quotients too."""
        found: set[str] = set()
        for atom in self.atoms:
            if isinstance(atom, str):
                found.add(atom)
            else:
                found |= atom.over.names | atom.by.names
        return frozenset(found)

    def value(self, values: Mapping[str, int]) -> int:
        """The integer it is for values of its symbols; KeyError names a missing one."""
        total = 0
        for product, coef in self.terms:
            for atom in product:
                coef *= values[atom] if isinstance(atom, str) else atom.value(values)
            total += coef
        return total


def _in_parentheses(poly: Poly) -> str:
    """Its text, to stand in a quotient."""
    text = str(poly)
    return text if text.isidentifier() or text.isdigit() else f"({text})"


def poly_of(terms: Mapping[Monomial, int]) -> Poly:
    """The polynomial of some terms, those of coefficient 0 left out."""
    kept = [(product, coef) for product, coef in terms.items() if coef]
    return Poly(tuple(sorted(kept, key=_place) if len(kept) > 1 else kept))


def _place(term: tuple[Monomial, int]) -> tuple[bool, list[str]]:
    """Where a term stands: by its atoms, the constant last."""
    return not term[0], [str(atom) for atom in term[0]]


def constant(value: int) -> Poly:
    """A number."""
    return poly_of({(): value})


def plus(a: Poly, b: Poly, factor: int = 1) -> Poly:
    """a + factor * b."""
    total = dict(a.terms)
    for product, coef in b.terms:
        total[product] = total.get(product, 0) + coef * factor
    return poly_of(total)


def times(a: Poly, b: Poly) -> Poly:
    """a * b."""
    total: dict[Monomial, int] = {}
    for left, x in a.terms:
        for right, y in b.terms:
            product = tuple(sorted((*left, *right), key=str)) if left and right else left or right
            total[product] = total.get(product, 0) + x * y
    return poly_of(total)


def divided(a: Poly, b: Poly) -> Poly:
    """a // b: the terms that b divides, and the quotient of what remains."""
    if len(b.terms) != 1 or b.terms[0][1] <= 0:
        return poly_of({(Quotient(a, b),): 1})
    [(divisor, factor)] = b.terms
    whole: dict[Monomial, int] = {}
    rest: dict[Monomial, int] = {}
    for product, coef in a.terms:
        left = _without(product, divisor)
        if left is None:
            rest[product] = coef
            continue
        if coef % factor:
            rest[product] = coef
        else:
            whole[left] = whole.get(left, 0) + coef // factor
    remainder = poly_of(rest)
    if remainder.is_const and b.is_const:
        return plus(poly_of(whole), constant(remainder.const // factor))
    if not remainder.terms:
        return poly_of(whole)
    inner = _lone_quotient(remainder)
    if inner is not None and b.is_const and inner.by.is_const:
        return plus(poly_of(whole), divided(inner.over, times(inner.by, b)))
    if b.is_const and all(coef < 0 for product, coef in remainder.terms if product):
        # Rounded down below zero is rounded up above it: one form for both spellings.
        above = plus(plus(b, constant(1), -1), remainder, -1)
        return plus(poly_of(whole), divided(above, b), -1)
    return plus(poly_of(whole), poly_of({(Quotient(remainder, b),): 1}))


def _lone_quotient(poly: Poly) -> Quotient | None:
    """The quotient that a polynomial is, and nothing else."""
    if len(poly.terms) != 1 or poly.terms[0][1] != 1 or len(poly.terms[0][0]) != 1:
        return None
    atom = poly.terms[0][0][0]
    return atom if isinstance(atom, Quotient) else None


def _without(product: Monomial, divisor: Monomial) -> Monomial | None:
    left = list(product)
    for atom in divisor:
        if atom not in left:
            return None
        left.remove(atom)
    return tuple(left)
