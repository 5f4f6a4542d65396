"""Rewrites of a tile program that keep what it computes: tiling, staging, packing.

Each checks that it is legal and raises InvalidIR where it is not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import count

from rooftile.core.affine import Affine, affine
from rooftile.core.dtype import itemsize
from rooftile.core.errors import InvalidIR
from rooftile.ir.tile import (
    Axis,
    Buf,
    Const,
    Dot,
    For,
    Iota,
    Kernel,
    Let,
    Load,
    Map,
    Part,
    Reduce,
    Ref,
    Rename,
    Stmt,
    Store,
    Tile,
    expressions,
    rebuild,
    statements,
    stores,
    subtiles,
)
from rooftile.ir.tile.query import halo_of

PAGE, LINE = 4096, 64
"""Rows so many bytes apart share the few places of one cache set: a line more keeps them apart."""


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
    _refuse(kernel, name, refusal(kernel, name))
    return replace(
        kernel,
        grid=(*kernel.grid, _cut(axis, tile)),
        whole=tuple(other for other in kernel.whole if other.name != name),
    )


def to_loop(kernel: Kernel, name: str, tile: int, after: int = 0) -> Kernel:
    """Put the statements from number `after` on into a loop over a whole axis."""
    axis = _whole_axis(kernel, name)
    _refuse(kernel, name, refusal(kernel, name, after))
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


def refusal(kernel: Kernel, name: str, after: int = 0) -> str | None:
    """Why the statements from number `after` on cannot be run for one tile of an axis after the
    other; None where they can."""
    if name in reduced_axes(kernel):
        return "something is reduced over it"
    if any(name in _axes_of(tile) for tile in expressions(kernel.body[:after])):
        return "a statement before the loop uses it"
    body = kernel.body[after:]
    parts = [part for tile in expressions(body) for part in subtiles(tile)]
    if any(isinstance(part, Rename) and name in (part.old, part.new) for part in parts):
        return "a tile is renamed along it"
    for store in stores(body):
        named = any(part.coef(name) for part in store.affine)
        if kernel.buf(store.buf).space == "memory" and not named:
            return f"{store.buf} does not name it"
        for load in parts:
            if (
                isinstance(load, Load)
                and load.buf == store.buf
                and _crosses(kernel, load, store, name)
            ):
                return f"{store.buf} is read elsewhere than it is stored"
    return None


def _crosses(kernel: Kernel, load: Load, store: Store, name: str) -> bool:
    """Whether a load along an axis may read what a store at another place of the axis writes."""
    for read, written in zip(load.index, store.index, strict=True):
        if not isinstance(written, Affine) or not isinstance(read, Affine):
            continue
        if written.names == (name,) and read == written:
            return False
        if _apart(kernel, read, written):
            return False
    return load.index != store.index


def _apart(kernel: Kernel, a: Affine, b: Affine) -> bool:
    """Whether two indices of a dim never meet."""
    extents = {name: kernel.axes[name].extent for name in (*a.names, *b.names)}
    sizes = {name: extent for name, extent in extents.items() if isinstance(extent, int)}
    if len(sizes) < len(extents):
        return False
    (a_low, a_high), (b_low, b_high) = a.range(sizes), b.range(sizes)
    return a_high < b_low or b_high < a_low


def _refuse(kernel: Kernel, name: str, why: str | None) -> None:
    if why is not None:
        raise InvalidIR(f"{kernel.name}: {name} cannot be cut, {why}")


def _axes_of(tile: Tile) -> frozenset[str]:
    """The axes that an expression names."""
    found: set[str] = set()
    for part in subtiles(tile):
        if isinstance(part, Load):
            found.update(n for at in part.index if isinstance(at, Affine) for n in at.names)
        elif isinstance(part, Iota):
            found.add(part.axis)
        elif isinstance(part, Const):
            found.update(part.dims)
        elif isinstance(part, Rename):
            found.add(part.new)
    return frozenset(found)


def pack(kernel: Kernel, buf: str, dim: int, block: int) -> Kernel:
    """Lay a buffer out in panels of `block` along `dim`, outermost; the panel's own innermost."""
    old = kernel.buf(buf)
    if old.layout is not None:
        raise InvalidIR(f"{kernel.name}: {buf} has a layout already")
    if not isinstance(old.shape[dim], int) or halo_of(old, dim) != (0, 0):
        raise InvalidIR(f"{kernel.name}: dim {dim} of {buf} has a symbol or a halo: it stays whole")
    rest: tuple[tuple[int, int, Part], ...] = tuple(
        (other, 1, "all") for other in range(len(old.shape)) if other != dim
    )
    layout: tuple[tuple[int, int, Part], ...] = ((dim, block, "div"), *rest, (dim, block, "mod"))
    bufs = tuple(replace(b, layout=layout) if b.name == buf else b for b in kernel.bufs)
    return replace(kernel, bufs=bufs)


