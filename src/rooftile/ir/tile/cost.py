"""What a kernel needs, counted from its tile program: operations, bytes and scratch."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from rooftile.core.affine import Affine, bind
from rooftile.core.cost import Cost
from rooftile.core.dtype import DType, itemsize
from rooftile.ir.tile.materialise import stored_lets
from rooftile.ir.tile.query import complete_scope, lineage, placed, tile_size, trips
from rooftile.ir.tile.records import (
    Axis,
    Dot,
    For,
    Iterate,
    Kernel,
    Load,
    Map,
    Reduce,
    Scope,
    Store,
    Tile,
    subtiles,
    union,
)


def cost(kernel: Kernel, symbols: Mapping[str, int] | None = None) -> Cost:
    """Operations, compulsory bytes and scratch bytes of one program. `symbols` bind the shapes.

    A Map counts one an element, a Reduce one an input element, a Dot two a multiply-add, each in
    the type of its operands, an Iterate what its steps can come to; moving and converting count
    nothing. What a program computes again because no dim of the tile tells programs apart counts
    again. Each memory buffer is read or written once, as far as the axes reach into it; a gathered
    dim counts the rows touched.
    """
    return _Counter(kernel, symbols or {}).total()


class _Counter:
    def __init__(self, kernel: Kernel, bound: Mapping[str, int]) -> None:
        self.kernel = kernel
        self.bound = bound
        self.scope: Scope = complete_scope(kernel)
        self.axes = self.scope.axes

    def total(self) -> Cost:
        flops: dict[DType, int] = {}
        loads: set[tuple[str, tuple[Affine | Tile, ...]]] = set()
        targets: set[tuple[str, tuple[Affine | Tile, ...]]] = set()
        for top, around, stmt in placed(self.kernel.body):
            for tile in subtiles(top):
                count = self.operations(tile, around)
                if count:
                    dtype = self.operand_type(tile)
                    flops[dtype] = flops.get(dtype, 0) + count
                if isinstance(tile, Load):
                    loads.add((tile.buf, tile.index))
            if isinstance(stmt, Store):
                targets.add((stmt.buf, stmt.index))
            if isinstance(stmt, Store) and stmt.combine and top is stmt.expr:
                dtype = self.scope.dtype(top)
                dims = self.scope.dims(Load(stmt.buf, stmt.index))
                flops[dtype] = flops.get(dtype, 0) + self.elements(dims, around)
        return Cost(flops, self.nbytes(loads), self.nbytes(targets), self.scratch())

    def operand_type(self, tile: Tile) -> DType:
        if isinstance(tile, Dot):
            return self.scope.dtype(tile.a)
        return self.scope.dtype(tile.args[-1] if isinstance(tile, Map) else tile)

    def operations(self, tile: Tile, around: tuple[For, ...]) -> int:
        if isinstance(tile, Map):
            return self.elements(self.scope.dims(tile), around)
        if isinstance(tile, Reduce):
            return self.elements(self.scope.dims(tile.x), around)
        if isinstance(tile, Dot):
            dims = union(self.scope.dims(tile.a), self.scope.dims(tile.b))
            return 2 * self.elements(dims, around)
        if isinstance(tile, Iterate):
            parts = [*subtiles(tile.next), *subtiles(tile.more)]
            each = sum(isinstance(part, Map) for part in parts)
            return each * tile.most * self.elements(self.scope.dims(tile), around)
        return 0

    def elements(self, dims: tuple[str, ...], around: tuple[For, ...]) -> int:
        """Elements of a tile of `dims` in all programs and steps together."""
        spread = {outer.name for name in dims for outer in lineage(self.axes[name], self.axes)}
        steps = [axis for axis in self.kernel.grid if axis.name not in spread]
        steps += [loop.axis for loop in around if loop.axis.name not in spread]
        return math.prod(self.extent(self.axes[name]) for name in dims) * math.prod(
            trips(axis, self.axes, self.bound) for axis in steps
        )

    def extent(self, axis: Axis) -> int:
        return bind(axis.extent, self.bound)

    def touched(self, name: str, index: tuple[Affine | Tile, ...]) -> int:
        """Elements of a buffer that an access can reach; the rows are counted for a gather."""
        rows: tuple[str, ...] = ()
        count = 1
        for part, extent in zip(index, self.kernel.buf(name).shape, strict=True):
            size = bind(extent, self.bound)
            if isinstance(part, Affine):
                extents = {axis: self.extent(self.axes[axis]) for axis in part.names}
                low, high = part.range(extents)
                inside = min(high, size - 1) - max(low, 0) + 1
                count *= max(0, min(inside, math.prod(extents.values())))
            else:
                rows = union(rows, self.scope.dims(part))
        return count * math.prod(self.extent(self.axes[axis]) for axis in rows)

    def nbytes(self, accesses: set[tuple[str, tuple[Affine | Tile, ...]]]) -> int:
        """Bytes of memory buffers, none of them more than once."""
        elements: dict[str, int] = {}
        for name, index in accesses:
            elements[name] = elements.get(name, 0) + self.touched(name, index)
        total = 0
        for name, count in elements.items():
            buf = self.kernel.buf(name)
            size = math.prod(bind(extent, self.bound) for extent in buf.shape)
            if buf.space == "memory":
                total += min(count, size) * itemsize(buf.dtype)
        return total

    def scratch(self) -> int:
        """Bytes of scratch buffers and of the tiles that are held, in one program."""
        total = sum(
            math.prod(bind(extent, self.bound) for extent in buf.shape) * itemsize(buf.dtype)
            for buf in self.kernel.bufs
            if buf.space == "scratch"
        )
        for name in stored_lets(self.kernel, self.scope.dims):
            dims, dtype = self.scope.tiles[name]
            total += self.tile_elements(dims) * itemsize(dtype)
        return total

    def tile_elements(self, dims: Iterable[str]) -> int:
        sizes = [
            min(tile_size(self.axes[name], self.axes, self.bound), self.extent(self.axes[name]))
            for name in dims
        ]
        return math.prod(sizes)
