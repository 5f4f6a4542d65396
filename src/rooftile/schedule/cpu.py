"""The CPU's schedule of a kernel: which axes are cut, what is packed and staged, register tiles.

It follows from the kernel's shape and the model of the machine; nothing is measured here.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from rooftile.core.affine import Affine, bind
from rooftile.core.dtype import itemsize
from rooftile.core.errors import NotLowered
from rooftile.ir.tile import (
    Axis,
    Dot,
    Hints,
    Kernel,
    Let,
    Load,
    Scope,
    Tile,
    children,
    expressions,
    loops,
    stores,
    subtiles,
)
from rooftile.ir.tile.materialise import stored_lets
from rooftile.machine.model import Machine
from rooftile.schedule.opened import loop_over
from rooftile.schedule.operands import WAYS, clashing_rows, starts_panels
from rooftile.schedule.parallel import divide
from rooftile.schedule.rewrites import (
    can_stage,
    computed,
    pack,
    reduced_axes,
    refusal,
    stage,
    to_grid,
    to_loop,
)

FULL_ROOM = 64
"""Open extents above this get the same tiles, or nearly so."""


@dataclass(frozen=True)
class Scheduled:
    """A kernel ready for code generation, and the hints that belong to it. `split`: the axis of the
    grid whose tiles several threads share, if any."""

    kernel: Kernel
    hints: Hints
    split: str | None = None


def schedule(
    kernel: Kernel,
    machine: Machine,
    constants: frozenset[str],
    symbols: Mapping[str, int] | None = None,
    threads: int = 1,
    seconds: float = 0.0,
) -> Scheduled:
    """`constants` names the buffers that are known before the run and may be packed; `symbols`
    gives the numbers at hand of extents that only a run knows; `seconds` is what one of `threads`
    threads is predicted to need.

    NotLowered where such an extent stands where no loop can be.
    """
    if kernel.grid or any(loops(kernel.body)):
        return Scheduled(kernel, Hints())  # written as it shall run
    found = _Recipe(kernel, machine, constants, symbols or {}).run()
    divided = divide(found.kernel, found.hints, machine, threads, seconds, symbols)
    return Scheduled(divided.kernel, found.hints, divided.axis)


class _Recipe:
    def __init__(
        self,
        kernel: Kernel,
        machine: Machine,
        constants: frozenset[str],
        symbols: Mapping[str, int],
    ) -> None:
        self.kernel = kernel
        self.machine = machine
        self.constants = constants
        self.hints: dict[str, int] = {}
        self.lanes = machine.vector_bytes // 4
        self.scope = Scope(kernel)
        for stmt in kernel.body:
            if isinstance(stmt, Let):
                self.scope.define(stmt.name, stmt.expr)
        self.extents = {axis.name: bind(axis.extent, symbols) for axis in kernel.whole}
        self.open = {axis.name for axis in kernel.whole if not isinstance(axis.extent, int)}
        self.least: dict[str, int] = {}
        self.dots = [
            part
            for tile in expressions(kernel.body)
            for part in subtiles(tile)
            if isinstance(part, Dot)
        ]

    def run(self) -> Scheduled:
        for dot in self.dots:
            self._pack(dot)
        points = self._point_axes()
        for name in points:
            self.kernel = to_grid(self.kernel, name, "point")
        self._open_axes()
        if not any(loops(self.kernel.body)):
            staged = self._stage_all()
            self._cut_rows(staged)
        least = tuple(sorted(self.least.items()))
        hints = Hints(register_tile=tuple(sorted(self.hints.items())), least=least)
        return Scheduled(self.kernel, hints)

    # -- extents that only a run knows

    def _open_axes(self) -> None:
        """Free axes of open extent become tiles of the grid, reduced ones loops."""
        for dot in self.dots:
            self._check_columns(dot)
        vectorised = self._vectorised()
        free = [axis.name for axis in self._free_axes(0) if axis.name in self.open]
        spanned = {name for dot in self.dots for name in self.scope.dims(dot)} - {vectorised}
        rows = [name for name in free if name in spanned][-1:]
        for name in free:
            size, least = 1, 1
            room = self._room(name)
            if name == vectorised:
                size, least = min(room, self.lanes * 8), min(room, self.lanes)
            elif name in rows:
                most = 32 if room > 64 else 16
                size, least = min(room, most), max(1, min(room // 2, most // 4))
            self.kernel = to_grid(self.kernel, name, size if size > 1 else "point")
            self.least[name] = least
        for axis in self.kernel.whole:
            if axis.name in self.open:
                if axis.name not in reduced_axes(self.kernel):
                    why = refusal(self.kernel, axis.name)
                    raise NotLowered(f"axis {axis.name} of open extent stays whole: {why}")
                self.kernel = loop_over(self.kernel, axis.name, self._loop_tile(axis.name))

    def _loop_tile(self, name: str) -> int:
        """Elements of an open axis that an iteration reduces: many where vectors lie along it, or
        where a dot keeps its sums in registers meanwhile."""
        along = any(self._contiguous(load, name) for load in self._loads())
        return self.lanes * 4 if along or any(name in dot.over for dot in self.dots) else 8

    def _room(self, name: str) -> int:
        """What the tiles along an open axis may take: a power of two, by the extent at hand. What
        fills a vector may grow: then tiles are as large as they get."""
        at_hand = self.extents[name]
        return 1 << (max(at_hand, FULL_ROOM if at_hand >= self.lanes else 1).bit_length() - 1)

    def _check_columns(self, dot: Dot) -> None:
        """Operands that lie across vectors of open extent cannot be staged: they are stored."""
        load = _plain_load(dot.b)
        columns = set(self.scope.dims(dot.b)) - set(dot.over) - set(self.scope.dims(dot.a))
        if load is None or len(columns) != 1:
            return
        [name] = columns
        across = not self._contiguous(load, name)
        if name in self.open and across and any(self._contiguous(load, n) for n in dot.over):
            raise NotLowered(f"{load.buf} lies across axis {name}, whose extent a run knows")

    # -- dots

    def _pack(self, dot: Dot) -> None:
        """Lay constant weights out in panels as wide as the register tile."""
        load = _plain_load(dot.b)
        if load is None or load.buf not in self.constants:
            return
        buf = self.kernel.buf(load.buf)
        rows = set(self.scope.dims(dot.a)) - set(dot.over)
        columns = set(self.scope.dims(dot.b)) - set(dot.over) - rows
        dim = len(load.index) - 1
        part = load.index[dim]
        if not isinstance(part, Affine) or buf.layout is not None:
            return
        unit = [name for name in columns if part.coef(name) == 1]
        if len(unit) != 1 or not set(part.names) <= columns:
            return
        name = unit[0]
        width = self._panel(self.extents[name], self._row_count(rows))
        if min(self._row_count(rows), self.machine.registers * 7 // 16) > WAYS:
            width = self._low_tile(dot, name, width)
        self.hints[name] = width
        if self.extents[name] > 1 and starts_panels(self.kernel, load.buf, dim, name, width):
            self.kernel = pack(self.kernel, load.buf, dim, width)

    def _low_tile(self, dot: Dot, name: str, width: int) -> int:
        """Where rows lie whole pages apart, a register tile of few of them, with twice the columns
        as long as the panel stays in cache. Gives the columns."""
        clashing = clashing_rows(self.kernel, dot, self.extents)
        if clashing is None:
            return width
        nbytes = 2 * width * self._row_count(dot.over) * itemsize(self.scope.dtype(dot.b))
        if self.extents[name] >= 2 * width and nbytes <= self.machine.cache["l2"] // 2:
            width *= 2
        held = self.machine.registers * 3 // 4 * self.lanes
        self.hints[clashing] = min(WAYS, held // width)
        return width

    def _row_count(self, rows: Iterable[str]) -> int:
        return math.prod(self.extents[name] for name in rows)

    def _panel(self, columns: int, rows: int) -> int:
        """Columns of a register tile: wide where there are few rows to share a vector with."""
        vectors = -(-columns // self.lanes)
        if rows >= 6:
            most = 2
        else:
            most = min(8, (self.machine.registers * 3 // 4) // max(rows, 1))
        return min(vectors, most) * self.lanes

    def _point_axes(self) -> list[str]:
        """Batch axes of the dots that no operand is contiguous along: one program each."""
        found: list[str] = []
        bound = reduced_axes(self.kernel)
        for axis in self.kernel.whole:
            batch = [
                axis.name in self.scope.dims(dot.a) and axis.name in self.scope.dims(dot.b)
                for dot in self.dots
            ]
            if not batch or not all(batch) or axis.name in bound:
                continue
            along = any(self._contiguous(load, axis.name) for load in self._loads())
            if not along and refusal(self.kernel, axis.name) is None:
                found.append(axis.name)
        return found

    def _loads(self) -> list[Load]:
        return [
            part
            for tile in expressions(self.kernel.body)
            for part in subtiles(tile)
            if isinstance(part, Load)
        ]

    def _contiguous(self, load: Load, name: str) -> bool:
        last = load.index[-1] if load.index else None
        return isinstance(last, Affine) and last.coef(name) == 1

    def _stage_all(self) -> int:
        """Copy operands that lie across the vectors of their dot, transposed; how many."""
        count = 0
        for dot in self.dots:
            order = self._staged_order(dot)
            if order and can_stage(self.kernel, dot.b, order):
                self.kernel = stage(self.kernel, dot.b, order, self.extents)
                count += 1
        return count

    def _staged_order(self, dot: Dot) -> tuple[str, ...]:
        """The dims of a dot's right operand with its columns innermost, in panels of the last one;
        empty where it is well as it lies."""
        source = computed(self.kernel, dot.b)
        loads = [part for part in subtiles(source) if isinstance(part, Load)]
        if any(load.buf in self.constants for load in loads if load is source):
            return ()
        rows = self.scope.dims(dot.a)
        columns = [n for n in self.scope.dims(dot.b) if n not in dot.over and n not in rows]
        few = self._row_count(n for n in rows if n not in dot.over) < 4
        if not columns or few or self.extents[columns[-1]] < 4 or len(dot.over) != 1:
            return ()
        if self.open.intersection((*columns, *dot.over)):
            return ()
        if any(self._contiguous(load, name) for load in loads for name in columns):
            return ()
        if not any(self._contiguous(load, dot.over[0]) for load in loads):
            return ()
        return (*columns[:-1], *dot.over, columns[-1])

    # -- rows

    def _cut_rows(self, staged: int) -> None:
        """Cut the outermost free axis so that a tile's intermediate values stay in cache."""
        free = self._free_axes(staged)
        width = self._kept_bytes()
        if not free or not (width or self.dots):
            return
        axis = free[0]
        if self._vectorised() == axis.name or not isinstance(axis.extent, int):
            return
        budget = self.machine.cache["l2"] // 4
        if width:
            per_row = max(width // axis.extent, 1)
        else:
            streamed = self._streamed_bytes(axis.name)
            if streamed <= self.machine.cache["l2"] // 2:
                return
            per_row = max(streamed // axis.extent, 1)
        rows = max(1, budget // per_row)
        rows = max(rows, self._least_rows(axis.name))
        if rows >= axis.extent:
            if staged:
                return
            rows = axis.extent
        pieces = -(-axis.extent // rows)
        size = -(-axis.extent // pieces)
        if size >= axis.extent:
            return
        if staged:
            self.kernel = to_loop(self.kernel, axis.name, size, after=staged)
        else:
            self.kernel = to_grid(self.kernel, axis.name, size)

    def _least_rows(self, name: str) -> int:
        """Steps of an axis with enough rows for the register tiles of the dots."""
        least = 1
        for dot in self.dots:
            inner = self._row_count(n for n in self.scope.dims(dot.a) if n not in dot.over)
            inner = max(1, inner // self.extents[name])
            least = max(least, -(-8 // inner))
        return least

    def _free_axes(self, staged: int) -> list[Axis]:
        store = next(iter(reversed(list(stores(self.kernel.body)))))
        order = [name for part in store.affine for name, _ in sorted(part.terms, key=_by_coef)]
        return [
            axis
            for name in dict.fromkeys(order)
            for axis in self.kernel.whole
            if axis.name == name and refusal(self.kernel, name, staged) is None
        ]

    def _vectorised(self) -> str | None:
        """The axis along which the output is contiguous."""
        store = next(iter(reversed(list(stores(self.kernel.body)))))
        last = store.affine[-1] if store.affine else None
        unit = [name for name, coef in last.terms if coef == 1] if last is not None else []
        return unit[0] if unit else None

    def _kept_bytes(self) -> int:
        """Bytes of the intermediate tiles that will be kept in scratch, over whole axes."""
        total = 0
        kept = stored_lets(self.kernel, self.scope.dims)
        for stmt in self.kernel.body:
            if isinstance(stmt, Let) and stmt.name in kept:
                size = math.prod(self.extents.get(d, 1) for d in self.scope.dims(stmt.expr))
                total += size * itemsize(self.scope.dtype(stmt.expr))
        return total

    def _streamed_bytes(self, name: str) -> int:
        """Bytes of the operands that are read again for each panel of weights."""
        total = 0
        for dot in self.dots:
            for load in _loads_in(dot.a):
                buf = self.kernel.buf(load.buf)
                sizes = [extent for extent in buf.shape if isinstance(extent, int)]
                total += math.prod(sizes) * itemsize(buf.dtype)
        return total


def _by_coef(term: tuple[str, int]) -> int:
    return -term[1]


def _plain_load(tile: Tile) -> Load | None:
    return tile if isinstance(tile, Load) else None


def _loads_in(tile: Tile) -> list[Load]:
    own = [tile] if isinstance(tile, Load) else []
    return own + [load for child in children(tile) for load in _loads_in(child)]
