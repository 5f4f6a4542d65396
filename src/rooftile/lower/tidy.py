"""Makes a freshly lowered program short: single uses inlined, axes that always run together
joined into one, buffers that nothing reads dropped, canonical names."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

from rooftile.core.affine import Affine, Dim, affine
from rooftile.core.affine import dim as dim_of
from rooftile.ir.tile import (
    Axis,
    Buf,
    Cast,
    Dot,
    Iota,
    Kernel,
    Let,
    Load,
    Map,
    Reduce,
    Ref,
    Rename,
    Stmt,
    Store,
    Tile,
    expressions,
    rebuild,
    statements,
    subtiles,
)


def tidied(kernel: Kernel) -> tuple[Kernel, frozenset[str]]:
    """The kernel made short, and the names of the buffers that it kept."""
    kernel = name_operands(inline_single_uses(kernel))
    kernel = drop_unused(kernel)
    kernel = join_axes(kernel)
    return rename_axes(kernel), frozenset(buf.name for buf in kernel.bufs)


def inline_single_uses(kernel: Kernel) -> Kernel:
    """Lets that are used once go into their use, unless they hold a reduction at the top."""
    uses: Counter[str] = Counter(
        part.name
        for tile in expressions(kernel.body)
        for part in subtiles(tile)
        if isinstance(part, Ref)
    )
    inlined: dict[str, Tile] = {}

    def change(tile: Tile) -> Tile:
        if isinstance(tile, Ref) and tile.name in inlined:
            return inlined[tile.name]
        return rebuild(tile, change)

    body: list[Stmt] = []
    numbers = 0
    for stmt in kernel.body:
        assert isinstance(stmt, (Let, Store))
        tile = change(stmt.expr)
        if isinstance(stmt, Let):
            if uses[stmt.name] == 0:
                continue
            if uses[stmt.name] == 1 and not isinstance(tile, (Dot, Reduce)):
                inlined[stmt.name] = tile
                continue
            name = f"t{numbers}"
            numbers += 1
            inlined[stmt.name] = Ref(name)
            body.append(Let(name, tile))
        else:
            body.append(replace(stmt, expr=tile))
    return replace(kernel, body=tuple(body))


def name_operands(kernel: Kernel) -> Kernel:
    """Operands of a Dot that are computed, not only read, get a Let: it may be worth keeping."""
    body: list[Stmt] = []
    count = sum(isinstance(stmt, Let) for stmt in kernel.body)

    def operand(tile: Tile) -> Tile:
        nonlocal count
        tile = change(tile)
        if not isinstance(tile, (Map, Cast)):
            return tile
        name = f"t{count}"
        count += 1
        body.append(Let(name, tile))
        return Ref(name)

    def change(tile: Tile) -> Tile:
        if isinstance(tile, Dot):
            return replace(tile, a=operand(tile.a), b=operand(tile.b))
        return rebuild(tile, change)

    for stmt in kernel.body:
        assert isinstance(stmt, (Let, Store))
        tile = change(stmt.expr)
        body.append(replace(stmt, expr=tile))
    return replace(kernel, body=tuple(body))


def drop_unused(kernel: Kernel) -> Kernel:
    """Without the buffers and axes that no statement names."""
    loads = [part for tile in expressions(kernel.body) for part in subtiles(tile)]
    bufs = {part.buf for part in loads if isinstance(part, Load)}
    bufs |= {stmt.buf for stmt in statements(kernel.body) if isinstance(stmt, Store)}
    axes = {name for part in _indices(kernel) for name in part.names}
    axes |= {part.axis for part in loads if isinstance(part, (Iota, Reduce))}
    axes |= {name for part in loads if isinstance(part, Dot) for name in part.over}
    return replace(
        kernel,
        bufs=tuple(buf for buf in kernel.bufs if buf.name in bufs),
        whole=tuple(axis for axis in kernel.whole if axis.name in axes),
    )


def _indices(kernel: Kernel) -> list[Affine]:
    found = [
        part
        for tile in expressions(kernel.body)
        for load in subtiles(tile)
        if isinstance(load, Load)
        for part in load.index
        if isinstance(part, Affine)
    ]
    for stmt in statements(kernel.body):
        if isinstance(stmt, Store):
            found += stmt.affine
    return found


def join_axes(kernel: Kernel) -> Kernel:
    """Neighbouring axes that every access runs through together become one axis."""
    while True:
        for outer in kernel.whole:
            for inner in kernel.whole:
                joined = _joined(kernel, outer, inner) if outer is not inner else None
                if joined is not None:
                    kernel = joined
                    break
            else:
                continue
            break
        else:
            return kernel


def _joined(kernel: Kernel, outer: Axis, inner: Axis) -> Kernel | None:
    """The kernel with `outer * extent(inner) + inner` as one axis, if each access allows it."""
    if not isinstance(inner.extent, int):
        return None
    where: dict[str, int] = {}
    for buf, index, pad in accesses(kernel):
        places = _places(index, outer.name, inner.name)
        if places is None:
            return None
        if not places:
            continue
        dim = places[0]
        plain = index[dim] == Affine(((outer.name, 1),))
        plain = plain and index[dim + 1] == Affine(((inner.name, 1),))
        shape = kernel.buf(buf).shape
        if not plain or shape[dim + 1] != inner.extent or shape[dim] != outer.extent:
            return None
        if where.setdefault(buf, dim) != dim or pad is not None:
            return None
    for buf, index, _ in accesses(kernel):
        if buf in where and not _places(index, outer.name, inner.name):
            return None
    if not _reduced_together(kernel, outer.name, inner.name) or not where:
        return None
    return _rewrite_joined(kernel, outer, inner, where)


def _places(index: tuple[Affine | Tile, ...], outer: str, inner: str) -> list[int] | None:
    """[dim of outer] where inner follows it; [] where neither occurs; None for anything else."""
    a = [d for d, p in enumerate(index) if isinstance(p, Affine) and p.coef(outer)]
    b = [d for d, p in enumerate(index) if isinstance(p, Affine) and p.coef(inner)]
    if not a and not b:
        return []
    if len(a) == 1 and len(b) == 1 and b[0] == a[0] + 1:
        return a
    return None


def accesses(kernel: Kernel) -> list[tuple[str, tuple[Affine | Tile, ...], float | None]]:
    """Buffer, index and padding of each load and each store."""
    found: list[tuple[str, tuple[Affine | Tile, ...], float | None]] = []
    for tile in expressions(kernel.body):
        found += [(p.buf, p.index, p.pad) for p in subtiles(tile) if isinstance(p, Load)]
    found += [(s.buf, s.index, None) for s in statements(kernel.body) if isinstance(s, Store)]
    return found


def _reduced_together(kernel: Kernel, outer: str, inner: str) -> bool:
    """Whether reductions take both axes or neither; and nothing asks for a position along one."""
    for tile in expressions(kernel.body):
        if not _nested_reductions(tile, outer, inner):
            return False
        for part in subtiles(tile):
            if isinstance(part, Iota) and part.axis in (outer, inner):
                return False
            if isinstance(part, Rename) and {part.old, part.new} & {outer, inner}:
                return False
            if isinstance(part, Dot) and (outer in part.over) != (inner in part.over):
                return False
    return True


def _nested_reductions(tile: Tile, outer: str, inner: str) -> bool:
    """Whether each reduction over one axis is directly around, or inside, one over the other."""
    reductions = [part for part in subtiles(tile) if isinstance(part, Reduce)]
    around = [part for part in reductions if part.axis == outer]
    inside = [part for part in reductions if part.axis == inner]
    below = [part.x for part in around if isinstance(part.x, Reduce) and part.x.op == part.op]
    return below == inside and len(below) == len(around)


def _rewrite_joined(kernel: Kernel, outer: Axis, inner: Axis, where: dict[str, int]) -> Kernel:
    assert isinstance(inner.extent, int)
    extent = dim_of(affine(outer.extent) * inner.extent)

    def index(buf: str, parts: tuple[Any, ...]) -> tuple[Any, ...]:
        if buf not in where:
            return parts
        dim = where[buf]
        return (*parts[: dim + 1], *parts[dim + 2 :])

    def change(tile: Tile) -> Tile:
        if isinstance(tile, Reduce) and tile.axis == outer.name:
            assert isinstance(tile.x, Reduce)
            return Reduce(tile.op, change(tile.x.x), outer.name)
        tile = rebuild(tile, change)
        if isinstance(tile, Load):
            return replace(tile, index=index(tile.buf, tile.index))
        if isinstance(tile, Dot):
            return replace(tile, over=tuple(a for a in tile.over if a != inner.name))
        return tile

    body: list[Stmt] = []
    for stmt in kernel.body:
        assert isinstance(stmt, (Let, Store))
        stmt = replace(stmt, expr=change(stmt.expr))
        if isinstance(stmt, Store):
            stmt = replace(stmt, index=index(stmt.buf, stmt.index))
        body.append(stmt)
    bufs = tuple(_flattened(b, where[b.name]) if b.name in where else b for b in kernel.bufs)
    whole = tuple(
        replace(axis, extent=extent) if axis.name == outer.name else axis
        for axis in kernel.whole
        if axis.name != inner.name
    )
    return replace(kernel, bufs=bufs, whole=whole, body=tuple(body))


def _flattened(buf: Buf, dim: int) -> Buf:
    first, second = buf.shape[dim], buf.shape[dim + 1]
    assert isinstance(second, int)
    both = dim_of(affine(first) * second)
    shape: tuple[Dim, ...] = (*buf.shape[:dim], both, *buf.shape[dim + 2 :])
    return replace(buf, shape=shape)


def rename_axes(kernel: Kernel) -> Kernel:
    """Refined axes such as `n.0` get plain names."""
    names = {axis.name: axis.name.replace(".", "_") for axis in kernel.whole}
    if all(old == new for old, new in names.items()):
        return kernel

    def index(parts: tuple[Affine | Tile, ...]) -> tuple[Affine | Tile, ...]:
        return tuple(p.substitute(names) if isinstance(p, Affine) else change(p) for p in parts)

    def change(tile: Tile) -> Tile:
        if isinstance(tile, Load):
            return replace(tile, index=index(tile.index))
        tile = rebuild(tile, change)
        if isinstance(tile, (Iota, Reduce)):
            return replace(tile, axis=names[tile.axis])
        if isinstance(tile, Dot):
            return replace(tile, over=tuple(names[axis] for axis in tile.over))
        return tile

    body: list[Stmt] = []
    for stmt in kernel.body:
        assert isinstance(stmt, (Let, Store))
        stmt = replace(stmt, expr=change(stmt.expr))
        if isinstance(stmt, Store):
            moved = tuple(part.substitute(names) for part in stmt.affine)
            stmt = replace(stmt, index=moved)
        body.append(stmt)
    whole = tuple(replace(axis, name=names[axis.name]) for axis in kernel.whole)
    return replace(kernel, whole=whole, body=tuple(body))
