"""Addresses and masks of loads and stores as Triton text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rooftile.codegen.triton.blocks import Blocks, Group, Order
from rooftile.codegen.triton.names import Names
from rooftile.core.affine import Affine, affine
from rooftile.ir.tile.layout import PhysicalDim, physical_dims
from rooftile.ir.tile.query import halo_of, never_negative, reach
from rooftile.ir.tile.records import Buf

WIDE = 2**31
"""Buffers of at least so many elements need 64-bit offsets."""


class Addresses:
    """Turns indices into offsets and masks. Axis variables carry the names that `names` gives;
    `masks` has the variable that says which elements of an axis exist.
    """

    def __init__(self, blocks: Blocks, names: Names, masks: Mapping[str, str]) -> None:
        self.blocks = blocks
        self.names = names
        self.masks = masks

    def spread(self, text: str, group: Group, order: Order) -> str:
        """A one-dimensional block at its place among the dims of `order`."""
        if len(order) <= 1:
            return text
        return f"{text}[{', '.join(':' if g == group else 'None' for g in order)}]"

    def axis(self, name: str, order: Order) -> str:
        """An axis variable broadcastable over `order`."""
        if name not in self.blocks.groups:
            return self.names[name]
        return self.spread(self.names[name], self.blocks.groups[name], order)

    def index(self, part: Affine, order: Order) -> str:
        """An affine index as text."""
        terms = []
        for name, coef in part.terms:
            text = self.axis(name, order)
            terms.append(text if coef == 1 else f"{coef} * {text}")
        text = " + ".join(terms)
        if part.const or not terms:
            text += f" {'+' if part.const > 0 else '-'} {abs(part.const)}" if terms else ""
            text = text or str(part.const)
        return text

    def offset(self, buf: Buf, index: Sequence[Affine | str], order: Order) -> str:
        """The offset of an access in elements; a component that is text is a block of indices."""
        dims = physical_dims(buf)
        size = 1
        for entry in dims:
            size *= entry.count if isinstance(entry.count, int) else 1
        terms = []
        for entry in dims:
            part = index[entry.dim]
            low = halo_of(buf, entry.dim)[0]
            if isinstance(part, Affine):
                part = part + low
                text, atom = self.index(part, order), len(part.terms) + bool(part.const) <= 1
                atom = atom and all(coef == 1 for _, coef in part.terms)
            else:
                text, atom = (f"{part} + {low}", False) if low else (part, True)
            text = self._scaled(entry, text, atom, size >= WIDE)
            if text != "0":
                terms.append(text)
        return " + ".join(terms)

    def _scaled(self, entry: PhysicalDim, text: str, atom: bool, wide: bool) -> str:
        if entry.part != "all":
            text = text if atom else f"({text})"
            text, atom = f"{text} {'//' if entry.part == 'div' else '%'} {entry.block}", False
        if text == "0":
            return text
        factors = [self.names.extent(factor) for factor in entry.factors]
        factors = [text if text.isidentifier() else f"({text})" for text in factors]
        if entry.stride != 1 or not factors:
            factors.insert(0, str(entry.stride))
        if factors == ["1"]:
            return text if atom or entry.part == "all" else f"({text})"
        if wide:
            text, atom = f"tl.cast({text}, tl.int64)", True
        return " * ".join([text if atom else f"({text})", *factors])

    def exists(self, parts: Sequence[Affine], order: Order) -> list[str]:
        """Conditions that the elements of the axes exist; empty where all do."""
        names = dict.fromkeys(name for part in parts for name in part.names)
        return [
            self.spread(self.masks[name], self.blocks.groups[name], order)
            for name in names
            if name in self.masks
        ]

    def leaves(
        self, buf: Buf, which: int, part: Affine, halo: tuple[int, int]
    ) -> tuple[bool, bool]:
        """Whether an index can leave the shape and its halo, below and above."""
        low, high = reach(part, self.blocks.axes)
        room = affine(buf.shape[which]) - 1 - high
        if never_negative(low + halo[0]) and never_negative(room + halo[1]):
            return False, False
        return not never_negative(low), not never_negative(room)
