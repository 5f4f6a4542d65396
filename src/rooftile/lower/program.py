"""Ops that go step by step: their record writes the whole kernel, here it meets its buffers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from rooftile.core.affine import Affine
from rooftile.core.errors import NotLowered
from rooftile.core.symbolic import symbolic
from rooftile.ir.graph import Region
from rooftile.ir.tile import (
    Buf,
    Carry,
    For,
    Let,
    Load,
    Stmt,
    Store,
    Tile,
    rebuild,
)
from rooftile.lower.records import Lowered, View
from rooftile.ops import OPS


def whole_program(region: Region, views: Mapping[str, View]) -> Lowered:
    """The kernel of a region of one such node; NotLowered where it would read through views."""
    node = region.root
    if len(region.nodes) > 1:
        raise NotLowered(f"%{node.name}: {node.op} reads memory, not views")
    if any(symbolic(value.dims) for value in (*region.inputs, *region.outputs)):
        raise NotLowered(f"%{node.name}: {node.op} goes over extents that are known before a run")
    values = {value.name: value for value in region.inputs}
    inputs = [values[name] for name in node.inputs]
    program = OPS[node.op].program
    assert program is not None
    kernel = program(node, inputs)
    names = (*node.inputs, node.name)
    memory = [buf for buf in kernel.bufs if buf.space == "memory"]
    moved = {
        buf.name: views[name] for buf, name in zip(memory, names, strict=True) if name in views
    }
    if moved:
        bufs = tuple(_placed(buf, moved) for buf in kernel.bufs)
        kernel = replace(kernel, bufs=bufs, body=_Mover(moved).block(kernel.body))
    buffers = tuple(views[name].buffer if name in views else name for name in names)
    return Lowered(kernel, buffers)


def _placed(buf: Buf, moved: Mapping[str, View]) -> Buf:
    return replace(buf, shape=moved[buf.name].shape) if buf.name in moved else buf


class _Mover:
    """Moves accesses of buffers into the larger buffers that they are parts of."""

    def __init__(self, moved: Mapping[str, View]) -> None:
        self.moved = moved

    def block(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        return tuple(map(self.statement, body))

    def statement(self, stmt: Stmt) -> Stmt:
        if isinstance(stmt, Let):
            return replace(stmt, expr=self.tile(stmt.expr))
        if isinstance(stmt, Store):
            index = self.index(stmt.buf, stmt.index)
            return replace(stmt, index=index, expr=self.tile(stmt.expr))
        carry = tuple(Carry(c.name, self.tile(c.init), self.tile(c.next)) for c in stmt.carry)
        return For(stmt.axis, self.block(stmt.body), carry)

    def tile(self, tile: Tile) -> Tile:
        tile = rebuild(tile, self.tile)
        if isinstance(tile, Load):
            return replace(tile, index=self.index(tile.buf, tile.index))
        return tile

    def index(self, buf: str, index: tuple[Affine | Tile, ...]) -> tuple[Affine | Tile, ...]:
        view = self.moved.get(buf)
        if view is None:
            return index
        found: list[Affine] = []
        for part, start in zip(index, view.start, strict=True):
            if not isinstance(part, Affine):
                raise NotLowered(f"{buf}: a part of a larger buffer cannot be indexed by data")
            found.append(part + start)
        return tuple(found)
