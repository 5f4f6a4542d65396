"""Indices whose strides only a run knows: the dim of the buffer is taken as several.

A dim of B*S elements, indexed by `b*S + s`, is the same memory as two dims of B and of S elements,
indexed by b and by s. The tile IR has no other way to say a stride that is no number.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from rooftile.core.affine import Affine
from rooftile.core.errors import NotLowered
from rooftile.core.symbolic import Sym, hint, symbolic, to_dim
from rooftile.ir.tile import (
    Buf,
    Const,
    Kernel,
    Let,
    Load,
    Store,
    Tile,
    expressions,
    rebuild,
    subtiles,
)
from rooftile.lower.tidy import accesses

Place = tuple[str, int]
"""A buffer and a dim of it."""


def with_named_extents(kernel: Kernel) -> Kernel:
    """A fresh kernel, whose extents are ints and symbols, as the tile IR takes it.

    NotLowered where a number of the run became part of an index or of a constant.
    """
    strides = _open_strides(kernel)
    if strides:
        kernel = _Splitter(kernel, strides).run()
    for tile in (part for top in expressions(kernel.body) for part in subtiles(top)):
        if isinstance(tile, Const) and isinstance(tile.value, Sym):
            raise NotLowered(f"{tile.value} is a number of the run: it is no constant")
    for _, index, _ in accesses(kernel):
        for part in index:
            if isinstance(part, Affine) and symbolic((part.const, *_coefs(part))):
                raise NotLowered(f"index {part} moves by a number of the run")
    bufs = tuple(replace(buf, shape=tuple(map(to_dim, buf.shape))) for buf in kernel.bufs)  # type: ignore
    whole = tuple(replace(axis, extent=to_dim(axis.extent)) for axis in kernel.whole)  # type: ignore
    return replace(kernel, bufs=bufs, whole=whole)


def _coefs(part: Affine) -> list[int]:
    return [coef for _, coef in part.terms]


def _open_strides(kernel: Kernel) -> dict[Place, list[int]]:
    """The symbolic strides along each dim that has any, largest first."""
    found: dict[Place, dict[int, None]] = {}
    for buf, index, _ in accesses(kernel):
        for dim, part in enumerate(index):
            for coef in _coefs(part) if isinstance(part, Affine) else ():
                if isinstance(coef, Sym):
                    found.setdefault((buf, dim), {})[coef] = None
    return {place: sorted(coefs, key=hint, reverse=True) for place, coefs in found.items()}


class _Splitter:
    """Gives buffers their dims apart, and accesses their indices."""

    def __init__(self, kernel: Kernel, strides: Mapping[Place, list[int]]) -> None:
        self.kernel = kernel
        self.strides = strides

    def run(self) -> Kernel:
        body = []
        for stmt in self.kernel.body:
            assert isinstance(stmt, (Let, Store))
            stmt = replace(stmt, expr=self.tile(stmt.expr))
            if isinstance(stmt, Store):
                index = tuple(p if isinstance(p, Affine) else self.tile(p) for p in stmt.index)
                stmt = replace(stmt, index=self.index(stmt.buf, index, None))
            body.append(stmt)
        return replace(
            self.kernel, bufs=tuple(map(self.buffer, self.kernel.bufs)), body=tuple(body)
        )

    def tile(self, tile: Tile) -> Tile:
        tile = rebuild(tile, self.tile)
        if isinstance(tile, Load):
            return replace(tile, index=self.index(tile.buf, tile.index, tile.pad))
        return tile

    def buffer(self, buf: Buf) -> Buf:
        shape: list[Any] = []
        for dim, extent in enumerate(buf.shape):
            sizes: Any = extent
            for stride in self.strides.get((buf.name, dim), ()):
                outer = sizes // stride
                if outer * stride != sizes:
                    raise NotLowered(f"{buf.name}: {sizes} is no multiple of {stride}")
                shape.append(outer)
                sizes = stride
            shape.append(sizes)
        return replace(buf, shape=tuple(shape))

    def index(
        self, buf: str, index: tuple[Affine | Tile, ...], pad: float | None
    ) -> tuple[Affine | Tile, ...]:
        found: list[Affine | Tile] = []
        for dim, part in enumerate(index):
            strides = self.strides.get((buf, dim), [])
            if strides and (pad is not None or not isinstance(part, Affine) or part.const):
                raise NotLowered(f"{buf}: index {part} of a dim of {strides[0]} times others")
            for stride in strides:
                outer, part = _parted(part, stride)
                found.append(outer)
            found.append(part)
        return tuple(found)


def _parted(part: Any, stride: int) -> tuple[Affine, Affine]:
    """The terms that move by multiples of a stride, in its units, and the others."""
    outer, rest = Affine(), Affine()
    for name, coef in part.terms:
        times = coef // stride if isinstance(coef, Sym) else 0
        if times and times * stride == coef:
            outer = outer + Affine(((name, times),))
        else:
            rest = rest + Affine(((name, coef),))
    return outer, rest
