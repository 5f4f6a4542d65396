"""Axes whose extent only a run knows: outermost in tiles of fixed sizes, reduced in loops.

A free axis becomes an axis of the grid. A reduction over such an axis becomes a loop over its tiles
that carries the result; what spans the axis is computed anew in each loop that needs it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from rooftile.core.affine import Affine
from rooftile.core.dtype import identity
from rooftile.core.errors import NotLowered
from rooftile.ir.tile import (
    Axis,
    Carry,
    Const,
    Dot,
    For,
    Iota,
    Kernel,
    Let,
    Load,
    Map,
    Reduce,
    Ref,
    Rename,
    Scope,
    Stmt,
    Store,
    Tile,
    rebuild,
    subtiles,
)

_COMBINE = {"sum": "add", "prod": "mul", "max": "max", "min": "min"}


def loop_over(kernel: Kernel, name: str, tile: int) -> Kernel:
    """The kernel with its whole axis `name` run through in loops of tiles.

    NotLowered where a dot that spans the axis would be computed in more than one loop.
    """
    return _Looper(kernel, name, tile).run()


class _Looper:
    def __init__(self, kernel: Kernel, name: str, tile: int) -> None:
        self.kernel = kernel
        self.name = name
        self.axis = next(axis for axis in kernel.whole if axis.name == name)
        self.tile = tile
        self.scope = Scope(kernel)
        self.spanning: dict[str, Tile] = {}
        """Lets that span the axis: each loop that needs them computes them."""
        self.loops = 0
        self.numbers = 0
        self.computed: set[str] = set()

    def run(self) -> Kernel:
        whole = tuple(axis for axis in self.kernel.whole if axis.name != self.name)
        return replace(self.kernel, whole=whole, body=self.block(self.kernel.body))

    def block(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        """Statements with the loops that they need in front of them."""
        found: list[Stmt] = []
        for stmt in body:
            if isinstance(stmt, For):
                found.append(self.inside(stmt, found))
                continue
            stmt = replace(stmt, expr=self.reduced(stmt.expr, found))
            if isinstance(stmt, Let):
                self.scope.define(stmt.name, stmt.expr)
                if self.name in self.scope.dims(stmt.expr):
                    self.spanning[stmt.name] = stmt.expr
                else:
                    found.append(stmt)
            elif any(self.name in part.names for part in stmt.affine):
                found.append(self.storing(stmt))
            else:
                found.append(stmt)
        return tuple(found)

    def inside(self, loop: For, found: list[Stmt]) -> For:
        """A loop along another axis, whose body may need loops along this one."""
        starts = [replace(c, init=self.reduced(c.init, found)) for c in loop.carry]
        for carry in starts:
            self.scope.define(carry.name, carry.init)
        body = list(self.block(loop.body))
        carries = [replace(c, next=self.reduced(c.next, body)) for c in starts]
        return replace(loop, body=tuple(body), carry=tuple(carries))

    def reduced(self, tile: Tile, found: list[Stmt]) -> Tile:
        """A tile with each reduction over the axis in it done in a loop before."""
        if isinstance(tile, Reduce) and tile.axis == self.name:
            return self.reduction(tile, found)
        if isinstance(tile, Dot) and self.name in tile.over:
            return self.reduction(tile, found)
        return rebuild(tile, lambda part: self.reduced(part, found))

    def reduction(self, tile: Reduce | Dot, found: list[Stmt]) -> Tile:
        dims, dtype = self.scope.dims(tile), self.scope.dtype(tile)
        name = self.fresh("c")
        axis, rename = self.next_axis()
        operands = (tile.x,) if isinstance(tile, Reduce) else (tile.a, tile.b)
        lets = self.needed(operands, rename)
        if isinstance(tile, Dot):
            start = Const(0, dtype, dims) if tile.acc is None else tile.acc
            over = tuple(axis.name if n == self.name else n for n in tile.over)
            step: Tile = replace(tile, a=rename(tile.a), b=rename(tile.b), over=over, acc=Ref(name))
        else:
            start = Const(identity(tile.op, dtype), dtype, dims)
            part = Reduce(tile.op, rename(tile.x), axis.name)
            step = Map(_COMBINE[tile.op], (Ref(name), part))
        found.append(For(axis, tuple(lets), (Carry(name, start, step),)))
        self.scope.tiles[name] = (dims, dtype)
        return Ref(name)

    def storing(self, stmt: Store) -> For:
        axis, rename = self.next_axis()
        index = tuple(
            part.substitute({self.name: axis.name}) if isinstance(part, Affine) else rename(part)
            for part in stmt.index
        )
        lets = self.needed((stmt.expr, *stmt.tiles), rename)
        return For(axis, (*lets, replace(stmt, index=index, expr=rename(stmt.expr))))

    def next_axis(self) -> tuple[Axis, Callable[[Tile], Tile]]:
        """A loop's axis, and the change of expressions to run along it."""
        name = self.name if not self.loops else f"{self.name}_{self.loops}"
        self.loops += 1
        lets = {old: self.fresh("t") for old in self.spanning}

        def rename(tile: Tile) -> Tile:
            if isinstance(tile, Ref):
                return Ref(lets.get(tile.name, tile.name))
            if isinstance(tile, Load):
                index = tuple(
                    p.substitute({self.name: name}) if isinstance(p, Affine) else rename(p)
                    for p in tile.index
                )
                return replace(tile, index=index)
            if isinstance(tile, Iota):
                return Iota(name if tile.axis == self.name else tile.axis)
            if isinstance(tile, Const):
                return replace(tile, dims=tuple(name if d == self.name else d for d in tile.dims))
            if isinstance(tile, Rename):
                raise NotLowered(f"{self.name}: a tile is renamed along it")
            return rebuild(tile, rename)

        return replace(self.axis, name=name, tile=self.tile), rename

    def needed(self, tiles: tuple[Tile, ...], rename: Callable[[Tile], Tile]) -> list[Let]:
        """The spanning Lets that tiles are made of, in order, under the loop's own names."""
        used: set[str] = set()
        todo = list(tiles)
        while todo:
            for part in subtiles(todo.pop()):
                if isinstance(part, Ref) and part.name in self.spanning and part.name not in used:
                    used.add(part.name)
                    todo.append(self.spanning[part.name])
        for name in used:
            if any(isinstance(part, Dot) for part in subtiles(self.spanning[name])):
                if name in self.computed:
                    raise NotLowered(f"a dot along {self.name} would be computed again")
                self.computed.add(name)
        found = []
        for name, tile in self.spanning.items():
            if name in used:
                ref = rename(Ref(name))
                assert isinstance(ref, Ref)
                found.append(Let(ref.name, rename(tile)))
        return found

    def fresh(self, letter: str) -> str:
        self.numbers += 1
        return f"{letter}_{self.name}{self.numbers}"
