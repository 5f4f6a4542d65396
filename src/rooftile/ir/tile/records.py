"""Tile IR: how one kernel computes. A grid of tiles, loops, and operations on whole tiles.

Tiles have named dims: the axes that span them. Map broadcasts by name, Reduce and Dot contract by
name, so no operation needs a transpose. Where elements lie in memory is the buffer's property
(layout, halo); indices stay logical. Lanes, registers and instructions are the code generator's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from rooftile.core.affine import Affine, Dim
from rooftile.core.dtype import DType

Extent: TypeAlias = "int | Literal['whole', 'point']"
Part: TypeAlias = Literal["all", "div", "mod"]


@dataclass(frozen=True)
class Axis:
    """A dim of the iteration space, `0 <= axis < extent`.

    `tile`: elements of one tile; "whole" where each tile covers the extent; "point" where the
    axis is a scalar and never a dim. `within` names the axis whose current tile it runs over.
    """

    name: str
    extent: Dim
    tile: Extent = "whole"
    within: str | None = None

    @property
    def is_dim(self) -> bool:
        """Whether tiles span it."""
        return self.tile != "point"


@dataclass(frozen=True)
class Buf:
    """A buffer. `layout`: physical order, outermost first, of (dim, block, part), part one of
    all, div (index // block), mod (index % block). `halo`: cells (low, high) around each dim that
    exist and hold zero. `most`: no element is larger, or None where that is not known.
    """

    name: str
    shape: tuple[Dim, ...]
    dtype: DType = "f32"
    space: Literal["memory", "scratch"] = "memory"
    layout: tuple[tuple[int, int, Part], ...] | None = None
    halo: tuple[tuple[int, int], ...] | None = None
    most: int | None = None


@dataclass(frozen=True)
class Ref:
    """The tile that a Let or a Carry named."""

    name: str


@dataclass(frozen=True)
class Load:
    """Elements of a buffer, one index a dim: affine in axes, or an integer tile (checked: an
    index outside the dim makes the kernel fail). `pad` is what is read outside the shape.
    """

    buf: str
    index: tuple[Affine | Tile, ...]
    pad: float | None = None


@dataclass(frozen=True)
class Const:
    """A scalar, or a tile of equal elements over `dims`."""

    value: float
    dtype: DType = "f32"
    dims: tuple[str, ...] = ()


@dataclass(frozen=True)
class Iota:
    """The absolute position along an axis, i64."""

    axis: str


@dataclass(frozen=True)
class Map:
    """A scalar operation (`rooftile.ir.tile.scalar.SCALARS`) on tiles that broadcast by name."""

    op: str
    args: tuple[Tile, ...]


@dataclass(frozen=True)
class Cast:
    """Conversion to another element type; float to integer truncates toward zero.

    `bits`: the same bits as another type of equal size instead.
    """

    x: Tile
    dtype: DType
    bits: bool = False


@dataclass(frozen=True)
class Reduce:
    """sum, prod, max or min over one axis. Max and min propagate NaN."""

    op: str
    x: Tile
    axis: str


@dataclass(frozen=True)
class Dot:
    """`sum(a * b)` over axes, plus `acc`. Axes shared by a and b but not in `over` are batch.
    `dtype` is the accumulator's. `precision` "tf32" allows 10-bit mantissas of the operands.
    """

    a: Tile
    b: Tile
    over: tuple[str, ...]
    acc: Tile | None = None
    dtype: DType = "f32"
    precision: str = "ieee"


@dataclass(frozen=True)
class Rename:
    """The same tile under another axis of equal extent and tile: the only view."""

    x: Tile
    old: str
    new: str


@dataclass(frozen=True)
class Last:
    """In the `next` of an Iterate: what the element has become so far."""

    dtype: DType


@dataclass(frozen=True)
class Iterate:
    """Integers, each on its own: `init`, then `next` of it as long as `more` is not 0, at most
    `most` times. Both name the present one by Last; they hold no other Iterate and reduce nothing.
    Where `more` is 0, `next` changes nothing: code may go on with an element until all stand.
    """

    init: Tile
    next: Tile
    more: Tile
    most: int


Tile: TypeAlias = "Ref | Load | Const | Iota | Map | Cast | Reduce | Dot | Rename | Last | Iterate"


@dataclass(frozen=True)
class Let:
    """Name a tile."""

    name: str
    expr: Tile


@dataclass(frozen=True)
class Store:
    """Write a tile; everything is read before anything is written.

    An index may hold integer tiles, checked as those of a Load: then elements are written one by
    one, the axes in the order in which the index names them, the last innermost. `combine` (add,
    mul, max, min) puts what is there and the new element together.
    """

    buf: str
    index: tuple[Affine | Tile, ...]
    expr: Tile
    combine: str | None = None

    @property
    def affine(self) -> tuple[Affine, ...]:
        """The parts of the index that are affine in axes."""
        return tuple(part for part in self.index if isinstance(part, Affine))

    @property
    def tiles(self) -> tuple[Tile, ...]:
        """The parts of the index that come from data."""
        return tuple(part for part in self.index if not isinstance(part, Affine))

    @property
    def scatters(self) -> bool:
        """Whether elements are written one by one."""
        return self.combine is not None or bool(self.tiles)


@dataclass(frozen=True)
class Carry:
    """A tile that a loop hands on: `init` before it, `next` after each step; visible behind it."""

    name: str
    init: Tile
    next: Tile


@dataclass(frozen=True)
class For:
    """A loop over the tiles of an axis, in order."""

    axis: Axis
    body: tuple[Stmt, ...]
    carry: tuple[Carry, ...] = ()


Stmt: TypeAlias = "Let | Store | For"


@dataclass(frozen=True)
class Kernel:
    """A block program, run once for each tile of the `grid` (first axis outermost).

    `whole` axes are covered completely by every tile. Memory buffers are the arguments, in order.
    """

    name: str
    bufs: tuple[Buf, ...]
    grid: tuple[Axis, ...]
    whole: tuple[Axis, ...]
    body: tuple[Stmt, ...]

    def buf(self, name: str) -> Buf:
        """The buffer of that name; KeyError if there is none."""
        for buf in self.bufs:
            if buf.name == name:
                return buf
        raise KeyError(name)

    @property
    def axes(self) -> dict[str, Axis]:
        """Every axis by name: grid, whole and loops."""
        found = {axis.name: axis for axis in self.grid + self.whole}
        found.update((loop.axis.name, loop.axis) for loop in loops(self.body))
        return found

    @property
    def outputs(self) -> tuple[str, ...]:
        """Memory buffers that are written, in order of the arguments."""
        written = {store.buf for store in stores(self.body)}
        return tuple(b.name for b in self.bufs if b.space == "memory" and b.name in written)


@dataclass(frozen=True)
class Hints:
    """What a code generator may follow and the IR does not say: beside the kernel, by target."""

    register_tile: tuple[tuple[str, int], ...] = ()
    unroll: int = 4
    prefetch: int = 0
    warps: int = 4
    stages: int = 2
    swizzle: int = 0
    least: tuple[tuple[str, int], ...] = ()
    """What symbolic extents of axes are known to reach: such axes may end in a tile of that size
    that computes some elements again."""


def children(tile: Tile) -> tuple[Tile, ...]:
    """The tiles that an expression is made of, one level down."""
    if isinstance(tile, Map):
        return tile.args
    if isinstance(tile, Dot):
        return (tile.a, tile.b) + ((tile.acc,) if tile.acc is not None else ())
    if isinstance(tile, (Reduce, Rename, Cast)):
        return (tile.x,)
    if isinstance(tile, Iterate):
        return (tile.init, tile.next, tile.more)
    if isinstance(tile, Load):
        return tuple(part for part in tile.index if not isinstance(part, Affine))
    return ()


def rebuild(tile: Tile, change: Callable[[Tile], Tile]) -> Tile:
    """The expression with `change` applied to each child."""
    if isinstance(tile, Map):
        return Map(tile.op, tuple(change(arg) for arg in tile.args))
    if isinstance(tile, Dot):
        acc = None if tile.acc is None else change(tile.acc)
        return Dot(change(tile.a), change(tile.b), tile.over, acc, tile.dtype, tile.precision)
    if isinstance(tile, Reduce):
        return Reduce(tile.op, change(tile.x), tile.axis)
    if isinstance(tile, Rename):
        return Rename(change(tile.x), tile.old, tile.new)
    if isinstance(tile, Cast):
        return Cast(change(tile.x), tile.dtype, tile.bits)
    if isinstance(tile, Iterate):
        return Iterate(change(tile.init), change(tile.next), change(tile.more), tile.most)
    if isinstance(tile, Load):
        index = tuple(p if isinstance(p, Affine) else change(p) for p in tile.index)
        return Load(tile.buf, index, tile.pad)
    return tile


def subtiles(tile: Tile) -> Iterator[Tile]:
    """The expression and everything in it, outermost first."""
    left = [tile]
    while left:
        found = left.pop()
        yield found
        left += reversed(children(found))


def statements(body: tuple[Stmt, ...]) -> Iterator[Stmt]:
    """Every statement, loops before what is inside them."""
    for stmt in body:
        yield stmt
        if isinstance(stmt, For):
            yield from statements(stmt.body)


def loops(body: tuple[Stmt, ...]) -> Iterator[For]:
    """Every loop, outer before inner."""
    return (stmt for stmt in statements(body) if isinstance(stmt, For))


def stores(body: tuple[Stmt, ...]) -> Iterator[Store]:
    """Every store."""
    return (stmt for stmt in statements(body) if isinstance(stmt, Store))


def expressions(body: tuple[Stmt, ...]) -> Iterator[Tile]:
    """The top expressions of every Let, Store and Carry; of a Store its index tiles too."""
    for stmt in statements(body):
        if isinstance(stmt, For):
            for carry in stmt.carry:
                yield carry.init
                yield carry.next
        else:
            if isinstance(stmt, Store):
                yield from stmt.tiles
            yield stmt.expr


def union(*names: tuple[str, ...]) -> tuple[str, ...]:
    """All names, each once, in order of first appearance."""
    return tuple(dict.fromkeys(name for some in names for name in some))


class Scope:
    """Dims and dtypes of expressions, given the axes, buffers and named tiles in scope."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.axes = kernel.axes
        self.bufs = {buf.name: buf for buf in kernel.bufs}
        self.tiles: dict[str, tuple[tuple[str, ...], DType]] = {}
        self._dims_of: dict[int, tuple[Tile, tuple[str, ...]]] = {}
        self._dtype_of: dict[int, tuple[Tile, DType]] = {}
        """By id, for tiles would be hashed part by part; each is kept, so that its id stays its."""

    def define(self, name: str, tile: Tile) -> None:
        """Give a Let or Carry its dims and dtype."""
        self.tiles[name] = (self.dims(tile), self.dtype(tile))

    def dims(self, tile: Tile) -> tuple[str, ...]:
        """The named dims that span a tile; KeyError for an unknown name."""
        found = self._dims_of.get(id(tile))
        if found is None:
            found = self._dims_of[id(tile)] = (tile, self._dims(tile))
        return found[1]

    def dtype(self, tile: Tile) -> DType:
        """The element type of a tile."""
        found = self._dtype_of.get(id(tile))
        if found is None:
            found = self._dtype_of[id(tile)] = (tile, self._dtype(tile))
        return found[1]

    def _dims(self, tile: Tile) -> tuple[str, ...]:
        if isinstance(tile, Ref):
            return self.tiles[tile.name][0]
        if isinstance(tile, Load):
            parts = [p.names if isinstance(p, Affine) else self.dims(p) for p in tile.index]
            return tuple(name for name in union(*parts) if self.axes[name].is_dim)
        if isinstance(tile, Const):
            return tile.dims
        if isinstance(tile, Last):
            return ()
        if isinstance(tile, Iterate):
            return union(*map(self.dims, children(tile)))
        if isinstance(tile, Iota):
            return (tile.axis,) if self.axes[tile.axis].is_dim else ()
        if isinstance(tile, Map):
            parts = sorted((self.dims(arg) for arg in tile.args), key=len, reverse=True)
            return union(*parts)
        if isinstance(tile, Reduce):
            return tuple(name for name in self.dims(tile.x) if name != tile.axis)
        if isinstance(tile, Dot):
            both = union(self.dims(tile.a), self.dims(tile.b))
            return tuple(name for name in both if name not in tile.over)
        if isinstance(tile, Rename):
            return tuple(tile.new if n == tile.old else n for n in self.dims(tile.x))
        return self.dims(tile.x)

    def _dtype(self, tile: Tile) -> DType:
        if isinstance(tile, Ref):
            return self.tiles[tile.name][1]
        if isinstance(tile, Load):
            return self.bufs[tile.buf].dtype
        if isinstance(tile, (Const, Cast, Dot, Last)):
            return tile.dtype
        if isinstance(tile, Iterate):
            return self.dtype(tile.init)
        if isinstance(tile, Iota):
            return "i64"
        if isinstance(tile, Map):
            from rooftile.ir.tile.scalar import SCALARS

            return SCALARS[tile.op].result([self.dtype(arg) for arg in tile.args])
        return self.dtype(tile.x)
