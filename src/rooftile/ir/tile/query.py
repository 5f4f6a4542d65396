"""Questions that the verifier, the cost rule and the generators ask of a kernel."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rooftile.core.affine import Affine, Dim, affine, bind
from rooftile.ir.tile.records import Axis, Buf, For, Kernel, Let, Scope, Stmt, Store, Tile


def symbols(kernel: Kernel) -> tuple[str, ...]:
    """Run-time symbols in the shapes of buffers and the extents of axes, sorted."""
    extents: list[Dim] = [dim for buf in kernel.bufs for dim in buf.shape]
    extents += [axis.extent for axis in kernel.axes.values()]
    return tuple(sorted({name for extent in extents for name in affine(extent).names}))


def complete_scope(kernel: Kernel) -> Scope:
    """Dims and dtypes of every Let and Carry of a verified kernel."""
    scope = Scope(kernel)
    _define(scope, kernel.body)
    return scope


def _define(scope: Scope, body: tuple[Stmt, ...]) -> None:
    for stmt in body:
        if isinstance(stmt, Let):
            scope.define(stmt.name, stmt.expr)
        elif isinstance(stmt, For):
            for carry in stmt.carry:
                scope.define(carry.name, carry.init)
            _define(scope, stmt.body)


def placed(
    body: tuple[Stmt, ...], around: tuple[For, ...] = ()
) -> Iterator[tuple[Tile, tuple[For, ...], Stmt]]:
    """The top expressions in order of execution, with the loops around them and their statement.

    A carry's `init` comes before the loop's body, its `next` after.
    """
    for stmt in body:
        if isinstance(stmt, For):
            for carry in stmt.carry:
                yield carry.init, around, stmt
            yield from placed(stmt.body, (*around, stmt))
            for carry in stmt.carry:
                yield carry.next, (*around, stmt), stmt
        else:
            if isinstance(stmt, Store):
                for part in stmt.tiles:
                    yield part, around, stmt
            yield stmt.expr, around, stmt


def reach(index: Affine, axes: Mapping[str, Axis]) -> tuple[Affine, Affine]:
    """Smallest and largest value of an index, affine in symbols."""
    low = high = affine(index.const)
    for name, coef in index.terms:
        span = (affine(axes[name].extent) - 1) * coef
        low, high = (low, high + span) if coef > 0 else (low + span, high)
    return low, high


def never_negative(value: Affine) -> bool:
    """Whether the value is at least 0 for all symbols at least 0."""
    return value.const >= 0 and all(coef >= 0 for _, coef in value.terms)


def inside(
    index: Affine, extent: Dim, axes: Mapping[str, Axis], halo: tuple[int, int] = (0, 0)
) -> bool:
    """Whether an index stays in `-halo[0] .. extent+halo[1]-1` for all values of its axes."""
    low, high = reach(index, axes)
    room = affine(extent) - 1 + halo[1] - high
    return never_negative(low + halo[0]) and never_negative(room)


def lineage(axis: Axis, axes: Mapping[str, Axis]) -> tuple[Axis, ...]:
    """The axis and the axes that it refines, innermost first."""
    chain = [axis]
    while chain[-1].within is not None:
        chain.append(axes[chain[-1].within])
    return tuple(chain)


def tile_size(axis: Axis, axes: Mapping[str, Axis], bound: Mapping[str, int] | None = None) -> int:
    """Elements of a full tile: 1 for point, the parent's tile or the extent for whole."""
    if axis.tile == "point":
        return 1
    if axis.tile == "whole":
        extent = bind(axis.extent, bound)
        return extent if axis.within is None else tile_size(axes[axis.within], axes, bound)
    return int(axis.tile)


def trips(axis: Axis, axes: Mapping[str, Axis], bound: Mapping[str, int] | None = None) -> int:
    """Tiles of an axis in its extent, or in one tile of the axis that it refines."""
    room = bind(axis.extent, bound)
    if axis.within is not None:
        room = min(room, tile_size(axes[axis.within], axes, bound))
    return -(-room // max(1, tile_size(axis, axes, bound)))


def halo_of(buf: Buf, which: int) -> tuple[int, int]:
    """Halo cells below and above dim `which`."""
    return buf.halo[which] if buf.halo else (0, 0)
