"""The memory that a kernel reads and writes while it is lowered."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from rooftile.core.affine import Affine
from rooftile.core.dtype import kind
from rooftile.core.errors import NotLowered
from rooftile.core.symbolic import Sym, symbolic
from rooftile.ir.graph import Array, Value
from rooftile.ir.program.records import NUMBER
from rooftile.ir.tile import Buf, Const, Load, Map, Tile
from rooftile.lower.axes import Axes
from rooftile.lower.records import View
from rooftile.ops.iota import position

MOST_UNIFORM = 1 << 16
"""Larger constants are not looked through for being one number all over."""


class Buffers:
    """The kernel's buffers, made as they are asked for: inputs x0, x1, ..., outputs y0, y1, ..."""

    def __init__(
        self, axes: Axes, constants: Mapping[str, Array], views: Mapping[str, View]
    ) -> None:
        self.axes = axes
        self.constants = constants
        self.views = views
        self.by_value: dict[str, Buf] = {}

    def load(self, value: Value, index: tuple[Any, ...], pad: float | None) -> Tile:
        """A value that lies in memory, at an index; outside its shape it is `pad`."""
        uniform = self._uniform(value.name)
        if uniform is not None and pad is None:
            return Const(uniform, value.dtype)
        buf, place = self.place(value, index, "x")
        outside = [
            dim
            for dim, (part, extent) in enumerate(zip(index, value.dims, strict=True))
            if isinstance(part, Affine) and not self.axes.within(part, extent)
        ]
        if not outside:
            return Load(buf.name, place)
        if pad is None:
            shown = ", ".join(map(str, index))
            raise NotLowered(f"%{value.name}: index [{shown}] leaves shape {list(value.dims)}")
        tile: Tile = Load(buf.name, place, pad)
        # Outside a part of a buffer lies another part, which the load would not see as padding.
        for dim in outside:
            if buf.shape[dim] != value.dims[dim]:
                inside = _inside(index[dim], self.number(value.dims[dim]))
                tile = Map("where", (inside, tile, Const(pad, value.dtype)))
        return tile

    def place(
        self, value: Value, index: tuple[Any, ...], letter: str
    ) -> tuple[Buf, tuple[Any, ...]]:
        """The buffer that a value lies in, and where in it the index is; `letter` names a new one.

        NotLowered for an index that is a tile into a part of a larger buffer: it could reach into
        the parts beside it.
        """
        whole = (0,) * value.rank
        view = self.views.get(value.name) or View(value.name, value.dims, whole)
        if symbolic(view.start):  # the kernel is given the place where the part starts
            view = View(value.name, view.shape, whole)
        buf = self.by_value.get(view.buffer)
        if buf is None:
            count = sum(known.name.startswith(letter) for known in self.by_value.values())
            most = self._most(view.buffer, value)
            buf = Buf(f"{letter}{count}", view.shape, value.dtype, most=most)
            self.by_value[view.buffer] = buf
        place = []
        for dim, part in enumerate(index):
            if not isinstance(part, Affine) and view.shape[dim] != value.dims[dim]:
                raise NotLowered(f"%{value.name}: gathered from a part of a larger buffer")
            start = view.start[dim]
            place.append(part + start if start else part)
        return buf, tuple(place)

    def number(self, extent: int) -> Tile:
        """An extent as an i64 scalar: a constant, or read from the numbers of the run."""
        if not isinstance(extent, Sym):
            return Const(extent, "i64")
        name = NUMBER + extent.symbols.name(extent.poly)
        if name not in self.by_value:
            count = sum(known.startswith(NUMBER) for known in self.by_value)
            self.by_value[name] = Buf(f"q{count}", (), "i64")
        return Load(self.by_value[name].name, ())

    def padded(self, tile: Load, outside: list[tuple[Affine, int]], pad: float) -> Load | None:
        """A load with padding; None unless it leaves its buffer exactly where each index of
        `outside` leaves 0..extent-1."""
        shape = next(buf.shape for buf in self.by_value.values() if buf.name == tile.buf)
        for part, extent in outside:
            if not any(p == part and shape[d] == extent for d, p in enumerate(tile.index)):
                return None
        return Load(tile.buf, tile.index, pad)

    def _most(self, name: str, value: Value) -> int | None:
        """The largest element of a constant of unsigned integers: it proves indices made of it."""
        array = self.constants.get(name)
        return None if array is None or kind(value.dtype) != "uint" else int(array.max(initial=0))

    def _uniform(self, name: str) -> float | None:
        """The number that all elements of a constant are."""
        array = self.constants.get(name)
        if array is None or not 0 < array.size <= MOST_UNIFORM:
            return None
        rows = np.ascontiguousarray(array).reshape(-1).view(np.uint8).reshape(array.size, -1)
        return array.flat[0].item() if bool(np.all(rows == rows[0])) else None


def _inside(index: Affine, extent: Tile) -> Tile:
    """Whether an index lies in 0..extent-1."""
    at = position(index)
    above = Map("le", (Const(0, "i64"), at))
    return Map("and", (above, Map("lt", (at, extent))))