def stage(kernel: Kernel, tile: Tile, order: tuple[str, ...], extents: Mapping[str, int]) -> Kernel:
    """Copy what `tile` reads or computes into scratch with its dims in `order`, first of all
    statements.

    `tile` is a load, or a ref to what is computed of loads element by element. `extents` gives the
    size of each axis in `order`; every equal tile reads the copy.
    """
    if not can_stage(kernel, tile, order):
        what = tile.buf if isinstance(tile, Load) else tile
        raise InvalidIR(f"{kernel.name}: {what} cannot be staged along {', '.join(order)}")
    source = computed(kernel, tile)
    taken = {buf.name for buf in kernel.bufs} | set(kernel.axes) | _named_tiles(kernel)
    name = next(n for n in (f"s{number}" for number in count()) if n not in taken)
    loads = [part for part in subtiles(source) if isinstance(part, Load)]
    dtype = kernel.buf(loads[0].buf).dtype
    *outer, last = (extents[axis] for axis in order)
    if outer and last * itemsize(dtype) % PAGE == 0:
        last += LINE // itemsize(dtype)
    copy = Buf(name, (*outer, last), dtype, "scratch")
    index = tuple(affine(axis) for axis in order)

    def change(part: Tile) -> Tile:
        return Load(name, index) if part == tile else rebuild(part, change)

    kept = [s for s in kernel.body if not (isinstance(s, Let) and Ref(s.name) == tile)]
    body: tuple[Stmt, ...] = tuple(_change_all(stmt, change) for stmt in kept)
    return replace(kernel, bufs=(*kernel.bufs, copy), body=(Store(name, index, source), *body))


def can_stage(kernel: Kernel, tile: Tile, order: tuple[str, ...]) -> bool:
    """Whether the kernel's first statement could copy a tile, with dims in `order`."""
    source = computed(kernel, tile)
    loads = [part for part in subtiles(source) if isinstance(part, Load)]
    if not loads or any(not isinstance(p, (Load, Map, Const)) for p in subtiles(source)):
        return False
    around = {axis.name: axis for axis in kernel.grid + kernel.whole}
    written = {store.buf for store in stores(kernel.body)}
    used: set[str] = set()
    for load in loads:
        parts = [part for part in load.index if isinstance(part, Affine)]
        used |= {name for part in parts for name in part.names}
        if len(parts) != len(load.index) or load.pad is not None or load.buf in written:
            return False
    if len({kernel.buf(load.buf).dtype for load in loads}) > 1 or not used <= set(around):
        return False
    return set(order) == {name for name in used if around[name].is_dim}


def computed(kernel: Kernel, tile: Tile) -> Tile:
    """What a ref to a tile that is named at the top of the kernel stands for; else itself."""
    lets = {stmt.name: stmt.expr for stmt in kernel.body if isinstance(stmt, Let)}
    return lets.get(tile.name, tile) if isinstance(tile, Ref) else tile


def _named_tiles(kernel: Kernel) -> set[str]:
    """The names of Lets and Carries."""
    found: set[str] = set()
    for stmt in statements(kernel.body):
        if isinstance(stmt, Let):
            found.add(stmt.name)
        elif isinstance(stmt, For):
            found.update(carry.name for carry in stmt.carry)
    return found


def _change_all(stmt: Stmt, change: Callable[[Tile], Tile]) -> Stmt:
    if isinstance(stmt, For):
        carry = tuple(replace(c, init=change(c.init), next=change(c.next)) for c in stmt.carry)
        return replace(stmt, body=tuple(_change_all(s, change) for s in stmt.body), carry=carry)
    if isinstance(stmt, Store):
        index = tuple(part if isinstance(part, Affine) else change(part) for part in stmt.index)
        return replace(stmt, index=index, expr=change(stmt.expr))
    return replace(stmt, expr=change(stmt.expr))
