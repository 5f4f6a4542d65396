"""Random tile kernels that keep the verifier's rules, from a seed.

`exact` kernels hold small whole numbers and no rounding operation, so that every right code
generator gives the same bits; the others (`smooth`) have no jumps, so that rounding stays small.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from tile_expressions import HALVES, Expressions

from rooftile.core.affine import affine
from rooftile.core.dtype import kind, to_numpy
from rooftile.core.errors import InvalidIR
from rooftile.ir.tile import (
    Buf,
    Carry,
    Const,
    For,
    Kernel,
    Let,
    Load,
    Map,
    Reduce,
    Ref,
    Stmt,
    Store,
    Tile,
)
from rooftile.ir.tile.verify import verify


@dataclass(frozen=True)
class Sample:
    """A verified kernel and arrays for its inputs."""

    kernel: Kernel
    arrays: dict[str, npt.NDArray[np.generic]]
    exact: bool
    symbols: dict[str, int]


def sample(seed: int) -> Sample:
    """The kernel of a seed, always the same one."""
    for attempt in range(100):
        maker = _Maker(random.Random(seed * 100 + attempt))
        try:
            return maker.make()
        except InvalidIR:
            continue
    raise AssertionError(f"seed {seed} gives no valid kernel in 100 attempts")


class _Maker(Expressions):
    """Statements, and the whole kernel."""

    def let(self, dims: Sequence[str], dtype: str, depth: int) -> Let:
        name = self.fresh("t")
        tile = self.expr(dims, depth, dtype)
        self.scope.define(name, tile)
        self.lets.append(name)
        return Let(name, tile)

    def dtype(self) -> str:
        types = [self.float, self.float, self.float, "i32", "i64", "u8", "bool"]
        return self.rng.choice([*types, *HALVES] if self.exact else types)

    def store(self, dims: Sequence[str], depth: int) -> Store:
        rng, dtype = self.rng, self.dtype()
        tile = self.expr(dims, depth, dtype)
        if dtype in HALVES:
            tile = self._small(tile, dtype)
        order = list(dims)
        rng.shuffle(order)
        index, shape = [], []
        for name in order:
            if "N" + name in self.symbols:
                index.append(affine(name))
                shape.append(affine("N" + name))
                continue
            coef = rng.choice((1, 1, 1, 1, 2))
            shift = rng.choice((0, 0, 1))
            index.append(affine(name) * coef + shift)
            shape.append(coef * (self.extent[name] - 1) + 1 + shift + rng.randint(0, 1))
        buf = Buf(self.fresh("y"), tuple(shape), dtype)
        if shape and rng.random() < 0.3:
            buf = replace(buf, layout=self._layout(shape))
        self.bufs.append(buf)
        self.scope.bufs[buf.name] = buf
        return Store(buf.name, tuple(index), tile)

    def stage(self) -> list[Stmt]:
        """A scratch buffer that holds a tile over whole axes."""
        names = [axis.name for axis in self.whole if self.rng.random() < 0.6]
        if not names or self.rng.random() < 0.7:
            return []
        tile = self._spanning((), names, 1, self.float)
        shape = tuple(self.extent[name] for name in names)
        buf = Buf(self.fresh("z"), shape, self.float, "scratch")
        self.bufs.append(buf)
        self.scope.bufs[buf.name] = buf
        let = Let(self.fresh("t"), Load(buf.name, tuple(affine(name) for name in names)))
        self.scope.define(let.name, let.expr)
        self.lets.append(let.name)
        return [Store(buf.name, tuple(affine(name) for name in names), tile), let]

    def loop(self) -> For | None:
        if self.loop_axis is None:
            return None
        rng, axis = self.rng, self.loop_axis
        carries: list[tuple[str, tuple[str, ...], Tile]] = []
        for _ in range(rng.randint(1, 3)):
            dims = tuple(n for n in self.out if self.scope.axes[n].is_dim and rng.random() < 0.7)
            init = Const(rng.choice((0, 1)), self.float, dims)
            carries.append((self.fresh("c"), dims, init))
        outside = list(self.lets)
        for name, _, init in carries:
            self.scope.define(name, init)
            self.lets.append(name)
        inner = [*self.out, "k"]
        if axis.is_dim:
            self.reduced.append("k")
        body: list[Stmt] = [self.let(inner, self.float, 2) for _ in range(rng.randint(0, 2))]
        if rng.random() < 0.2:
            body.append(self.store(inner, 1))
        made = [Carry(name, init, self._next(name, dims)) for name, dims, init in carries]
        if axis.is_dim:
            self.reduced.remove("k")
        self.lets = [*outside, *(name for name, _, _ in carries)]
        return For(axis, tuple(body), tuple(made))

    def _next(self, name: str, dims: tuple[str, ...]) -> Tile:
        assert self.loop_axis is not None
        usable = (*dims, *(n for n in self.out if not self.scope.axes[n].is_dim))
        if self.loop_axis.is_dim:
            part: Tile = Reduce(
                self.rng.choice(("sum", "max")), self._spanning(usable, ("k",), 1, self.float), "k"
            )
        else:
            part = self.expr((*usable, "k"), 2, self.float)
        op = self.rng.choice(("add", "max", "sub"))
        return Map(op, (Ref(name), part))

    def make(self) -> Sample:
        rng = self.rng
        body: list[Stmt] = [*self.stage()]
        for _ in range(rng.randint(0, 2)):
            body.append(self.let([*self.out, *self.reduced], self.dtype(), rng.randint(1, 3)))
        loop = self.loop()
        if loop is not None:
            body.append(loop)
        for _ in range(rng.randint(0, 1)):
            body.append(self.let(self.out, self.dtype(), 2))
        body += [self.store(self.out, rng.randint(1, 3)) for _ in range(rng.choice((1, 1, 2)))]
        bufs = tuple(self.bufs)
        kernel = verify(Kernel("fuzz", bufs, self.grid, self.whole, tuple(body)))
        return Sample(kernel, self._arrays(kernel), self.exact, dict(self.symbols))

    def _arrays(self, kernel: Kernel) -> dict[str, npt.NDArray[np.generic]]:
        generator = np.random.default_rng(self.rng.randrange(1 << 30))
        arrays: dict[str, npt.NDArray[np.generic]] = {}
        for buf in kernel.bufs:
            if buf.space != "memory":
                continue
            shape = tuple(affine(extent).value(self.symbols) for extent in buf.shape)
            low = 0 if kind(buf.dtype) in ("uint", "bool") else -2
            values = generator.integers(low, 2 if kind(buf.dtype) == "bool" else 3, shape)
            if kind(buf.dtype) == "float" and not self.exact:
                values = generator.uniform(-1, 1, shape)
            arrays[buf.name] = np.asarray(values).astype(to_numpy(buf.dtype))
        return arrays
