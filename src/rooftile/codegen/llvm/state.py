"""Where the generated code stands: the tile of each axis, memory of tiles, values in registers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from rooftile.codegen.llvm.bounds import Guard, Room
from rooftile.codegen.llvm.values import Val
from rooftile.codegen.llvm.writer import Writer
from rooftile.core.affine import Affine, Dim, affine
from rooftile.core.dtype import DType, itemsize
from rooftile.ir.tile import (
    Buf,
    Cast,
    Const,
    Dot,
    Iota,
    Iterate,
    Kernel,
    Last,
    Load,
    Map,
    Reduce,
    Ref,
    Rename,
    Scope,
    Tile,
    children,
)
from rooftile.ir.tile.layout import PhysicalDim, physical_dims
from rooftile.ir.tile.query import halo_of
from rooftile.ir.tile.ranges import Range
from rooftile.native.target import Target


@dataclass(frozen=True)
class Span:
    """The part of an axis that is being computed: `base` (affine in loop counters), `size`."""

    base: Affine
    size: int


@dataclass
class Point:
    """Offsets within the spans, and how many `lanes` of a vector of `width` count."""

    offsets: Mapping[str, int] = field(default_factory=dict)
    width: int = 0
    lanes: int = 0

    def at(self, offsets: Mapping[str, int]) -> Point:
        """The same lanes with other offsets beside its own."""
        return Point({**self.offsets, **offsets}, self.width, self.lanes)


@dataclass(frozen=True)
class Local:
    """A tile kept in the kernel's scratch memory, relative to the spans it was made at."""

    dims: tuple[str, ...]
    strides: tuple[int, ...]
    room: Room
    dtype: DType
    base: tuple[Affine, ...]


Place = tuple[tuple[tuple[str, int], ...], int]
"""A byte offset: terms in loop counters, and a constant."""


