"""A tile program as the text of one LLVM function.

`i32 @name(ptr buffers..., i64 symbols..., ptr %scratch)`, and in front of the scratch `i64 first,
i64 last` where the tiles of one axis of the grid may be computed in parts. It returns 1 where a
checked index lay outside its buffer, else 0. Checked code returns `rooftile.native.bounds.OUTSIDE`,
and stops, before an access outside the memory that it belongs to.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from rooftile.codegen.llvm.bounds import Room
from rooftile.codegen.llvm.convert import held_type
from rooftile.codegen.llvm.destination import Memory, Scratch
from rooftile.codegen.llvm.evaluate import FAILED
from rooftile.codegen.llvm.normal import normalised
from rooftile.codegen.llvm.padding import Interior, interior
from rooftile.codegen.llvm.reducer import Reducer
from rooftile.codegen.llvm.scatter import scatter
from rooftile.codegen.llvm.sink import Sink
from rooftile.codegen.llvm.state import Local, Span, State
from rooftile.core.affine import Affine, Dim, affine
from rooftile.core.dtype import itemsize
from rooftile.core.errors import NotLowered
from rooftile.ir.tile import (
    Axis,
    Buf,
    Carry,
    For,
    Hints,
    Kernel,
    Let,
    Load,
    Ref,
    Rename,
    Stmt,
    Store,
    Tile,
    subtiles,
)
from rooftile.ir.tile.layout import physical_shape
from rooftile.ir.tile.materialise import stored_lets
from rooftile.ir.tile.query import lineage
from rooftile.ir.tile.query import symbols as symbols_of
from rooftile.native.bounds import checks_bounds
from rooftile.native.target import Target

FIRST, LAST = "%tiles.first", "%tiles.last"
"""The range of tiles that a call computes."""


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


@dataclass(frozen=True)
class KernelText:
    """LLVM text of one kernel, the function's name, and the scratch bytes it needs. `tiles` are
    those that a call computes a range of."""

    text: str
    symbol: str
    scratch_bytes: int
    symbols: tuple[str, ...] = ()
    tiles: Tiles | None = None


def emit(
    kernel: Kernel,
    target: Target,
    hints: Hints | None = None,
    checked: bool | None = None,
    split: str | None = None,
) -> KernelText:
    """The LLVM text of a kernel; NotLowered where it has no form for this target.

    `checked`: whether accesses are held against their bounds, as ROOFTILE_BOUNDS says where None.
    `split`: the axis of the grid of which a call computes a range of tiles.
    """
    checked = checks_bounds() if checked is None else checked
    return _Emitter(normalised(kernel), target, hints or Hints(), checked, split).run()


class _Emitter:
    def __init__(
        self, kernel: Kernel, target: Target, hints: Hints, checked: bool, split: str | None
    ) -> None:
        self.kernel = kernel
        self.split = split
        self.state = State(kernel, target, checked)
        self.reducer = Reducer(self.state, hints.unroll, target.vector_bytes)
        self.sink = Sink(self.state, self.reducer, dict(hints.register_tile), target.registers)
        self.least = dict(hints.least)
        self.kept: frozenset[str] = frozenset()
        self.followers: dict[str, list[str]] = {}
        """Whole axes that cover the tile of another axis, by that axis."""

    def run(self) -> KernelText:
        state = self.state
        self._define(self.kernel.body)
        self.kept = stored_lets(self.kernel, state.scope.dims)
        for axis in self.kernel.whole:
            root = lineage(axis, self.kernel.axes)[-1]
            if root.tile != "whole":
                self.followers.setdefault(root.name, []).append(axis.name)
            elif isinstance(axis.extent, int):
                state.spans[axis.name] = Span(Affine(), axis.extent)
            else:
                raise NotLowered(f"{self.kernel.name}: axis {axis.name} is symbolic and whole")
        starts = [self._scratch(buf) for buf in self.kernel.bufs if buf.space == "scratch"]
        self._grid(0)
        return self._finish(starts)

    def _scratch(self, buf: Buf) -> str:
        """The line that gives a scratch buffer its place."""
        if any(not isinstance(extent, int) for extent in buf.shape):
            raise NotLowered(f"{self.kernel.name}: scratch buffer {buf.name} is symbolic")
        nbytes = math.prod(physical_shape(buf)) * itemsize(buf.dtype)
        offset = self.state.allocate(buf.name, nbytes)
        return f"  %{buf.name} = getelementptr i8, ptr %scratch, i64 {offset}"

    def _finish(self, starts: list[str]) -> KernelText:
        state = self.state
        memory = [buf for buf in self.kernel.bufs if buf.space == "memory"]
        symbols = symbols_of(self.kernel)
        arguments = [f"ptr %{buf.name}" for buf in memory]
        arguments += [f"i64 %{name}" for name in symbols]
        arguments += [f"i64 {FIRST}", f"i64 {LAST}"] if self.split else []
        arguments.append("ptr %scratch")
        result = ["  ret i32 0"]
        if state.checks:
            starts += [f"  {FAILED} = alloca i16", f"  store i16 0, ptr {FAILED}"]
            result = [f"  %failed.code = load i8, ptr {FAILED}"]
            result += ["  %failed.any = zext i8 %failed.code to i32", "  ret i32 %failed.any"]
        lines = [
            f"define i32 @{self.kernel.name}({', '.join(arguments)}) {{",
            "kernel.entry:",
            *starts,
            *state.writer.scopes[0].lines,
            *result,
            "}",
            *sorted(state.writer.declarations),
            *(state.guard.module() if state.guard else ()),
        ]
        text = "\n".join(lines) + "\n"
        tiles = self._split_tiles() if self.split else None
        return KernelText(text, self.kernel.name, state.scratch_bytes, symbols, tiles)

    def _split_tiles(self) -> Tiles:
        axis = next(axis for axis in self.kernel.grid if axis.name == self.split)
        size = axis.tile if isinstance(axis.tile, int) else 1
        least = size if isinstance(axis.extent, int) else min(self.least[axis.name], size)
        return Tiles(axis.extent, size, least)

    def _define(self, body: tuple[Stmt, ...]) -> None:
        """Dims and dtypes of all named tiles."""
        for stmt in body:
            if isinstance(stmt, Let):
                self.state.scope.define(stmt.name, stmt.expr)
            elif isinstance(stmt, For):
                for carry in stmt.carry:
                    self.state.scope.define(carry.name, carry.init)
                self._define(stmt.body)

    # -- statements

    def _grid(self, depth: int) -> None:
        if depth == len(self.kernel.grid):
            self._block(self.kernel.body)
        else:
            self._tiles(self.kernel.grid[depth], lambda: self._grid(depth + 1))

    def _block(self, body: tuple[Stmt, ...]) -> None:
        state = self.state
        for stmt in body:
            if isinstance(stmt, Let):
                if stmt.name in self.kept:
                    self._keep(stmt.name, stmt.expr)
                else:
                    state.lets[stmt.name] = stmt.expr
            elif isinstance(stmt, Store):
                self._store(stmt)
            else:
                self._for(stmt)

    def _store(self, stmt: Store) -> None:
        if stmt.scatters:
            scatter(stmt, self.state, self.reducer.evaluator)
            return
        load, tile = Load(stmt.buf, stmt.index), stmt.expr
        to = Memory(load, self.state.scope.dims(load))
        if _reads_elsewhere(tile, load) or self.sink.crosses(tile, to):
            # What is stored must not be read again, and a dot is not computed along an axis that
            # suits its store alone: all is computed first, then moved.
            copy = f"{stmt.buf}.new"
            self.state.scope.define(copy, tile)
            self._keep(copy, tile)
            tile = Ref(copy)
        self.sink(tile, to)

    def _keep(self, name: str, tile: Tile) -> None:
        """Compute a tile into scratch memory and let `name` mean it from here on."""
        state = self.state
        dims = list(state.scope.dims(tile))
        vector = self.sink.vector_axis(tile, dims, None)
        if vector:
            dims = [axis for axis in dims if axis != vector] + [vector]
        dtype = held_type(state.scope.dtype(tile))
        strides: list[int] = []
        stride = itemsize(dtype)
        for axis in reversed(dims):
            strides.append(stride)
            size = self._most(axis)
            if axis == vector:
                size = -(-size // 16) * 16
            stride *= size
            if axis == vector and len(dims) > 1 and stride % 4096 == 0:
                stride += 64
        room = Room(name, "%scratch", (stride,), 1, state.allocate(name, stride))
        bases = tuple(state.spans[axis].base for axis in dims)
        local = Local(tuple(dims), tuple(reversed(strides)), room, dtype, bases)
        state.lets.pop(name, None)
        state.locals[name] = local
        self.sink(tile, Scratch(name, tuple(dims)))

    def _most(self, axis: str) -> int:
        """The largest span that an axis ever has."""
        declared = self.kernel.axes[axis]
        if isinstance(declared.tile, int):
            return declared.tile
        return max(self.state.spans[axis].size, 1)

    def _for(self, stmt: For) -> None:
        state = self.state
        for carry in stmt.carry:
            self._keep(carry.name, carry.init)

        def body() -> None:
            self._block(stmt.body)
            self._hand_on(stmt.carry)

        self._tiles(stmt.axis, body)
        state.forget()

    def _hand_on(self, carries: tuple[Carry, ...]) -> None:
        """Store the next values of carries over the present ones: each when no other still reads
        it, or through a copy."""
        state = self.state
        waiting = list(carries)
        copied: list[Carry] = []
        while waiting:
            free = [c for c in waiting if not any(_reads(o, c, state) for o in waiting if o != c)]
            carry = free[0] if free else waiting[0]
            waiting.remove(carry)
            if free and not _reads_renamed(carry.next, carry.name, state):
                self.sink(carry.next, Scratch(carry.name, state.locals[carry.name].dims))
                continue
            copy = f"{carry.name}.next"
            state.scope.tiles[copy] = state.scope.tiles[carry.name]
            self._keep(copy, carry.next)
            copied.append(carry)
        for carry in copied:
            target = Scratch(carry.name, state.locals[carry.name].dims)
            self.sink(Ref(f"{carry.name}.next"), target)

    # -- axes

    def _tiles(self, axis: Axis, body: Callable[[], None]) -> None:
        """Run `body` for every tile of an axis, in order."""
        room: Dim = axis.extent
        base = Affine()
        if axis.within:
            parent = self.state.spans[axis.within]
            base, room = parent.base, parent.size
        size = {"point": 1, "whole": room}.get(str(axis.tile), axis.tile)
        if not isinstance(size, int):
            raise NotLowered(f"{self.kernel.name}: axis {axis.name} is symbolic and whole")
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
        # Which tiles a call computes is said by their numbers: then they start at the first.
        whole = size == 1 or name == self.split
        inside = None if whole else interior(self.state, name, total)
        if inside is None:
            self._run_of_tiles(name, "0", total, size, body)
        else:
            self._with_borders(name, total, size, inside, body)

    def _with_borders(
        self, name: str, total: str, size: int, inside: Interior, body: Callable[[], None]
    ) -> None:
        """Tiles where nothing that they read lies in the padding; the elements before and behind
        them one by one."""
        state, writer = self.state, self.state.writer
        first, least = str(inside.first), inside.first + min(self.least[name], size)
        wide = writer.op(f"icmp sge i64 {inside.stop}, {least}")
        stop = writer.op(f"select i1 {wide}, i64 {inside.stop}, i64 {first}")

        def middle() -> None:
            state.memo.append({})
            state.inside |= inside.known
            self._run_of_tiles(name, first, stop, size, body)
            state.inside -= inside.known
            state.memo.pop()

        writer.when(wide, middle)
        gap = writer.op(f"sub nsw i64 {stop}, {first}")
        rest = writer.op(f"sub nsw i64 {total}, {gap}")

        def at(counter: Affine, _: list[str]) -> list[str]:
            position = writer.integer(counter)
            before = writer.op(f"icmp slt i64 {position}, {first}")
            behind = writer.integer(counter + gap)
            base = writer.op(f"select i1 {before}, i64 {position}, i64 {behind}")
            self._at(name, affine(base), 1, body)
            return []

        state.loop(0, rest, at)

    def _run_of_tiles(
        self, name: str, first: str, stop: str, size: int, body: Callable[[], None]
    ) -> None:
        """The elements from `first` on up to `stop`, which are no fewer than the least tile."""
        state, writer = self.state, self.state.writer
        small = min(self.least[name], size)
        start = Affine((), int(first))
        room = writer.op(f"sub nsw i64 {stop}, {first}")
        full = "0"

        def at(counter: Affine, _: list[str]) -> list[str]:
            self._at(name, start + counter * size, size, body)
            return []

        split = name == self.split
        begin: int | str = FIRST if split else 0
        if size > small:
            full = writer.op(f"sdiv i64 {room}, {size}")
            state.loop(begin, writer.smaller(LAST, full) if split else full, at)
        done = writer.op(f"mul nsw i64 {full}, {size}")
        left = writer.op(f"sub nsw i64 {room}, {done}")
        rounded = writer.op(f"add nsw i64 {left}, {small - 1}")
        last = writer.op(f"sub nsw i64 {stop}, {small}")

        def behind(counter: Affine, _: list[str]) -> list[str]:
            position = writer.integer(start + counter * small + done)
            inside = writer.op(f"icmp slt i64 {position}, {last}")
            base = writer.op(f"select i1 {inside}, i64 {position}, i64 {last}")
            self._at(name, affine(base), small, body)
            return []

        end = writer.op(f"sdiv i64 {rounded}, {small}")
        if split:  # the small tiles are numbered behind the full ones
            begun = writer.op(f"sub nsw i64 {FIRST}, {full}")
            begin = writer.op(f"call i64 @llvm.smax.i64(i64 {begun}, i64 0)")
            writer.declarations.add("declare i64 @llvm.smax.i64(i64, i64)")
            end = writer.op(f"sub nsw i64 {LAST}, {full}")
        state.loop(begin, end, behind)

    def _symbolic_tiles(
        self, name: str, extent: Affine, size: int, body: Callable[[], None]
    ) -> None:
        """Full tiles in a loop, then pieces of halving sizes: every tile has a static size."""
        state, writer = self.state, self.state.writer
        total = state.extent(extent)
        full = writer.op(f"sdiv i64 {total}, {size}")

        def at(counter: Affine, _: list[str]) -> list[str]:
            self._at(name, counter * size, size, body)
            return []

        state.loop(0, full, at)
        position = writer.op(f"mul nsw i64 {full}, {size}")
        piece = 1 << (size - 1).bit_length() - 1 if size > 1 else 0
        while piece:
            left = writer.op(f"sub nsw i64 {total}, {position}")
            fits = writer.op(f"icmp sge i64 {left}, {piece}")
            here = position

            def once(here: str = here, piece: int = piece) -> None:
                state.memo.append({})
                self._at(name, affine(here), piece, body)
                state.memo.pop()

            writer.when(fits, once)
            moved = writer.op(f"add nsw i64 {position}, {piece}")
            position = writer.op(f"select i1 {fits}, i64 {moved}, i64 {position}")
            piece //= 2


def _reads_elsewhere(tile: Tile, store: Load) -> bool:
    """Whether a stored tile reads its own buffer elsewhere than where it is stored."""
    loads = [part for part in subtiles(tile) if isinstance(part, Load)]
    return any(load.buf == store.buf and load.index != store.index for load in loads)


def _reads(reader: Carry, carry: Carry, state: State) -> bool:
    """Whether the next value of `reader` is made from the present one of `carry`."""
    return _mentions(reader.next, carry.name, state)


def _mentions(tile: Tile, name: str, state: State) -> bool:
    refs = [part.name for part in subtiles(tile) if isinstance(part, Ref)]
    return name in refs or any(
        _mentions(state.lets[ref], name, state) for ref in refs if ref in state.lets
    )


def _reads_renamed(tile: Tile, name: str, state: State) -> bool:
    for part in subtiles(tile):
        if isinstance(part, Rename) and _mentions(part, name, state):
            return True
        if isinstance(part, Ref) and part.name in state.lets:
            inner = state.lets[part.name]
            if _reads_renamed(inner, name, state):
                return True
    return False
