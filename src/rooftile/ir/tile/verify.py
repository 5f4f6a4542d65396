"""The verifier of the tile IR: rules of names, axes, buffers, statements; `types` has those of
expressions. Each InvalidIR names the kernel, the statement and the fix.
"""

from __future__ import annotations

import re

from rooftile.core.affine import Affine, affine
from rooftile.core.dtype import DTYPES, kind
from rooftile.core.errors import InvalidIR
from rooftile.ir.tile.query import halo_of, inside, lineage, symbols
from rooftile.ir.tile.records import (
    Axis,
    Buf,
    Carry,
    For,
    Kernel,
    Let,
    Load,
    Scope,
    Stmt,
    Store,
    Tile,
    expressions,
    loops,
    statements,
    stores,
    subtiles,
)
from rooftile.ir.tile.types import Checker

RESERVED = frozenset(
    ["for", "next", "carry", "memory", "scratch", "whole", "grid", "over", "inf", "nan"]
)
_NAME = re.compile(r"[A-Za-z_]\w*\Z", re.ASCII)


def verify(kernel: Kernel) -> Kernel:
    """The kernel itself, if it keeps every rule; InvalidIR otherwise."""
    _Verifier(kernel).kernel_rules()
    return kernel


class _Verifier:
    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.axes = kernel.axes
        self.grid = {axis.name for axis in kernel.grid}
        self.where = ""

    def need(self, holds: bool, message: str) -> None:
        if not holds:
            place = f" {self.where}:" if self.where else ""
            raise InvalidIR(f"kernel {self.kernel.name}:{place} {message}")

    def kernel_rules(self) -> None:
        self.names()
        for buf in self.kernel.bufs:
            self.where = f"buffer {buf.name}"
            self.buffer(buf)
        known: set[str] = set()
        for axis in self.kernel.grid + self.kernel.whole:
            if axis in self.kernel.whole:
                self.where = f"axis {axis.name}"
                self.need(axis.tile == "whole", "an axis of `whole` has no tile size; use a For")
            self.axis(axis, known)
            known.add(axis.name)
        scope = Scope(self.kernel)
        self.block(self.kernel.body, Checker(self.need, self.kernel, scope, frozenset(known)))
        self.where = ""
        self.in_place()

    def names(self) -> None:
        axes = self.kernel.grid + self.kernel.whole + tuple(x.axis for x in loops(self.kernel.body))
        names = [buf.name for buf in self.kernel.bufs] + [axis.name for axis in axes]
        for stmt in statements(self.kernel.body):
            if isinstance(stmt, Let):
                names.append(stmt.name)
            elif isinstance(stmt, For):
                names += [carry.name for carry in stmt.carry]
        seen = set(symbols(self.kernel))
        for name in [self.kernel.name, *sorted(seen)]:
            self.name(name)
        for name in names:
            self.name(name)
            self.need(name not in seen, f"{name} is named twice; every name is used once")
            seen.add(name)

    def name(self, name: str) -> None:
        fits = _NAME.match(name) is not None and name not in RESERVED
        self.need(
            fits, f"{name!r} is no name; use letters, digits and _ and no word of the grammar"
        )

    def axis(self, axis: Axis, known: set[str] | frozenset[str]) -> None:
        self.where = f"axis {axis.name}"
        small = affine(axis.extent)
        self.need(bool(small.terms) or small.const >= 1, f"extent {axis.extent} is below 1")
        sized = axis.tile in ("whole", "point") or (isinstance(axis.tile, int) and axis.tile >= 1)
        self.need(sized, f'tile {axis.tile!r} is neither "whole", "point" nor at least 1')
        if axis.within is None:
            return
        self.need(axis.within in known, f"it refines {axis.within}, which is not in scope")
        parent = self.axes[axis.within]
        same = parent.extent == axis.extent
        self.need(same, f"its extent {axis.extent} differs from {parent.extent} of {parent.name}")
        self.need(parent.is_dim, f"it refines {parent.name}, which is a point")
        if isinstance(axis.tile, int) and isinstance(parent.tile, int):
            divides = parent.tile % axis.tile == 0
            self.need(
                divides, f"tile {axis.tile} does not divide tile {parent.tile} of {parent.name}"
            )

    def buffer(self, buf: Buf) -> None:
        self.need(buf.dtype in DTYPES, f"no element type {buf.dtype}")
        for extent in buf.shape:
            self.need(bool(affine(extent).terms) or int(affine(extent).const) >= 1, "an empty dim")
        if buf.most is not None:
            fits = kind(buf.dtype) == "uint" and buf.name not in self.kernel.outputs
            fits = fits and buf.space == "memory"
            self.need(fits, "most is for unsigned integers that are only read")
        if buf.halo is not None:
            pairs = len(buf.halo) == len(buf.shape) and all(min(pair) >= 0 for pair in buf.halo)
            self.need(pairs, "halo needs a pair of counts for every dim")
        if buf.layout is None:
            return
        for which in range(len(buf.shape)):
            parts = sorted((part, block) for d, block, part in buf.layout if d == which)
            split = len(parts) == 2 and [p for p, _ in parts] == ["div", "mod"]
            whole = parts == [("all", 1)]
            fits = whole or (split and parts[0][1] == parts[1][1] and parts[0][1] >= 1)
            self.need(
                fits, f"layout is no bijection: dim {which} needs itself, or d/b and d%b once"
            )
            plain = isinstance(buf.shape[which], int) and halo_of(buf, which) == (0, 0)
            self.need(whole or plain, f"dim {which} is split: it takes no symbol and no halo")
        known = all(0 <= d < len(buf.shape) for d, _, _ in buf.layout)
        self.need(known, f"layout names a dim outside rank {len(buf.shape)}")

    def block(self, body: tuple[Stmt, ...], checker: Checker) -> None:
        for stmt in body:
            if isinstance(stmt, Let):
                self.where = f"let {stmt.name}"
                checker.define(stmt.name, stmt.expr)
            elif isinstance(stmt, Store):
                self.where = f"store {stmt.buf}"
                self.store(stmt, checker)
            else:
                self.loop(stmt, checker)

    def loop(self, loop: For, checker: Checker) -> None:
        self.axis(loop.axis, checker.in_scope)
        inner = checker.inside(loop.axis)
        for carry in loop.carry:
            self.where = f"carry {carry.name}"
            checker.check(carry.init)
        for carry in loop.carry:
            self.where = f"carry {carry.name}"
            checker.define(carry.name, carry.init)
            spans = loop.axis.name in checker.scope.dims(carry.init)
            self.need(not spans, f"it spans {loop.axis.name}, the axis of its own loop")
            inner.adopt(carry.name, checker)
        while self.settle(loop, checker, inner):
            pass
        for carry in loop.carry:
            checker.taint(carry.name, inner.tainted(carry.name) - {loop.axis.name})

    def settle(self, loop: For, before: Checker, inner: Checker) -> bool:
        """Check the body once; whether that found new partial reductions in a carry."""
        trial = inner.copy()
        self.block(loop.body, trial)
        found = False
        for carry in loop.carry:
            self.where = f"carry {carry.name}"
            trial.check(carry.next)
            self.step(carry, before, trial)
            partial = trial.partial(carry.next)
            found = found or not partial <= inner.tainted(carry.name)
            inner.taint(carry.name, partial)
        return found

    def step(self, carry: Carry, before: Checker, after: Checker) -> None:
        start, following = before.scope.dims(carry.init), after.scope.dims(carry.next)
        same = set(start) == set(following)
        self.need(same, f"init spans {_list(start)} but next spans {_list(following)}")
        types = before.scope.dtype(carry.init), after.scope.dtype(carry.next)
        self.need(types[0] == types[1], f"init is {types[0]} but next is {types[1]}; cast one")

    def store(self, store: Store, checker: Checker) -> None:
        self.need(store.buf in checker.scope.bufs, "no buffer of that name")
        buf = checker.scope.bufs[store.buf]
        checker.check(store.expr)
        rank = len(buf.shape)
        self.need(len(store.index) == rank, f"{len(store.index)} indices for rank {rank}")
        for which, index in enumerate(store.index):
            if not isinstance(index, Affine):
                checker.check(index)
                whole = kind(checker.scope.dtype(index)) in ("int", "uint")
                self.need(whole, f"an index tile of {checker.scope.dtype(index)}; cast it to i64")
                continue
            checker.axes_in_scope(index)
            fits = inside(index, buf.shape[which], self.axes)
            self.need(fits, f"{index} leaves dim {which} of extent {buf.shape[which]}")
            self.need(self.injective(index), f"{index} in dim {which} is not injective")
        named = {name for index in store.affine for name in index.names}
        reached = named.union(*(checker.scope.dims(part) for part in store.tiles))
        missing = [name for name in checker.scope.dims(store.expr) if name not in reached]
        self.need(not missing, f"the tile spans {_list(missing)}, which no index names")
        if store.scatters:
            self.scattered(store)
        dtype = checker.scope.dtype(store.expr)
        self.need(dtype == buf.dtype, f"a tile of {dtype} for a buffer of {buf.dtype}; cast it")
        tops = (store.expr, *store.tiles)
        partial = sorted({name for top in tops for name in checker.partial(top)})
        self.need(
            not partial,
            f"it holds a partial reduction over {_list(partial)}; carry it, store behind the loop",
        )
        if buf.space == "memory":
            self.races(named)

    def scattered(self, store: Store) -> None:
        known = store.combine in (None, "add", "mul", "max", "min")
        self.need(known, f"no combination {store.combine}; add, mul, max or min")
        for top in (*store.tiles, store.expr):
            reads = any(isinstance(part, Load) and part.buf == store.buf for part in subtiles(top))
            self.need(not reads, "a tile that is scattered reads the buffer it is written to")

    def injective(self, index: Affine) -> bool:
        """Mixed radix: each coefficient exceeds the reach of all smaller ones."""
        span: int | None = 0
        for coef, name in sorted((abs(coef), name) for name, coef in index.terms):
            if span is None or coef <= span:
                return False
            extent = self.axes[name].extent
            span = span + coef * (extent - 1) if isinstance(extent, int) else None
        return True

    def races(self, named: set[str]) -> None:
        held = {outer.name for n in named for outer in lineage(self.axes[n], self.axes)}
        missing = sorted(self.grid - held)
        self.need(
            not missing, f"no index names grid axis {_list(missing)}: programs would overwrite it"
        )

    def in_place(self) -> None:
        """A buffer that is loaded and stored: no program reads what another one writes."""
        written = {store.buf: store for store in stores(self.kernel.body)}
        for tile in (sub for top in expressions(self.kernel.body) for sub in subtiles(top)):
            if not isinstance(tile, Load) or tile.buf not in written:
                continue
            if self.kernel.buf(tile.buf).space == "scratch":
                continue
            self.where = f"load {tile.buf}"
            for mine, theirs in zip(tile.index, written[tile.buf].index, strict=True):
                if not isinstance(theirs, Affine):
                    continue
                target = self.rooted(theirs)
                if self.grid & set(target.names):
                    same = isinstance(mine, Affine) and self.rooted(mine) == target
                    self.need(
                        same, f"it reads at {_show(mine)} what other programs store at {theirs}"
                    )

    def rooted(self, index: Affine) -> Affine:
        """The index with each axis replaced by the outermost one that it refines."""
        roots = {n: lineage(self.axes[n], self.axes)[-1].name for n in index.names}
        return index.substitute(roots)


def _list(names: object) -> str:
    return " ".join(names) if isinstance(names, (list, tuple)) else str(names)


def _show(part: Affine | Tile) -> str:
    return str(part) if isinstance(part, Affine) else "a tile of indices"
