"""Rewrites of a tile program that keep what it computes: tiling, staging, packing.

Each checks that it is legal and raises InvalidIR where it is not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from rooftile.core.affine import Affine, affine
from rooftile.core.errors import InvalidIR
from rooftile.ir.tile import (
    Axis,
    Buf,
    Dot,
    For,
    Kernel,
    Load,
    Part,
    Reduce,
    Stmt,
    Store,
    Tile,
    expressions,
    rebuild,
    stores,
    subtiles,
)


def reduced_axes(kernel: Kernel) -> frozenset[str]:
    """Axes over which something is reduced: no program may hold only a part of them."""
    found: set[str] = set()
    for tile in expressions(kernel.body):
        for part in subtiles(tile):
            if isinstance(part, Reduce):
                found.add(part.axis)
            elif isinstance(part, Dot):
                found.update(part.over)
    return frozenset(found)


def to_grid(kernel: Kernel, name: str, tile: int | str) -> Kernel:
    """Cut a whole axis into the tiles of the grid, behind the axes already there.

    `tile` is a number of elements or "point". Every store must name the axis.
    """
    axis = _whole_axis(kernel, name)
    _check_free(kernel, name)
    for store in stores(kernel.body):
        memory = kernel.buf(store.buf).space == "memory"
        if memory and not any(part.coef(name) for part in store.index):
            raise InvalidIR(f"{kernel.name}: {name} cannot be cut, {store.buf} does not name it")
    return replace(
        kernel,
        grid=(*kernel.grid, _cut(axis, tile)),
        whole=tuple(other for other in kernel.whole if other.name != name),
    )


def to_loop(kernel: Kernel, name: str, tile: int, after: int = 0) -> Kernel:
    """Put the statements from number `after` on into a loop over a whole axis."""
    axis = _whole_axis(kernel, name)
    _check_free(kernel, name)
    loop = For(_cut(axis, tile), kernel.body[after:])
    return replace(
        kernel,
        body=(*kernel.body[:after], loop),
        whole=tuple(other for other in kernel.whole if other.name != name),
    )


def _cut(axis: Axis, tile: int | str) -> Axis:
    if tile == "point":
        return replace(axis, tile="point")
    assert isinstance(tile, int)
    return replace(axis, tile=min(tile, axis.extent) if isinstance(axis.extent, int) else tile)


def _whole_axis(kernel: Kernel, name: str) -> Axis:
    for axis in kernel.whole:
        if axis.name == name:
            return axis
    raise InvalidIR(f"{kernel.name}: {name} is not a whole axis")


def _check_free(kernel: Kernel, name: str) -> None:
    if name in reduced_axes(kernel):
        raise InvalidIR(f"{kernel.name}: {name} cannot be cut, something is reduced over it")


def pack(kernel: Kernel, buf: str, dim: int, block: int) -> Kernel:
    """Lay a buffer out in panels of `block` along `dim`, outermost; the panel's own innermost."""
    old = kernel.buf(buf)
    if old.layout is not None:
        raise InvalidIR(f"{kernel.name}: {buf} has a layout already")
    rest: tuple[tuple[int, int, Part], ...] = tuple(
        (other, 1, "all") for other in range(len(old.shape)) if other != dim
    )
    layout: tuple[tuple[int, int, Part], ...] = ((dim, block, "div"), *rest, (dim, block, "mod"))
    bufs = tuple(replace(b, layout=layout) if b.name == buf else b for b in kernel.bufs)
    return replace(kernel, bufs=bufs)


def stage(kernel: Kernel, load: Load, order: tuple[str, ...], extents: Mapping[str, int]) -> Kernel:
    """Copy what `load` reads into scratch with its dims in `order`, first of all statements.

    `extents` gives the size of each axis in `order`; every equal load reads the copy.
    """
    used = {name for part in load.index if isinstance(part, Affine) for name in part.names}
    if load.pad is not None or not set(order) <= used:
        raise InvalidIR(f"{kernel.name}: {load.buf} cannot be staged along {', '.join(order)}")
    name = f"s{sum(buf.space == 'scratch' for buf in kernel.bufs)}"
    shape = tuple(extents[axis] for axis in order)
    copy = Buf(name, shape, kernel.buf(load.buf).dtype, "scratch")
    index = tuple(affine(axis) for axis in order)

    def change(tile: Tile) -> Tile:
        return Load(name, index) if tile == load else rebuild(tile, change)

    body: tuple[Stmt, ...] = tuple(_change_all(stmt, change) for stmt in kernel.body)
    return replace(kernel, bufs=(*kernel.bufs, copy), body=(Store(name, index, load), *body))


def _change_all(stmt: Stmt, change: object) -> Stmt:
    assert callable(change)
    if isinstance(stmt, For):
        carry = tuple(replace(c, init=change(c.init), next=change(c.next)) for c in stmt.carry)
        return replace(stmt, body=tuple(_change_all(s, change) for s in stmt.body), carry=carry)
    return replace(stmt, expr=change(stmt.expr))
