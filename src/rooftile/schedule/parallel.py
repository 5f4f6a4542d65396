"""Which axis of a kernel several threads share, and how it is cut for them.

Tiles of one axis of the grid are computed in any order and on any thread. Where the schedule for
one thread has too few of them, an axis over which nothing is reduced is cut in whole register
tiles, so that each element is computed as one thread would.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from rooftile.core.affine import Affine, bind
from rooftile.core.dtype import itemsize
from rooftile.ir.tile import (
    Axis,
    Dot,
    Hints,
    Kernel,
    Load,
    Reduce,
    Tile,
    expressions,
    stores,
    subtiles,
)
from rooftile.ir.tile.cost import cost
from rooftile.machine.model import Machine
from rooftile.schedule.rewrites import refusal, to_grid

LEAST_S = 20e-6
"""Kernels that one thread computes in less are not shared."""
PIECE_S = 10e-6
"""Expected seconds of a piece, as long as each thread has one and none has more than PIECES."""
PIECES = 4
AGAIN = 1.05
"""How many times the operations of the kernel may be computed for a cut."""
READ_AGAIN = 0.25
"""Share of the kernel's time that reading operands again, for each piece, may take."""
LATE = 0.3
"""Part of a piece that the last thread is late."""
WORTH = 0.9
"""A kernel is shared where the longest share is below this part of the whole."""


@dataclass(frozen=True)
class Divided:
    """A kernel, and the axis of its grid that is shared; None where it stays with one thread."""

    kernel: Kernel
    axis: str | None = None


def divide(
    kernel: Kernel,
    hints: Hints,
    machine: Machine,
    threads: int,
    seconds: float,
    symbols: Mapping[str, int] | None = None,
) -> Divided:
    """Cut a scheduled kernel for `threads` threads; `seconds` is what one needs for it.

    Kernels that scatter or combine what they store stay with one thread.
    """
    if threads < 2 or any(store.scatters or store.combine for store in stores(kernel.body)):
        return Divided(kernel)
    return _Divider(kernel, hints, machine, threads, seconds, symbols or {}).run()


