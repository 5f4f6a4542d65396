"""How an axis is run through: the loops over its tiles, each of a size that the code knows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from rooftile.codegen.llvm.padding import Interior, interior
from rooftile.codegen.llvm.state import Span, State
from rooftile.core.affine import Affine, Dim, affine
from rooftile.core.errors import NotLowered
from rooftile.ir.tile import Axis

FIRST, LAST = "%tiles.first", "%tiles.last"
"""The range of tiles that a call computes."""
SMALLER = 8
"""How many times smaller the tiles are that compute what larger ones leave of a reduction: each
size is code of its own."""


@dataclass(frozen=True)
class Tiles:
    """The tiles of an axis: of `size` elements, what is left of `extent` in tiles of `least`."""

    extent: Dim
    size: int
    least: int

    def count(self, extent: int) -> int:
        """How many they are for a value of the extent."""
        full = extent // self.size if self.size > self.least else 0
        return full + (extent - full * self.size + self.least - 1) // self.least


class AxisLoops:
    """Runs a body for each tile of an axis. `least`: extents that open axes are known to reach;
    `split`: the axis of the grid of which a call computes a range of tiles."""

    def __init__(self, state: State, least: Mapping[str, int], split: str | None) -> None:
        self.state = state
        self.least = least
        self.split = split
        self.followers: dict[str, list[str]] = {}
        """Whole axes that cover the tile of another axis, by that axis."""

    def split_tiles(self) -> Tiles | None:
        """The tiles of the axis that is split; None where there is none."""
        if self.split is None:
            return None
        axis = next(axis for axis in self.state.kernel.grid if axis.name == self.split)
        size = axis.tile if isinstance(axis.tile, int) else 1
        least = size if isinstance(axis.extent, int) else min(self.least[axis.name], size)
        return Tiles(axis.extent, size, least)

    def each(self, axis: Axis, body: Callable[[], None]) -> None:
        """Run `body` for every tile of an axis, in order."""
        room: Dim = axis.extent
        base = Affine()
        if axis.within:
            parent = self.state.spans[axis.within]
            base, room = parent.base, parent.size
        size = {"point": 1, "whole": room}.get(str(axis.tile), axis.tile)
        if not isinstance(size, int):
            raise NotLowered(f"{self.state.kernel.name}: axis {axis.name} is symbolic and whole")
        if axis.name == self.split and isinstance(room, int):
            self._some_tiles(axis.name, room, size, body)
        elif isinstance(room, int):
            self._static_tiles(axis.name, base, room, size, body)
        elif axis.name in self.least:
            self._overlapping_tiles(axis.name, room, size, body)
        else:
            self._symbolic_tiles(axis.name, room, size, body)

    def _at(self, name: str, base: Affine, size: int, body: Callable[[], None]) -> None:
        """Run `body` with an axis, and those that cover its tile, at a span."""
        span = Span(base, size)
        names = [name, *self.followers.get(name, ())]
        with self.state.spanning(**dict.fromkeys(names, span)):
            body()

    def _static_tiles(
        self, name: str, base: Affine, extent: int, size: int, body: Callable[[], None]
    ) -> None:
        state = self.state
        full, rest = divmod(extent, size)

        def at(counter: Affine, _: list[str]) -> list[str]:
            self._at(name, base + counter * size, size, body)
            return []

        state.loop(0, full, at)
        if rest:
            self._at(name, base + full * size, rest, body)

    def _some_tiles(self, name: str, extent: int, size: int, body: Callable[[], None]) -> None:
        """The tiles that the caller asks for. The last of all may be smaller."""
        state, writer = self.state, self.state.writer
        full, rest = divmod(extent, size)

        def at(counter: Affine, _: list[str]) -> list[str]:
            [number] = counter.names
            writer.ranges[number] = (0, full - 1)
            self._at(name, counter * size, size, body)
            return []

        def last() -> None:
            state.memo.append({})
            self._at(name, affine(full * size), rest, body)
            state.memo.pop()

        state.loop(FIRST, writer.smaller(LAST, str(full)) if rest else LAST, at)
        if rest:
            writer.when(writer.op(f"icmp sgt i64 {LAST}, {full}"), last)

    def _overlapping_tiles(
        self, name: str, extent: Affine, size: int, body: Callable[[], None]
    ) -> None:
        """Full tiles in a loop, then small ones, of which the last reaches back as far as it must
        to end where the axis ends."""
        total = self.state.extent(extent)
        inside = None if size == 1 else interior(self.state, name, total)
        if inside is None:
            share = (FIRST, LAST) if name == self.split else None
            self._run_of_tiles(name, "0", total, size, body, share)
        else:
            self._with_borders(name, total, size, inside, body)

    def _with_borders(
        self, name: str, total: str, size: int, inside: Interior, body: Callable[[], None]
    ) -> None:
        """Tiles where nothing that they read lies in the padding; the elements before and behind
        them one by one, as if they were a last tile."""
        state, writer = self.state, self.state.writer
        small = min(self.least[name], size)
        first, least = str(inside.first), inside.first + small
        wide = writer.op(f"icmp sge i64 {inside.stop}, {least}")
        stop = writer.op(f"select i1 {wide}, i64 {inside.stop}, i64 {first}")
        gap = writer.op(f"sub nsw i64 {stop}, {first}")
        share = None
        if name == self.split:
            tiles = writer.op(f"add nsw i64 {self._count(gap, size, small)}, 1")
            share = self._share_of(tiles, self._count(total, size, small))

        def middle() -> None:
            state.memo.append({})
            state.inside |= inside.known
            self._run_of_tiles(name, first, stop, size, body, share)
            state.inside -= inside.known
            state.memo.pop()

        writer.when(wide, middle)
        rest = writer.op(f"sub nsw i64 {total}, {gap}")

        def at(counter: Affine, _: list[str]) -> list[str]:
            position = writer.integer(counter)
            before = writer.op(f"icmp slt i64 {position}, {first}")
            behind = writer.integer(counter + gap)
            base = writer.op(f"select i1 {before}, i64 {position}, i64 {behind}")
            self._at(name, affine(base), 1, body)
            return []

        if share is not None:
            is_last = writer.op(f"icmp eq i64 {share[1]}, {tiles}")
            rest = writer.op(f"select i1 {is_last}, i64 {rest}, i64 0")
        state.loop(0, rest, at)

    def _count(self, room: str, size: int, small: int) -> str:
        """What `Tiles.count` says, for elements that a run counts."""
        full, left = self._full_tiles(room, size, small)
        rounded = self.state.writer.op(f"add nsw i64 {left}, {small - 1}")
        behind = self.state.writer.op(f"sdiv i64 {rounded}, {small}")
        return self.state.writer.op(f"add nsw i64 {full}, {behind}")

    def _full_tiles(self, room: str, size: int, small: int) -> tuple[str, str]:
        """How many full tiles there are, and how many elements they leave."""
        if size <= small:
            return "0", room
        writer = self.state.writer
        full = writer.op(f"sdiv i64 {room}, {size}")
        done = writer.op(f"mul nsw i64 {full}, {size}")
        return full, writer.op(f"sub nsw i64 {room}, {done}")

    def _share_of(self, tiles: str, given: str) -> tuple[str, str]:
        """Of these tiles the range that a call computes, which is told its part of `given`."""
        writer = self.state.writer
        first, last = (
            writer.op(f"sdiv i64 {writer.op(f'mul nsw i64 {end}, {tiles}')}, {given}")
            for end in (FIRST, LAST)
        )
        return first, last

    def _run_of_tiles(
        self,
        name: str,
        first: str,
        stop: str,
        size: int,
        body: Callable[[], None],
        share: tuple[str, str] | None = None,
    ) -> None:
        """The elements from `first` on up to `stop`, which are no fewer than the least tile; of
        their tiles those of the `share`, by number."""
        state, writer = self.state, self.state.writer
        small = min(self.least[name], size)
        start = Affine((), int(first))
        room = writer.op(f"sub nsw i64 {stop}, {first}")
        full, left = self._full_tiles(room, size, small)

        def at(counter: Affine, _: list[str]) -> list[str]:
            self._at(name, start + counter * size, size, body)
            return []

        begin: int | str = share[0] if share else 0
        if size > small:
            state.loop(begin, writer.smaller(share[1], full) if share else full, at)
        done = writer.op(f"sub nsw i64 {room}, {left}")
        rounded = writer.op(f"add nsw i64 {left}, {small - 1}")
        last = writer.op(f"sub nsw i64 {stop}, {small}")

        def behind(counter: Affine, _: list[str]) -> list[str]:
            position = writer.integer(start + counter * small + done)
            inside = writer.op(f"icmp slt i64 {position}, {last}")
            base = writer.op(f"select i1 {inside}, i64 {position}, i64 {last}")
            self._at(name, affine(base), small, body)
            return []

        end = writer.op(f"sdiv i64 {rounded}, {small}")
        if share:  # the small tiles are numbered behind the full ones
            begun = writer.op(f"sub nsw i64 {share[0]}, {full}")
            begin = writer.op(f"call i64 @llvm.smax.i64(i64 {begun}, i64 0)")
            writer.declarations.add("declare i64 @llvm.smax.i64(i64, i64)")
            ended = writer.op(f"sub nsw i64 {share[1]}, {full}")
            end = writer.smaller(end, ended)
        state.loop(begin, end, behind)

    def _symbolic_tiles(
        self, name: str, extent: Affine, size: int, body: Callable[[], None]
    ) -> None:
        """Full tiles, then ever smaller ones, each size in a loop: all sizes are static."""
        writer = self.state.writer
        total, done = self.state.extent(extent), "0"
        while True:
            left = writer.op(f"sub nsw i64 {total}, {done}")
            count = writer.op(f"sdiv i64 {left}, {size}")
            self._tiles_from(name, done, count, size, body)
            if size == 1:
                return
            covered = writer.op(f"mul nsw i64 {count}, {size}")
            done = writer.op(f"add nsw i64 {done}, {covered}")
            size = max(1, size // SMALLER)

    def _tiles_from(
        self, name: str, start: str, count: str, size: int, body: Callable[[], None]
    ) -> None:
        begin = affine(0 if start == "0" else start)

        def at(counter: Affine, _: list[str]) -> list[str]:
            self._at(name, begin + counter * size, size, body)
            return []

        self.state.loop(0, count, at)
