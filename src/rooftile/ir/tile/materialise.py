"""Which Lets become memory or registers, computed once, and which are recomputed at each use."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from rooftile.ir.tile.query import complete_scope
from rooftile.ir.tile.records import (
    Dot,
    For,
    Kernel,
    Let,
    Load,
    Map,
    Reduce,
    Ref,
    Scope,
    Stmt,
    Store,
    Tile,
    children,
    subtiles,
)

EXPENSIVE = frozenset({"exp", "erf", "tanh", "log", "div", "sqrt"})
"""Scalar operations that cost more than keeping their result."""


def materialised(kernel: Kernel) -> frozenset[str]:
    """Names of the Lets that must be held.

    A Let is held where
    - it contains a Dot, a Reduce or an expensive Map, and it is used more than once, in a loop
      inside its own, in an operand of a Dot or Reduce, or by an expression of more dims;
    - it reads a buffer that is stored to, or a carry that changes, before it is used;
    - it is used in a Dot's operand and is more than a Load.
    What a Let takes from another that is not held counts as its own.
    """
    census = _Census(complete_scope(kernel))
    census.block(kernel.body)
    return census.held()


@dataclass
class _Use:
    clock: int
    loops: tuple[int, ...]
    dims: int
    reduced: bool
    dotted: bool


@dataclass
class _Entry:
    expr: Tile
    clock: int
    depth: int
    uses: list[_Use] = field(default_factory=list)


class _Census:
    """Lets, their uses, and when buffers and carries change, by a clock that statements advance.

    A loop is known by the clock at its start; `ends` has the clock behind it.
    """

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.lets: dict[str, _Entry] = {}
        self.changes: dict[str, list[int]] = {}
        self.ends: dict[int, int] = {}
        self.loops: tuple[int, ...] = ()
        self.clock = 0

    def block(self, body: tuple[Stmt, ...]) -> None:
        for stmt in body:
            self.clock += 1
            if isinstance(stmt, Let):
                self.use(stmt.expr)
                self.lets[stmt.name] = _Entry(stmt.expr, self.clock, len(self.loops))
            elif isinstance(stmt, Store):
                self.use(stmt.expr)
                self.change(stmt.buf)
            else:
                self.loop(stmt)

    def loop(self, loop: For) -> None:
        for carry in loop.carry:
            self.use(carry.init)
            self.change(carry.name)
        self.clock += 1
        start = self.clock
        self.loops += (start,)
        self.block(loop.body)
        self.clock += 1
        for carry in loop.carry:
            self.use(carry.next)
        self.clock += 1
        for carry in loop.carry:
            self.change(carry.name)
        self.loops = self.loops[:-1]
        self.ends[start] = self.clock

    def change(self, name: str) -> None:
        self.changes.setdefault(name, []).append(self.clock)

    def use(self, top: Tile) -> None:
        self._use(top, len(self.scope.dims(top)), False, False)

    def _use(self, tile: Tile, dims: int, reduced: bool, dotted: bool) -> None:
        if isinstance(tile, Ref) and tile.name in self.lets:
            self.lets[tile.name].uses.append(_Use(self.clock, self.loops, dims, reduced, dotted))
        for child, in_dot in _operands(tile):
            inner = reduced or in_dot or isinstance(tile, Reduce)
            wide = max(dims, len(self.scope.dims(tile)))
            self._use(child, wide, inner, dotted or in_dot)

    def held(self) -> frozenset[str]:
        found: set[str] = set()
        for name, entry in self.lets.items():
            if self.must_hold(entry, found):
                found.add(name)
        return frozenset(found)

    def must_hold(self, entry: _Entry, found: set[str]) -> bool:
        parts = list(self.inlined(entry.expr, found))
        dims = len(self.scope.dims(entry.expr))
        uses = entry.uses
        if any(map(_costly, parts)) and (
            len(uses) > 1
            or any(u.reduced or len(u.loops) > entry.depth or u.dims > dims for u in uses)
        ):
            return True
        sources = {p.buf for p in parts if isinstance(p, Load)}
        sources |= {p.name for p in parts if isinstance(p, Ref)}
        last = max((self.last(use, entry) for use in uses), default=0)
        if any(entry.clock <= at < last for name in sources for at in self.changes.get(name, ())):
            return True
        return any(use.dotted for use in uses) and not isinstance(entry.expr, Load)

    def last(self, use: _Use, entry: _Entry) -> int:
        """When a use happens for the last time: at the end of the loops between it and the Let."""
        between = use.loops[entry.depth :]
        return self.ends[between[0]] if between else use.clock

    def inlined(self, tile: Tile, found: set[str]) -> Iterator[Tile]:
        """Everything in an expression, through Lets that are not held."""
        for sub in subtiles(tile):
            yield sub
            if isinstance(sub, Ref) and sub.name in self.lets and sub.name not in found:
                yield from self.inlined(self.lets[sub.name].expr, found)


def _operands(tile: Tile) -> list[tuple[Tile, bool]]:
    """The children of an expression, and whether each is an operand of a Dot."""
    if isinstance(tile, Dot):
        both = [(tile.a, True), (tile.b, True)]
        return both if tile.acc is None else [*both, (tile.acc, False)]
    return [(child, False) for child in children(tile)]


def _costly(tile: Tile) -> bool:
    return isinstance(tile, (Dot, Reduce)) or (isinstance(tile, Map) and tile.op in EXPENSIVE)