class _Divider:
    def __init__(
        self,
        kernel: Kernel,
        hints: Hints,
        machine: Machine,
        threads: int,
        seconds: float,
        symbols: Mapping[str, int],
    ) -> None:
        self.kernel = kernel
        self.hints = hints
        self.machine = machine
        self.threads = threads
        self.seconds = seconds
        self.symbols = symbols
        self.lanes = machine.vector_bytes // 4

    def run(self) -> Divided:
        least = dict(self.hints.least)
        opened = [axis for axis in self.kernel.grid if axis.name in least and self._is_free(axis)]
        if self.seconds < LEAST_S and not opened:  # how much work an open axis is, a run knows
            return Divided(self.kernel)
        pieces = int(self.seconds / PIECE_S)
        pieces = max(self.threads, min(pieces, PIECES * self.threads))
        large = self.seconds > 0 and self.seconds >= LEAST_S
        options = [*self._as_they_are(), *self._cuts(pieces)] if large else []
        score, _, found = min(options, key=lambda item: item[:2], default=(math.inf, 0, None))
        if found is None or score >= WORTH * self.threads:
            score, found = math.inf, Divided(self.kernel)
        if opened:
            axis = max(opened, key=self._tiles_at_hand)
            if self._open_share(axis, least[axis.name]) <= score:
                return Divided(self.kernel, axis.name)
        return found

    def _open_share(self, axis: Axis, least: int) -> float:
        """The longest share of a thread at the extent at hand, in the tiles as they are."""
        extent, size = max(1, bind(axis.extent, self.symbols)), axis.tile
        if not isinstance(size, int) or size <= least:
            count = -(-extent // least)
            return -(-count // self.threads) * self.threads / count + self._late(count)
        full, left = divmod(extent, size)
        tiles = [size] * full + [least] * -(-left // least)
        count = -(-len(tiles) // self.threads)
        shares = [sum(tiles[start : start + count]) for start in range(0, len(tiles), count)]
        return max(shares) * self.threads / extent + self._late(len(tiles))

    def _is_free(self, axis: Axis) -> bool:
        return axis.within is None and refusal(self.kernel, axis.name) is None

    def _tiles_at_hand(self, axis: Axis) -> int:
        return bind(axis.extent, self.symbols) // (axis.tile if isinstance(axis.tile, int) else 1)

    def _as_they_are(self) -> Iterator[tuple[float, int, Divided]]:
        """Each axis of the grid with its tiles; what its longest share is, 1 for an equal one."""
        for place, axis in enumerate(self.kernel.grid):
            if isinstance(axis.extent, int) and self._is_free(axis):
                count = _tiles(axis)
                longest = -(-count // self.threads) * self.threads / count
                yield longest + self._late(count), place, Divided(self.kernel, axis.name)

    def _late(self, count: int) -> float:
        """What waiting for a thread that began late, or lost its core, adds to the longest share:
        less where there are more pieces to take from it."""
        return LATE * self.threads / count

    def _cuts(self, pieces: int) -> Iterator[tuple[float, int, Divided]]:
        """The kernel with one axis or another in about so many pieces, likewise."""
        for place, axis in enumerate((*self.kernel.grid, *self.kernel.whole)):
            if not isinstance(axis.extent, int) or axis.tile == "point" or not self._is_free(axis):
                continue
            most = axis.tile if isinstance(axis.tile, int) else axis.extent
            sizes = [size for size in self._sizes(axis, pieces) if size < most]
            if not sizes or self._computes_again(axis, sizes[0]):
                continue
            again = self._fixed_seconds(axis.name) / self.seconds
            for size in sizes:
                reading = again * (-(-axis.extent // size) - 1)
                if reading <= READ_AGAIN:
                    divided = Divided(self._cut(axis, size), axis.name)
                    yield self._longest(axis, size) + reading, place, divided

    def _cut(self, axis: Axis, size: int) -> Kernel:
        if axis.tile == "whole":
            return to_grid(self.kernel, axis.name, size)
        finer = [replace(a, tile=size) if a == axis else a for a in self.kernel.grid]
        return replace(self.kernel, grid=tuple(finer))

    def _sizes(self, axis: Axis, pieces: int) -> list[int]:
        """Sizes of pieces, the largest first."""
        extent, (unit, along) = bind(axis.extent), self._unit(axis)
        sizes = {-(-extent // count) for count in range(self.threads, pieces + 1)}
        rounded = {-(-size // unit) * unit for size in sizes}
        return sorted(rounded if along else rounded | sizes, reverse=True)

    def _longest(self, axis: Axis, size: int) -> float:
        """The longest share of a thread in pieces of a size, 1 for an equal one."""
        extent, (unit, along) = bind(axis.extent), self._unit(axis)
        rounds = -(-extent // (size * self.threads))
        # The operands of a register tile are read for each, as if it had one more row.
        work, whole = (n if along else n + -(-n // unit) for n in (size, extent))
        return rounds * self.threads * work / whole + self._late(-(-extent // size))

    def _unit(self, axis: Axis) -> tuple[int, bool]:
        """Elements of the register tile along an axis, and whether vectors lie along it."""
        store = list(stores(self.kernel.body))[-1]
        order = [name for part in store.affine for name in part.names]
        if store.affine and store.affine[-1].coef(axis.name) == 1:
            return max(dict(self.hints.register_tile).get(axis.name, 0), self.lanes * 4), True
        if not any(isinstance(part, (Dot, Reduce)) for part in self._parts(self.kernel)):
            return 1, False
        inner = order[order.index(axis.name) + 1 : -1] if axis.name in order else []
        sizes = [bind(self.kernel.axes[name].extent, self.symbols) for name in inner]
        rows = self.machine.registers * 7 // 16
        return max(1, rows // max(1, math.prod(sizes))), False

    def _parts(self, kernel: Kernel) -> Iterator[Tile]:
        return (part for tile in expressions(kernel.body) for part in subtiles(tile))

    def _computes_again(self, axis: Axis, size: int) -> bool:
        """Whether pieces compute more than the whole does."""
        flops = cost(self.kernel, self.symbols).total_flops
        return cost(self._cut(axis, size), self.symbols).total_flops > AGAIN * flops

    def _fixed_seconds(self, name: str) -> float:
        """How long each piece of an axis reads what all pieces read."""
        fixed: dict[str, int] = {}
        for part in self._parts(self.kernel):
            if isinstance(part, Load) and not _moves(part, name):
                buf = self.kernel.buf(part.buf)
                sizes = [bind(extent, self.symbols) for extent in buf.shape]
                fixed[part.buf] = math.prod(sizes) * itemsize(buf.dtype)
        nbytes = sum(fixed.values())
        return nbytes / self.machine.bandwidth[self.machine.level_of(nbytes)]


def _tiles(axis: Axis) -> int:
    """The tiles of an axis of known extent."""
    return -(-bind(axis.extent) // (axis.tile if isinstance(axis.tile, int) else 1))


def _moves(load: Load, name: str) -> bool:
    """Whether what is read may depend on the place along an axis."""
    return any(not isinstance(part, Affine) or part.coef(name) for part in load.index)
