"""A tile program as the text of one LLVM function.

`i32 @name(ptr buffers..., i64 symbols..., ptr %scratch)`; it returns 1 where a checked index lay
outside its buffer, else 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from rooftile.codegen.llvm.normal import normalised
from rooftile.codegen.llvm.reducer import Reducer
from rooftile.codegen.llvm.sink import Memory, Scratch, Sink
from rooftile.codegen.llvm.state import Local, Span, State
from rooftile.core.affine import Affine, affine
from rooftile.core.dtype import itemsize
from rooftile.core.errors import NotLowered
from rooftile.ir.tile import (
    Axis,
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
from rooftile.native.target import Target


@dataclass(frozen=True)
class KernelText:
    """LLVM text of one kernel, the function's name, and the scratch bytes it needs."""

    text: str
    symbol: str
    scratch_bytes: int
    symbols: tuple[str, ...] = ()


def emit(kernel: Kernel, target: Target, hints: Hints | None = None) -> KernelText:
    """The LLVM text of a kernel; NotLowered where it has no form for this target."""
    return _Emitter(normalised(kernel), target, hints or Hints()).run()


class _Emitter:
    def __init__(self, kernel: Kernel, target: Target, hints: Hints) -> None:
        self.kernel = kernel
        self.state = State(kernel)
        self.reducer = Reducer(self.state, hints.unroll, target.vector_bytes)
        self.sink = Sink(self.state, self.reducer, dict(hints.register_tile), target.registers)
        self.kept: frozenset[str] = frozenset()

    def run(self) -> KernelText:
        state = self.state
        self._define(self.kernel.body)
        self.kept = stored_lets(self.kernel, state.scope.dims)
        for axis in self.kernel.whole:
            if not isinstance(axis.extent, int):
                raise NotLowered(f"{self.kernel.name}: axis {axis.name} is symbolic and whole")
            state.spans[axis.name] = Span(Affine(), axis.extent)
        starts = []
        for buf in self.kernel.bufs:
            if buf.space == "scratch":
                offset = state.allocate(
                    buf.name, math.prod(physical_shape(buf)) * itemsize(buf.dtype)
                )
                starts.append(f"  %{buf.name} = getelementptr i8, ptr %scratch, i64 {offset}")
        self._grid(0)
        return self._finish(starts)

    def _finish(self, starts: list[str]) -> KernelText:
        state = self.state
        memory = [buf for buf in self.kernel.bufs if buf.space == "memory"]
        symbols = sorted({name for axis in self.kernel.axes.values() for name in _names(axis)})
        arguments = [f"ptr %{buf.name}" for buf in memory]
        arguments += [f"i64 %{name}" for name in symbols] + ["ptr %scratch"]
        result = ["  ret i32 0"]
        if state.checks:
            starts += ["  %fail = alloca i1", "  store i1 false, ptr %fail"]
            result = ["  %failed = load i1, ptr %fail", "  %code = zext i1 %failed to i32"]
            result.append("  ret i32 %code")
        lines = [
            f"define i32 @{self.kernel.name}({', '.join(arguments)}) {{",
            "entry:",
            *starts,
            *state.writer.scopes[0].lines,
            *result,
            "}",
            *sorted(state.writer.declarations),
        ]
        text = "\n".join(lines) + "\n"
        return KernelText(text, self.kernel.name, state.scratch_bytes, tuple(symbols))

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
        load = Load(stmt.buf, stmt.index)
        self.sink(stmt.expr, Memory(load, self.state.scope.dims(load)))

    def _keep(self, name: str, tile: Tile) -> None:
        """Compute a tile into scratch memory and let `name` mean it from here on."""
        state = self.state
        dims = list(state.scope.dims(tile))
        vector = self.sink.vector_axis(tile, dims, None)
        if vector:
            dims = [axis for axis in dims if axis != vector] + [vector]
        dtype = state.scope.dtype(tile)
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
        offset = state.allocate(name, stride)
        bases = tuple(state.spans[axis].base for axis in dims)
        local = Local(tuple(dims), tuple(reversed(strides)), offset, dtype, bases)
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
            for carry in stmt.carry:
                self._hand_on(carry, stmt.carry)

        self._tiles(stmt.axis, body)
        state.forget()

    def _hand_on(self, carry: Carry, all_carries: tuple[Carry, ...]) -> None:
        """Store a carry's next value over the present one, through a copy where it reads itself
        elsewhere."""
        state = self.state
        target = Scratch(carry.name, state.locals[carry.name].dims)
        if _reads_renamed(carry.next, carry.name, state):
            copy = f"{carry.name}.next"
            state.scope.tiles[copy] = state.scope.tiles[carry.name]
            self._keep(copy, carry.next)
            self.sink(Ref(copy), target)
        else:
            self.sink(carry.next, target)

    # -- axes

    def _tiles(self, axis: Axis, body: Callable[[], None]) -> None:
        """Run `body` for every tile of an axis, in order."""
        size = 1 if axis.tile == "point" else axis.tile
        assert isinstance(size, int), f"{axis.name}: a loop needs a tile size"
        state = self.state
        if axis.within:
            parent = state.spans[axis.within]
            self._static_tiles(axis.name, parent.base, parent.size, size, body)
        elif isinstance(axis.extent, int):
            self._static_tiles(axis.name, Affine(), axis.extent, size, body)
        else:
            self._symbolic_tiles(axis.name, axis.extent, size, body)

    def _static_tiles(
        self, name: str, base: Affine, extent: int, size: int, body: Callable[[], None]
    ) -> None:
        state = self.state
        full, rest = divmod(extent, size)

        def at(counter: Affine, _: list[str]) -> list[str]:
            with state.spanning(**{name: Span(base + counter * size, size)}):
                body()
            return []

        state.loop(0, full, at)
        if rest:
            with state.spanning(**{name: Span(base + full * size, rest)}):
                body()

    def _symbolic_tiles(
        self, name: str, extent: Affine, size: int, body: Callable[[], None]
    ) -> None:
        """Full tiles in a loop, then pieces of halving sizes: every tile has a static size."""
        state, writer = self.state, self.state.writer
        total = writer.integer(extent.substitute({n: f"%{n}" for n in extent.names}))
        full = writer.op(f"sdiv i64 {total}, {size}")

        def at(counter: Affine, _: list[str]) -> list[str]:
            with state.spanning(**{name: Span(counter * size, size)}):
                body()
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
                with state.spanning(**{name: Span(affine(here), piece)}):
                    body()
                state.memo.pop()

            writer.when(fits, once)
            moved = writer.op(f"add nsw i64 {position}, {piece}")
            position = writer.op(f"select i1 {fits}, i64 {moved}, i64 {position}")
            piece //= 2


def _names(axis: Axis) -> tuple[str, ...]:
    return axis.extent.names if isinstance(axis.extent, Affine) else ()


def _reads_renamed(tile: Tile, name: str, state: State) -> bool:
    for part in subtiles(tile):
        if isinstance(part, Rename) and any(
            isinstance(inner, Ref) and inner.name == name for inner in subtiles(part)
        ):
            return True
        if isinstance(part, Ref) and part.name in state.lets:
            return _reads_renamed(state.lets[part.name], name, state)
    return False
