"""The verifier's rules of expressions: scope, arity, dtypes, bounds, flow of partial sums."""

from __future__ import annotations

from collections.abc import Callable

from rooftile.core.affine import Affine
from rooftile.core.dtype import DTYPES, DType, itemsize, kind
from rooftile.ir.tile.query import halo_of, inside, lineage
from rooftile.ir.tile.records import (
    Axis,
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
    subtiles,
)
from rooftile.ir.tile.scalar import FLOAT_ONLY, INTEGER_ONLY, SCALARS

REDUCTIONS = frozenset({"sum", "prod", "max", "min"})
BOOL_ONLY = frozenset({"not", "and", "or"})
ANY_TYPE = frozenset({"eq", "where"})
Need = Callable[[bool, str], None]


def _holds(dtype: DType, value: float) -> bool:
    """Whether a type has this value; floats have all, rounded."""
    if kind(dtype) == "float":
        return True
    if dtype == "bool":
        return value in (0, 1)
    whole = value == value and abs(value) != float("inf") and int(value) == value
    bits = 8 * itemsize(dtype)
    low, high = (-(1 << bits - 1), 1 << bits - 1) if kind(dtype) == "int" else (0, 1 << bits)
    return whole and low <= value < high


class Checker:
    """Checks expressions at one place of a kernel. `need(holds, message)` raises the error."""

    def __init__(self, need: Need, kernel: Kernel, scope: Scope, in_scope: frozenset[str]) -> None:
        self.need = need
        self.kernel = kernel
        self.scope = scope
        self.in_scope = in_scope
        self.grid = {axis.name for axis in kernel.grid}
        self.loops: frozenset[str] = frozenset()
        self._taints: dict[str, frozenset[str]] = {}
        self._last: DType | None = None
        """The type of what the iterate around has become so far."""

    def copy(self) -> Checker:
        """The same place; what is defined in the copy is not seen in the original."""
        scope = Scope(self.kernel)
        scope.tiles.update(self.scope.tiles)
        other = Checker(self.need, self.kernel, scope, self.in_scope)
        other.loops = self.loops
        other._taints = dict(self._taints)
        return other

    def inside(self, axis: Axis) -> Checker:
        """The place inside a loop over `axis`."""
        inner = self.copy()
        inner.in_scope = self.in_scope | {axis.name}
        inner.loops = self.loops | ({axis.name} if axis.tile != "whole" else frozenset())
        return inner

    def define(self, name: str, tile: Tile) -> None:
        """Check the tile and give it a name."""
        self.check(tile)
        self.scope.define(name, tile)
        self._taints[name] = self.partial(tile)

    def adopt(self, name: str, other: Checker) -> None:
        """Take over a name that another place defined."""
        self.scope.tiles[name] = other.scope.tiles[name]
        self._taints[name] = other.tainted(name)

    def taint(self, name: str, axes: frozenset[str]) -> None:
        """Say that a name holds partial reductions over `axes`."""
        self._taints[name] = self.tainted(name) | axes

    def tainted(self, name: str) -> frozenset[str]:
        """The loops over which a name holds partial reductions."""
        return self._taints.get(name, frozenset())

    def partial(self, tile: Tile) -> frozenset[str]:
        """The loops around that see only a part of a reduction in the tile."""
        found: set[str] = set()
        for sub in subtiles(tile):
            if isinstance(sub, Ref):
                found |= self.tainted(sub.name)
            over = sub.over if isinstance(sub, Dot) else ()
            over = (sub.axis,) if isinstance(sub, Reduce) else over
            for name in over:
                chain = lineage(self.scope.axes[name], self.scope.axes)
                found |= {axis.name for axis in chain} & self.loops
        return frozenset(found)

    def check(self, tile: Tile) -> None:
        """Check an expression and everything in it."""
        for child in children(tile) if not isinstance(tile, Iterate) else ():
            self.check(child)
        if isinstance(tile, Ref):
            self.need(tile.name in self.scope.tiles, f"{tile.name} is not defined here")
        elif isinstance(tile, Load):
            self._load(tile)
        elif isinstance(tile, Const):
            self._const(tile)
        elif isinstance(tile, Iota):
            self.need(tile.axis in self.in_scope, f"iota: axis {tile.axis} is not in scope")
        elif isinstance(tile, Map):
            self._map(tile)
        elif isinstance(tile, Cast):
            self.need(tile.dtype in DTYPES, f"cast: no element type {tile.dtype}")
            source = self.scope.dtype(tile.x)
            fits = itemsize(source) == itemsize(tile.dtype) and "bool" not in (source, tile.dtype)
            self.need(
                fits or not tile.bits, f"bitcast of {source} to {tile.dtype}: the sizes differ"
            )
        elif isinstance(tile, Reduce):
            self._reduce(tile)
        elif isinstance(tile, Dot):
            self._dot(tile)
        elif isinstance(tile, Iterate):
            self._iterate(tile)
        elif isinstance(tile, Last):
            self.need(self._last == tile.dtype, f"last({tile.dtype}) stands in no such iterate")
        else:
            self._rename(tile)

    def axes_in_scope(self, index: Affine) -> None:
        """Every axis of an index is in scope."""
        for name in index.names:
            self.need(name in self.in_scope, f"axis {name} is not in scope")

    def _load(self, tile: Load) -> None:
        self.need(tile.buf in self.scope.bufs, f"load {tile.buf}: no buffer of that name")
        buf = self.scope.bufs[tile.buf]
        rank = len(buf.shape)
        self.need(
            len(tile.index) == rank, f"load {buf.name}: {len(tile.index)} indices for rank {rank}"
        )
        holds = tile.pad is None or _holds(buf.dtype, tile.pad)
        self.need(holds, f"load {buf.name}: a pad of {tile.pad} is no {buf.dtype}")
        for which, part in enumerate(tile.index):
            if not isinstance(part, Affine):
                dtype = self.scope.dtype(part)
                whole = kind(dtype) in ("int", "uint")
                self.need(whole, f"load {buf.name}: an index tile of {dtype}; cast it to i64")
                continue
            self.axes_in_scope(part)
            fits = inside(part, buf.shape[which], self.scope.axes, halo_of(buf, which))
            self.need(
                fits or tile.pad is not None,
                f"load {buf.name}: {part} leaves dim {which} of extent {buf.shape[which]} and its "
                "halo; give a pad or a halo",
            )

    def _const(self, tile: Const) -> None:
        self.need(tile.dtype in DTYPES, f"const: no element type {tile.dtype}")
        for name in tile.dims:
            known = name in self.in_scope and self.scope.axes[name].is_dim
            self.need(known, f"const: axis {name} is not in scope or a point")
        self.need(_holds(tile.dtype, tile.value), f"const: {tile.value} is no {tile.dtype}")

    def _map(self, tile: Map) -> None:
        self.need(tile.op in SCALARS, f"map: no operation {tile.op}")
        arity = SCALARS[tile.op].arity
        self.need(len(tile.args) == arity, f"{tile.op} takes {arity} tiles, not {len(tile.args)}")
        dtypes = [self.scope.dtype(arg) for arg in tile.args]
        if tile.op == "where":
            self.need(dtypes[0] == "bool", f"where: its condition is {dtypes[0]}, not bool")
            dtypes = dtypes[1:]
        self.need(len(set(dtypes)) == 1, f"{tile.op} mixes {' and '.join(dtypes)}; cast one")
        if tile.op in FLOAT_ONLY:
            self.need(kind(dtypes[0]) == "float", f"{tile.op} takes floats, not {dtypes[0]}")
        elif tile.op in INTEGER_ONLY:
            integer = kind(dtypes[0]) in ("int", "uint")
            self.need(integer, f"{tile.op} takes integers, not {dtypes[0]}")
        elif tile.op in BOOL_ONLY:
            self.need(dtypes[0] == "bool", f"{tile.op} takes bool, not {dtypes[0]}")
        elif tile.op not in ANY_TYPE:
            self.need(dtypes[0] != "bool", f"{tile.op} takes numbers, not bool; cast it")

    def _reduce(self, tile: Reduce) -> None:
        self.need(tile.op in REDUCTIONS, f"reduce: no operation {tile.op}")
        self._reducible(tile.op, tile.axis, tile.x)
        self.need(self.scope.dtype(tile.x) != "bool", f"{tile.op}: reduces numbers, not bool")

    def _reducible(self, what: str, name: str, *tiles: Tile) -> None:
        for tile in tiles:
            spans = name in self.scope.dims(tile)
            self.need(spans, f"{what} over {name}: a tile that does not span it")
        chain = lineage(self.scope.axes[name], self.scope.axes)
        parts = [axis.name for axis in chain if axis.name in self.grid and axis.tile != "whole"]
        self.need(not parts, f"{what} over grid axis {' '.join(parts)}: other programs hold parts")

    def _dot(self, tile: Dot) -> None:
        for name in tile.over:
            self._reducible("dot", name, tile.a, tile.b)
        a, b = self.scope.dtype(tile.a), self.scope.dtype(tile.b)
        if kind(a) == "float":
            wide = kind(tile.dtype) == "float" and itemsize(tile.dtype) >= itemsize(a)
            self.need(a == b, f"dot mixes {a} and {b}; cast one")
        else:
            both = {kind(a), kind(b)} <= {"int", "uint"}
            self.need(both, f"dot mixes {a} and {b}; cast one")
            wide = tile.dtype in ("i32", "i64")
        self.need(wide, f"dot of {a} cannot accumulate in {tile.dtype}")
        known = tile.precision == "ieee" or (tile.precision == "tf32" and a == "f32")
        self.need(known, f"dot of {a}: no precision {tile.precision}")
        if tile.acc is None:
            return
        dims, mine = self.scope.dims(tile.acc), self.scope.dims(tile)
        self.need(
            set(dims) == set(mine),
            f"dot: acc spans {' '.join(dims)} but the product spans {' '.join(mine)}",
        )
        dtype = self.scope.dtype(tile.acc)
        self.need(dtype == tile.dtype, f"dot: acc is {dtype}, not {tile.dtype}; cast it")

    def _iterate(self, tile: Iterate) -> None:
        self.need(self._last is None, "iterate stands in another one")
        self.check(tile.init)
        dtype = self.scope.dtype(tile.init)
        self.need(kind(dtype) in ("int", "uint"), f"iterate: it goes over integers, not {dtype}")
        self._last = dtype
        self.check(tile.next)
        self.check(tile.more)
        self._last = None
        following, more = self.scope.dtype(tile.next), self.scope.dtype(tile.more)
        self.need(dtype == following, f"iterate: {dtype} becomes {following}; cast one")
        self.need(kind(more) in ("int", "uint"), f"iterate: whether to go on is {more}; cast it")
        self.need(tile.most >= 0, f"iterate: {tile.most} steps")
        parts = [*subtiles(tile.next), *subtiles(tile.more)]
        plain = not any(isinstance(part, (Dot, Reduce, Rename, Ref)) for part in parts)
        self.need(plain, "iterate: its step reduces, renames or names a tile")

    def _rename(self, tile: Rename) -> None:
        dims = self.scope.dims(tile.x)
        self.need(tile.old in dims, f"rename: the tile does not span {tile.old}")
        self.need(tile.new in self.in_scope, f"rename: axis {tile.new} is not in scope")
        self.need(tile.new not in dims, f"rename: the tile spans {tile.new} already")
        old, new = self.scope.axes[tile.old], self.scope.axes[tile.new]
        same = (old.extent, old.tile, old.within) == (new.extent, new.tile, new.within)
        self.need(same, f"rename: {old.name} and {new.name} differ in extent or tile")
