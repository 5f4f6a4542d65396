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
from rooftile.ir.tile import Axis, Dot, Hints, Kernel, Load, Reduce, expressions, stores, subtiles
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
        grid = [
            (self._tiles(axis), -place, axis)
            for place, axis in enumerate(self.kernel.grid)
            if (isinstance(axis.extent, int) or axis.name in least)
            and axis.within is None
            and refusal(self.kernel, axis.name) is None
        ]
        count, _, best = max(grid, default=(1, 0, None))
        if best is not None and best.name in least:
            return Divided(self.kernel, best.name)  # how much work it is, a run knows
        if self.seconds < LEAST_S:
            return Divided(self.kernel)
        pieces = int(self.seconds / PIECE_S)
        pieces = max(self.threads, min(pieces, PIECES * self.threads))
        if count >= min(pieces, 2 * self.threads):
            assert best is not None
            return Divided(self.kernel, best.name)
        cuts = [(*self._again(axis.name, cut), cut, axis) for axis, cut in self._cuts(pieces)]
        for again, _, cut, axis in sorted(cuts, key=lambda item: item[:2]):
            if again <= READ_AGAIN and self._tiles(_in(cut, axis.name)) > count:
                return Divided(cut, axis.name)
        return Divided(self.kernel, best.name if best is not None and count > 1 else None)

    def _tiles(self, axis: Axis) -> int:
        size = 1 if axis.tile == "point" else axis.tile
        return -(-bind(axis.extent, self.symbols) // size) if isinstance(size, int) else 1

    def _cuts(self, pieces: int) -> Iterator[tuple[Axis, Kernel]]:
        """The kernel with one axis or another in about so many pieces."""
        for axis in self.kernel.grid:
            if isinstance(axis.tile, int) and isinstance(axis.extent, int) and axis.within is None:
                size = self._size(axis, pieces)
                finer = [replace(a, tile=size) if a == axis else a for a in self.kernel.grid]
                if size < axis.tile and refusal(self.kernel, axis.name) is None:
                    yield axis, replace(self.kernel, grid=tuple(finer))
        for axis in self.kernel.whole:
            if not isinstance(axis.extent, int) or refusal(self.kernel, axis.name) is not None:
                continue
            size = self._size(axis, pieces)
            if axis.within is None and size < axis.extent:
                yield axis, to_grid(self.kernel, axis.name, size)

    def _size(self, axis: Axis, pieces: int) -> int:
        """The size of a piece: whole register tiles, or single ones where those are few."""
        assert isinstance(axis.extent, int)
        size = -(-axis.extent // pieces)
        unit = self._unit(axis)
        rounded = -(-size // unit) * unit
        if -(-axis.extent // rounded) >= self.threads:
            return rounded
        return size if unit < self.lanes else axis.extent

    def _unit(self, axis: Axis) -> int:
        """Elements of the register tile along an axis."""
        store = list(stores(self.kernel.body))[-1]
        order = [name for part in store.affine for name in part.names]
        last = store.affine[-1] if store.affine else None
        if last is not None and last.coef(axis.name) == 1:
            return max(dict(self.hints.register_tile).get(axis.name, 0), self.lanes * 4)
        inner = order[order.index(axis.name) + 1 :] if axis.name in order else []
        sizes = [bind(self.kernel.axes[name].extent, self.symbols) for name in inner[:-1]]
        reductions = [
            part
            for tile in expressions(self.kernel.body)
            for part in subtiles(tile)
            if isinstance(part, (Dot, Reduce))
        ]
        if not reductions:
            return 1
        rows = self.machine.registers * 7 // 16
        return max(1, rows // max(1, math.prod(sizes)))

    def _again(self, name: str, cut: Kernel) -> tuple[float, int]:
        """The share of the kernel's time that a cut costs, and the place of its axis."""
        flops = cost(self.kernel, self.symbols).total_flops
        if cost(cut, self.symbols).total_flops > AGAIN * flops:
            return math.inf, 0
        fixed: dict[str, int] = {}
        for tile in expressions(cut.body):
            for part in subtiles(tile):
                if isinstance(part, Load) and not _moves(part, name):
                    buf = cut.buf(part.buf)
                    sizes = [bind(extent, self.symbols) for extent in buf.shape]
                    fixed[part.buf] = math.prod(sizes) * itemsize(buf.dtype)
        nbytes = sum(fixed.values())
        moved = nbytes * (self._tiles(_in(cut, name)) - 1)
        seconds = moved / self.machine.bandwidth[self.machine.level_of(nbytes)]
        order = [axis.name for axis in (*self.kernel.grid, *self.kernel.whole)]
        return seconds / self.seconds, order.index(name)


def _moves(load: Load, name: str) -> bool:
    """Whether what is read may depend on the place along an axis."""
    return any(not isinstance(part, Affine) or part.coef(name) for part in load.index)


def _in(kernel: Kernel, name: str) -> Axis:
    return kernel.axes[name]
