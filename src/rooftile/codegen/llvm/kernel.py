"""A tile program as the text of one LLVM function.

`i32 @name(ptr buffers..., i64 symbols..., ptr %scratch)`, and in front of the scratch `i64 first,
i64 last` where the tiles of one axis of the grid may be computed in parts. It returns 1 where a
checked index lay outside its buffer, else 0. Checked code returns `rooftile.native.bounds.OUTSIDE`,
and stops, before an access outside the memory that it belongs to.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from rooftile.codegen.llvm.axes import FIRST, LAST, AxisLoops, Tiles
from rooftile.codegen.llvm.bounds import Room
from rooftile.codegen.llvm.convert import held_type
from rooftile.codegen.llvm.destination import Memory, Scratch
from rooftile.codegen.llvm.evaluate import FAILED
from rooftile.codegen.llvm.normal import normalised
from rooftile.codegen.llvm.reducer import Reducer
from rooftile.codegen.llvm.scatter import scatter
from rooftile.codegen.llvm.sink import Sink
from rooftile.codegen.llvm.state import Local, Span, State
from rooftile.core.affine import Affine
from rooftile.core.dtype import itemsize
from rooftile.core.errors import NotLowered
from rooftile.ir.tile import (
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
        self.state = State(kernel, target, checked)
        self.reducer = Reducer(self.state, hints.unroll, target.vector_bytes)
        self.sink = Sink(self.state, self.reducer, dict(hints.register_tile), target.registers)
        self.axes = AxisLoops(self.state, dict(hints.least), split)
        self.kept: frozenset[str] = frozenset()

    def run(self) -> KernelText:
        state = self.state
        self._define(self.kernel.body)
        self.kept = stored_lets(self.kernel, state.scope.dims)
        for axis in self.kernel.whole:
            root = lineage(axis, self.kernel.axes)[-1]
            if root.tile != "whole":
                self.axes.followers.setdefault(root.name, []).append(axis.name)
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
        arguments += [f"i64 {FIRST}", f"i64 {LAST}"] if self.axes.split else []
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
        tiles = self.axes.split_tiles()
        return KernelText(text, self.kernel.name, state.scratch_bytes, symbols, tiles)

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
            self.axes.each(self.kernel.grid[depth], lambda: self._grid(depth + 1))

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
            if len(strides) < len(dims) and stride % 4096 == 0:
                stride += 64  # rows a page apart would share the few places of one cache set
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

        self.axes.each(stmt.axis, body)
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
