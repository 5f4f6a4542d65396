"""The axes of a kernel while it is lowered: their extents, and how reshapes split them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rooftile.core.affine import Affine, affine
from rooftile.core.errors import NotLowered
from rooftile.core.symbolic import Sym, hint
from rooftile.ops import Index


class Refine(Exception):
    """An axis must be made of several, of these extents, outermost first."""

    def __init__(self, axis: str, factors: tuple[int, ...]) -> None:
        super().__init__(axis, factors)
        self.axis = axis
        self.factors = factors


class Axes:
    """Axes by name. `refined`: those known to be made of several, and of which extents."""

    def __init__(self, region: str, refined: Mapping[str, tuple[int, ...]]) -> None:
        self.region = region
        self.refined = refined
        self.extents: dict[str, int] = {}

    def new(self, hint: str, extent: int) -> Affine:
        """An axis, or the sum of those it was refined into, as an index."""
        taken = {axis.split(".")[0] for axis in self.extents}
        name, number = hint, 0
        while name in taken:
            number += 1
            name = f"{hint}{number}"
        return self._parts(name, extent)

    def _parts(self, name: str, extent: int) -> Affine:
        factors = self.refined.get(name)
        if factors is None:
            self.extents[name] = extent
            return affine(name)
        total = Affine()
        stride = extent
        for number, factor in enumerate(factors):
            stride //= factor
            total = total + self._parts(f"{name}.{number}", factor) * stride
        return total

    def within(self, part: Affine, extent: int) -> bool:
        """Whether an index always lies in 0..extent-1."""
        low, high = part.range(self.extents)
        return low >= 0 and high < extent

    def cover(self, part: Affine, extent: int) -> bool:
        """Whether an index takes each value of 0..extent-1 exactly once."""
        if part.const:
            return False
        stride = 1
        for name, coef in sorted(part.terms, key=lambda term: term[1]):
            if coef != stride:
                return False
            stride *= self.extents[name]
        return stride == extent

    def split(self, index: Affine, sizes: Sequence[int]) -> Index:
        """A position in a flat dim as positions in dims of `sizes`.

        Refine where an axis must be split for that, NotLowered where it cannot be.
        """
        strides = [1]
        for size in reversed(sizes[1:]):
            strides.insert(0, strides[0] * size)
        parts = [Affine() for _ in sizes]
        for name, coef in index.terms:
            dim = self._home(name, coef, sizes, strides)
            parts[dim] = parts[dim] + Affine(((name, coef // strides[dim]),))
        rest = index.const
        for dim, stride in enumerate(strides):
            step, rest = divmod(rest, stride)
            parts[dim] = parts[dim] + step
        for part, size in zip(parts, sizes, strict=True):
            if not self.within(part, size):
                raise NotLowered(f"{self.region}: index {part} leaves a reshaped dim of {size}")
        return tuple(parts)

    def _home(self, name: str, coef: int, sizes: Sequence[int], strides: Sequence[int]) -> int:
        """The dim that an axis moves along, if it moves along one alone."""
        if coef < 0:
            raise NotLowered(f"{self.region}: a reversed axis meets a reshape")
        dim = next((d for d, stride in enumerate(strides) if _divides(stride, coef)), None)
        if dim is None:
            raise NotLowered(f"{self.region}: axis {name} crosses a reshape unevenly")
        if coef // strides[dim] * (self.extents[name] - 1) >= sizes[dim]:
            raise Refine(name, self._factors(name, coef, strides))
        return dim

    def _factors(self, name: str, coef: int, strides: Sequence[int]) -> tuple[int, ...]:
        left = extent = self.extents[name]
        wide = [stride for stride in strides if stride > coef and _divides(coef, stride)]
        cuts = {stride // coef for stride in wide if stride // coef < extent}
        factors: list[int] = []
        for cut in sorted(cuts, key=hint, reverse=True):
            if not _divides(cut, left):
                raise NotLowered(f"{self.region}: axis {name} of {extent} does not split")
            factors.append(left // cut)
            left = cut
        if not factors:
            raise NotLowered(f"{self.region}: axis {name} of {extent} does not split")
        return (*factors, left)


def _divides(stride: int, number: int) -> bool:
    """Whether a number is a multiple of another, whatever the values of symbols."""
    if isinstance(stride, Sym) and not isinstance(number, Sym):
        return number == 0
    return number // stride * stride == number