class State:
    """The mutable state of one kernel's generation."""

    def __init__(self, kernel: Kernel, target: Target, checked: bool = False) -> None:
        """`checked`: accesses are held against their bounds."""
        self.kernel = kernel
        self.guard = Guard(kernel.name) if checked else None
        self.writer = Writer(target, checked)
        self.scope = Scope(kernel)
        self.bufs = {buf.name: buf for buf in kernel.bufs}
        self.spans: dict[str, Span] = {}
        self.lets: dict[str, Tile] = {}
        self.locals: dict[str, Local] = {}
        self.scratch: dict[str, tuple[int, int]] = {}
        self.scratch_bytes = 0
        self.vector_axis: str | None = None
        self.memo: list[dict[object, Val]] = [{}]
        self.checks = False
        self.inside: set[tuple[int, int]] = set()
        """(load, dim) pairs that the loops around keep inside the buffer."""
        self.last: Range | None = None
        """What Last can be in the Iterate around."""
        self._free: dict[int, tuple[Tile, frozenset[str]]] = {}
        self._physical: dict[str, tuple[PhysicalDim, ...]] = {}
        self._linear: dict[int, tuple[Load, Affine | None]] = {}

    # -- what an expression depends on

    def free(self, tile: Tile) -> frozenset[str]:
        """The axes on whose position the value of `tile` depends."""
        known = self._free.get(id(tile))
        if known is None or isinstance(tile, Ref):
            known = (tile, self._find_free(tile))
            self._free[id(tile)] = known
        return known[1]

    def _find_free(self, tile: Tile) -> frozenset[str]:
        if isinstance(tile, Ref):
            if tile.name in self.locals:
                return frozenset(self.locals[tile.name].dims)
            return self.free(self.lets[tile.name])
        if isinstance(tile, Load):
            parts = [
                frozenset(p.names) if isinstance(p, Affine) else self.free(p) for p in tile.index
            ]
            return frozenset().union(*parts)
        if isinstance(tile, Iota):
            return frozenset((tile.axis,))
        if isinstance(tile, Map):
            return frozenset().union(*(self.free(arg) for arg in tile.args))
        if isinstance(tile, Cast):
            return self.free(tile.x)
        if isinstance(tile, Reduce):
            return self.free(tile.x) - {tile.axis}
        if isinstance(tile, Dot):
            acc = self.free(tile.acc) if tile.acc is not None else frozenset()
            return (self.free(tile.a) | self.free(tile.b)) - set(tile.over) | acc
        if isinstance(tile, Rename):
            return frozenset(tile.new if a == tile.old else a for a in self.free(tile.x))
        if isinstance(tile, Iterate):
            return frozenset().union(*map(self.free, children(tile)))
        assert isinstance(tile, (Const, Last))
        return frozenset()

    # -- positions

    @contextmanager
    def spanning(self, **spans: Span) -> Iterator[None]:
        """Let axes stand at other spans for a while."""
        before = {name: self.spans.get(name) for name in spans}
        self.spans.update(spans)
        yield
        for name, span in before.items():
            if span is None:
                del self.spans[name]
            else:
                self.spans[name] = span

    def position(self, axis: str, point: Point) -> Affine:
        """Where the point stands along an axis (its first lane, along the vector axis)."""
        return self.spans[axis].base + point.offsets.get(axis, 0)

    def key(self, tile: Tile, point: Point) -> tuple[object, ...]:
        """What tells two values of `tile` apart."""
        free = self.free(tile)
        where = tuple(
            (axis, span.base.terms, span.base.const + point.offsets.get(axis, 0))
            for axis in sorted(free)
            for span in (self.spans[axis],)
        )
        vector = self.vector_axis in free
        return (id(tile), where, self.vector_axis, (point.width, point.lanes) if vector else 0)

    def remembered(self, key: object) -> Val | None:
        """A value computed before, in a scope that dominates this one."""
        for memo in reversed(self.memo):
            if key in memo:
                return memo[key]
        return None

    def forget(self) -> None:
        """Drop all remembered values: memory has changed."""
        for memo in self.memo:
            memo.clear()

    def loop(
        self,
        start: int | str,
        stop: int | str,
        body: Callable[[Affine, list[str]], list[str]],
        carried: Sequence[tuple[str, str]] = (),
    ) -> list[str]:
        """Writer.loop, with the values of the body remembered no longer than the body."""

        def scoped(counter: Affine, values: list[str]) -> list[str]:
            self.memo.append({})
            after = body(counter, values)
            self.memo.pop()
            return after

        return self.writer.loop(start, stop, scoped, carried)

    # -- addresses

    def parts(self, buf: Buf) -> tuple[PhysicalDim, ...]:
        """The physical dims of a buffer, outermost first."""
        known = self._physical.get(buf.name)
        if known is None:
            known = self._physical[buf.name] = physical_dims(buf)
        return known

    def room(self, name: str) -> Room:
        """The memory of a buffer."""
        buf = self.bufs[name]
        shape = tuple(part.count for part in self.parts(buf))
        return Room(name, f"%{name}", shape, itemsize(buf.dtype))

    def linear(self, load: Load) -> Affine | None:
        """The byte offset of a load as affine in axes; None where its layout has blocks or an
        index is a tile."""
        known = self._linear.get(id(load))
        if known is None:
            known = (load, self._find_linear(load))
            self._linear[id(load)] = known
        return known[1]

    def _find_linear(self, load: Load) -> Affine | None:
        buf = self.bufs[load.buf]
        total = Affine()
        for part in self.parts(buf):
            index = load.index[part.dim]
            if part.part != "all" or part.factors or not isinstance(index, Affine):
                return None
            total = total + (index + halo_of(buf, part.dim)[0]) * part.stride
        return total * itemsize(buf.dtype)

    def place(self, load: Load, point: Point, gathered: Mapping[int, str] | None = None) -> Place:
        """The byte offset of a load's element at a point. `gathered` names the values of those
        parts of its index that are tiles, by dim.
        """
        linear = self.linear(load)
        if linear is not None:
            return self.offset(linear, point)
        buf = self.bufs[load.buf]
        total = Affine()
        for part in self.parts(buf):
            index = load.index[part.dim]
            if isinstance(index, Affine):
                here = Affine(*self.offset(index, point))
            else:
                assert gathered is not None
                here = affine(gathered[part.dim])
            if part.part == "all":
                here = here + halo_of(buf, part.dim)[0]
            else:
                here = self._split(here, part)
            if part.factors:
                here = self._scaled(here, part.factors)
            total = total + here * (part.stride * itemsize(buf.dtype))
        return total.terms, total.const

    def _split(self, value: Affine, part: PhysicalDim) -> Affine:
        """A position's block or its place in the block; at run time where it must be."""
        block = part.block
        if all(coef % block == 0 for _, coef in value.terms):
            if part.part == "mod":
                return affine(value.const % block)
            return Affine(tuple((n, c // block) for n, c in value.terms), value.const // block)
        word = "udiv" if part.part == "div" else "urem"
        name = self.writer.integer(value)
        return affine(self.writer.hoisted(f"{word} i64 {name}, {block}", [name]))

    def _scaled(self, value: Affine, factors: tuple[Affine, ...]) -> Affine:
        """A position times the symbolic extents inside it, as one run-time number."""
        name = self.writer.integer(value)
        if name == "0":
            return Affine()
        for extent in factors:
            factor = self.extent(extent)
            name = self.writer.hoisted(f"mul nsw i64 {name}, {factor}", [name, factor])
        return affine(name)

    def operand(self, extent: Dim) -> Affine:
        """An extent in terms of the function's arguments."""
        value = affine(extent)
        return value.substitute({name: f"%{name}" for name in value.names})

    def extent(self, extent: Dim) -> str:
        """An extent as an i64 operand; symbols are arguments of the function."""
        return self.writer.integer(self.operand(extent))

    def local_place(self, local: Local, point: Point) -> Place:
        """The byte offset of a local tile's element in scratch memory."""
        total = Affine((), local.room.start)
        for axis, stride, base in zip(local.dims, local.strides, local.base, strict=True):
            total = total + (self.position(axis, point) - base) * stride
        return total.terms, total.const

    def offset(self, linear: Affine, point: Point) -> Place:
        terms: dict[str, int] = {}
        const = linear.const
        for axis, coef in linear.terms:
            base = self.spans[axis].base
            const += coef * (base.const + point.offsets.get(axis, 0))
            for name, inner in base.terms:
                terms[name] = terms.get(name, 0) + coef * inner
        return tuple(sorted((n, c) for n, c in terms.items() if c)), const

    def vector_stride(self, load: Load) -> int | None:
        """Bytes between neighbours along the vector axis, as long as they share a block of the
        buffer's layout; None where no one number says it."""
        axis = self.vector_axis or ""
        linear = self.linear(load)
        if linear is not None:
            return linear.coef(axis)
        buf = self.bufs[load.buf]
        total = 0
        for part in self.parts(buf):
            index = load.index[part.dim]
            if not isinstance(index, Affine):
                if axis in self.free(index):
                    return None
                continue
            if part.factors and index.coef(axis):
                return None
            if part.part != "div":
                total += index.coef(axis) * part.stride
        return total * itemsize(buf.dtype)

    def stride_at(self, load: Load, point: Point) -> int | None:
        """Bytes between the lanes of a point; None where no one number says it."""
        stride = self.vector_stride(load)
        if stride is None or self.linear(load) is not None:
            return stride
        for part in self.parts(self.bufs[load.buf]):
            index = load.index[part.dim]
            if part.part != "mod" or not isinstance(index, Affine):
                continue
            reach = index.coef(self.vector_axis or "") * (max(point.lanes, 1) - 1)
            terms, const = self.offset(index, point)
            aligned = all(coef % part.block == 0 for _, coef in terms)
            if reach and not (aligned and 0 <= const % part.block + reach < part.block):
                return None
        return stride

    def allocate(self, name: str, nbytes: int) -> int:
        """Bytes of scratch memory, 64-byte aligned; the same name gets the same place as long as
        that is large enough."""
        if nbytes > self.scratch.get(name, (0, -1))[1]:
            self.scratch[name] = (self.scratch_bytes, nbytes)
            self.scratch_bytes += -(-nbytes // 64) * 64
        return self.scratch[name][0]
