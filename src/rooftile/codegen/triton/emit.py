"""A kernel of the tile IR as Triton source text.

Masks come from extents; no mask, lane or register stands in the IR. Each program computes one tile
of the grid.
"""

from __future__ import annotations

import math

from rooftile.codegen.triton.blocks import Blocks
from rooftile.codegen.triton.evaluate import Block, Evaluator
from rooftile.codegen.triton.names import Names
from rooftile.codegen.triton.scalar import bare
from rooftile.codegen.triton.source import TritonSource
from rooftile.codegen.triton.writer import Writer
from rooftile.core.affine import Affine
from rooftile.core.errors import NotLowered
from rooftile.ir.tile.query import symbols, trips
from rooftile.ir.tile.records import (
    Axis,
    Const,
    For,
    Hints,
    Kernel,
    Let,
    Load,
    Ref,
    Stmt,
    Store,
    expressions,
    statements,
    subtiles,
)

UNROLLED_TRIPS = 4
"""Loops of at most so many steps are unrolled."""


def emit(kernel: Kernel, hints: Hints | None = None) -> TritonSource:
    """The Triton module of a verified kernel. NotLowered: scratch buffers, whole symbolic axes, or
    an axis that two Dots group differently.
    """
    return _Emitter(kernel, hints or Hints()).source()


class _Emitter:
    def __init__(self, kernel: Kernel, hints: Hints) -> None:
        for buf in kernel.bufs:
            if buf.space == "scratch":
                raise NotLowered(
                    f"kernel {kernel.name}: buffer {buf.name}: Triton has no explicit scratch; "
                    "schedule without staging"
                )
        self.kernel = kernel
        self.hints = hints
        self.symbols = symbols(kernel)
        known = [kernel.name, *(buf.name for buf in kernel.bufs), *self.symbols, *kernel.axes]
        for stmt in statements(kernel.body):
            known += [stmt.name] if isinstance(stmt, Let) else []
            known += [carry.name for carry in stmt.carry] if isinstance(stmt, For) else []
        self.names = Names(known)
        self.blocks = Blocks(kernel)
        self.writer = Writer(self.names)
        self.masks: dict[str, str] = {}
        self.bases: dict[str, str] = {}
        self.evaluator = Evaluator(self.blocks, self.names, self.writer, self.masks)
        tiles = [sub for top in expressions(kernel.body) for sub in subtiles(top)]
        loads = [tile for tile in tiles if isinstance(tile, Load)]
        self.loaded = {load.buf for load in loads}
        self.gathers = any(not isinstance(part, Affine) for load in loads for part in load.index)

    def source(self) -> TritonSource:
        self.programs()
        for axis in self.kernel.whole:
            self.enter(axis, "0" if axis.within is None else self.bases[axis.within])
        self.block(self.kernel.body)
        args = [self.names[buf.name] for buf in self.kernel.bufs]
        args += [self.evaluator.fault] if self.gathers else []
        args += [self.names[name] for name in self.symbols]
        fixed = ", ".join(f'"{self.names[name]}"' for name in self.symbols)
        jit = f"@triton.jit(do_not_specialize=[{fixed}])" if fixed else "@triton.jit"
        name = self.names[self.kernel.name]
        text = self.writer.module(f"{jit}\ndef {name}({', '.join(args)}):")
        return TritonSource(text, name, tuple(args), self.kernel, self.hints, self.gathers)

    # Axes

    def count(self, axis: Axis) -> str:
        """How many tiles an axis has, as text."""
        if isinstance(axis.extent, int):
            return str(trips(axis, self.kernel.axes))
        tile = self.blocks.tile(axis) if axis.is_dim else 1
        extent = self.names.extent(axis.extent)
        if axis.within is not None:
            return str(-(-self.blocks.tile(self.kernel.axes[axis.within]) // tile))
        return extent if tile == 1 else f"tl.cdiv({extent}, {tile})"

    def programs(self) -> None:
        """The position of this program in the grid."""
        grid = self.kernel.grid
        if not grid:
            return
        pid = self.names.fresh("pid")
        self.writer.line(f"{pid} = tl.program_id(0)")
        if self.hints.swizzle > 1 and len(grid) == 2 and all(axis.is_dim for axis in grid):
            places = self.swizzled(pid)
        else:
            places = self.nested(pid)
        for axis, place in zip(grid, places, strict=True):
            step = self.blocks.tile(axis) if axis.is_dim else 1
            base = place if step == 1 else f"{place} * {step}"
            if axis.within is not None:
                base = f"{self.bases[axis.within]} + {base}"
            self.enter(axis, base)

    def nested(self, pid: str) -> list[str]:
        """Tile numbers when the last axis runs fastest."""
        places = []
        inner: list[str] = []
        for at, axis in reversed(list(enumerate(self.kernel.grid))):
            place = f"{pid} // {_product(inner)}" if inner else pid
            place = f"({place} % {self.count(axis)})" if at else f"({place})"
            places.append(pid if place == f"({pid})" else place)
            inner.insert(0, self.count(axis))
        return places[::-1]

    def swizzled(self, pid: str) -> list[str]:
        """Tile numbers in bands of `swizzle` rows, so that neighbours share both operands."""
        rows, cols = (self.count(axis) for axis in self.kernel.grid)
        band, first, height = (self.names.fresh(name) for name in ("band", "first", "height"))
        wide = self.hints.swizzle
        self.writer.line(f"{band} = {pid} // {_product([str(wide), cols])}")
        self.writer.line(f"{first} = {band} * {wide}")
        self.writer.line(f"{height} = tl.minimum({rows} - {first}, {wide})")
        place = f"{pid} % {_product([str(wide), cols])}"
        return [f"({first} + {place} % {height})", f"({place} // {height})"]

    def enter(self, axis: Axis, base: str, exact: bool | None = None) -> None:
        """The axis variable, and its mask unless all elements exist (`exact`)."""
        name = self.names[axis.name]
        if not axis.is_dim:
            self.bases[axis.name] = name
            if base != name:
                self.writer.line(f"{name} = {bare(base)}")
            return
        if not base.isidentifier() and base != "0":
            start = self.names.fresh(f"{name}_base")
            self.writer.line(f"{start} = {bare(base)}")
            base = start
        self.bases[axis.name] = base
        offsets = self.offsets(axis.name)
        self.writer.line(f"{name} = {offsets}" if base == "0" else f"{name} = {base} + {offsets}")
        if not (self.blocks.is_exact(axis.name) if exact is None else exact):
            self.masks[axis.name] = self.names.fresh(f"{name}_exists")
            self.writer.line(f"{self.masks[axis.name]} = {name} < {self.limit(axis, base)}")

    def offsets(self, name: str) -> str:
        """Offsets of an axis within its block; digits of the block's number in a group."""
        group = self.blocks.groups[name]
        size = self.blocks.shape((group,))[0]
        inner = self.blocks.shape(tuple((other,) for other in group[group.index(name) + 1 :]))
        below = 1
        for count in inner:
            below *= count
        text = f"tl.arange(0, {size})"
        if below > 1:
            text = f"{text} // {below}"
        return f"{text} % {self.blocks.sizes[name]}" if name != group[0] else text

    def limit(self, axis: Axis, base: str) -> str:
        """The first position that does not exist in this block."""
        tile, extent = self.blocks.tile(axis), self.names.extent(axis.extent)
        if self.blocks.sizes[axis.name] == tile or tile == axis.extent:
            return extent
        end = f"{base} + {tile}" if base != "0" else str(tile)
        return f"tl.minimum({end}, {extent})"

    # Statements

    def block(self, body: tuple[Stmt, ...]) -> None:
        for stmt in body:
            if isinstance(stmt, Let):
                self.let(stmt)
            elif isinstance(stmt, Store):
                self.store(stmt)
            else:
                self.loop(stmt)

    def let(self, let: Let) -> None:
        name = self.names[let.name]
        if isinstance(let.expr, Const):
            order = self.blocks.of(let.expr)
            block = Block(self.evaluator.full(let.expr, order), order)
        else:
            block = self.evaluator.value(let.expr, name=name)
        if block.text != name:
            self.writer.line(f"{name} = {block.text}")
        self.evaluator.lets[let.name] = let.expr
        self.evaluator.values[let.name] = Block(name, block.order)

    def store(self, store: Store) -> None:
        if store.scatters:
            raise NotLowered(f"kernel {self.kernel.name}: Triton has no store at indices from data")
        buf = self.kernel.buf(store.buf)
        named = dict.fromkeys(name for index in store.affine for name in index.names)
        order = self.blocks.order(name for name in named if name in self.blocks.groups)
        value = self.evaluator.value(store.expr, order)
        text = value.text if value.order in (order, ()) else self.evaluator.fit(store.expr, order)
        addresses = self.evaluator.addresses
        offset = addresses.offset(buf, store.affine, order)
        pointer = f"{self.names[buf.name]} + {offset}" if offset else self.names[buf.name]
        mask = " & ".join(addresses.exists(store.affine, order))
        self.writer.line(f"tl.store({pointer}, {text}{f', mask={mask}' if mask else ''})")
        if store.buf in self.loaded:
            self.writer.line("tl.debug_barrier()")

    def loop(self, loop: For) -> None:
        for carry in loop.carry:
            order = self.evaluator.natural(carry.init)
            if isinstance(carry.init, Const):
                order = self.blocks.of(carry.init)
            text = self.evaluator.full(carry.init, order)
            self.writer.line(f"{self.names[carry.name]} = {text}")
            self.evaluator.values[carry.name] = Block(self.names[carry.name], order)
        axis = loop.axis
        for start, end, exact in self.spans(axis):
            hint = f"{axis.name}_base"
            name = self.names.fresh(hint) if axis.is_dim else self.names[axis.name]
            self.writer.line(f"for {name} in {self.steps(axis, start, end)}:")
            with self.writer.indented():
                self.enter(axis, name, exact)
                self.block(loop.body)
                self.advance(loop)
            self.masks.pop(axis.name, None)

    def spans(self, axis: Axis) -> list[tuple[str, str, bool]]:
        """Start and end of the loops that an axis becomes, and whether all their blocks are full.

        Where only the last block lacks elements, it gets a loop of its own: with masks in
        each step an attention kernel took 46 us instead of 33 (H200, 128 heads of 512).
        """
        extent = self.names.extent(axis.extent)
        exact = self.blocks.is_exact(axis.name)
        if axis.within is not None:
            start, room = self.bases[axis.within], self.blocks.tile(self.kernel.axes[axis.within])
            return [(start, f"tl.minimum({start} + {room}, {extent})", exact)]
        if exact or self.blocks.sizes[axis.name] != self.blocks.tile(axis):
            return [("0", extent, exact)]
        tile = self.blocks.tile(axis)
        if isinstance(axis.extent, int):
            full = str(axis.extent // tile * tile)
        else:
            full = self.names.fresh(f"{axis.name}_full")
            operand = extent if extent.isidentifier() else f"({extent})"
            self.writer.line(f"{full} = {operand} // {tile} * {tile}")
        return [("0", full, True), (full, extent, False)]

    def steps(self, axis: Axis, start: str, end: str) -> str:
        """The range of a loop's base: unrolled where it is short, not pipelined behind another."""
        step = self.blocks.tile(axis) if axis.is_dim else 1
        few = start.isdecimal() and end.isdecimal()
        few = few and int(end) - int(start) <= UNROLLED_TRIPS * step
        if few:
            return f"tl.static_range({start}, {end}, {step})"
        single = ", num_stages=1" if start not in ("0", self.bases.get(axis.within or "")) else ""
        return f"tl.range({start}, {end}, {step}{single})"

    def advance(self, loop: For) -> None:
        """Give the carries their next values, all computed from the values before."""
        late = []
        for at, carry in enumerate(loop.carry):
            name = self.names[carry.name]
            order = self.evaluator.values[carry.name].order
            text = self.evaluator.full(carry.next, order)
            rest = [sub for other in loop.carry[at + 1 :] for sub in subtiles(other.next)]
            if Ref(carry.name) in rest:
                following = self.names.fresh(f"{name}_next")
                self.writer.line(f"{following} = {text}")
                late.append(f"{name} = {following}")
            elif text != name:
                self.writer.line(f"{name} = {text}")
        for line in late:
            self.writer.line(line)


def _product(factors: list[str]) -> str:
    """A product as an operand, its integers multiplied out."""
    known = math.prod(int(factor) for factor in factors if factor.isdecimal())
    rest = [factor for factor in factors if not factor.isdecimal()]
    parts = ([str(known)] if known != 1 or not rest else []) + rest
    return parts[0] if len(parts) == 1 else f"({' * '.join(parts)})"
