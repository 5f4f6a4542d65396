"""Block sizes and groups: how the named dims of tiles become the dims of Triton's blocks.

A block's side is a power of two. The M, N and K axes of a Dot are flattened into groups, one block
dim each, so that the pixels (oh, ow) of a convolution are one side of a matrix.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from rooftile.core.errors import NotLowered
from rooftile.ir.tile.query import complete_scope, tile_size
from rooftile.ir.tile.records import Axis, Dot, Kernel, Rename, Tile, expressions, subtiles

Group = tuple[str, ...]
Order = tuple[Group, ...]

_DOT_TYPES = {("f32", "f32"), ("f16", "f16"), ("bf16", "bf16"), ("i8", "i8")}


class Blocks:
    """The block size of each axis that is a dim, and the group that it belongs to."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.scope = complete_scope(kernel)
        self.axes = kernel.axes
        self.sizes = {name: self._size(axis) for name, axis in self.axes.items() if axis.is_dim}
        self.groups: dict[str, Group] = {name: (name,) for name in self.sizes}
        tiles = [sub for top in expressions(kernel.body) for sub in subtiles(top)]
        for tile in tiles:
            if isinstance(tile, Dot) and self.is_matrix(tile):
                for side in self.sides(tile):
                    self._join(side)
        for tile in tiles:
            if isinstance(tile, Dot) and self.is_matrix(tile):
                self._check(tile)
                self._widen(tile)
        self._equalise([tile for tile in tiles if isinstance(tile, Rename)])

    def sides(self, dot: Dot) -> tuple[Group, Group, Group]:
        """The M, N and K axes of a Dot without batch axes."""
        a, b = self.scope.dims(dot.a), self.scope.dims(dot.b)
        rows = tuple(name for name in a if name not in dot.over)
        cols = tuple(name for name in b if name not in dot.over)
        return rows, cols, dot.over

    def is_matrix(self, dot: Dot) -> bool:
        """Whether `tl.dot` computes it: a matrix product, in a type that it takes."""
        types = (self.scope.dtype(dot.a), self.scope.dtype(dot.b))
        if types not in _DOT_TYPES or dot.dtype in ("f64", "i64"):
            return False
        rows, cols, over = self.sides(dot)
        return bool(rows and cols and over) and not set(rows) & set(cols)

    def order(self, dims: Iterable[str]) -> Order:
        """The groups of some axes, each once."""
        return tuple(dict.fromkeys(self.groups[name] for name in dims))

    def of(self, tile: Tile) -> Order:
        """The groups that a tile spans."""
        return self.order(self.scope.dims(tile))

    def shape(self, order: Order) -> tuple[int, ...]:
        """Elements along each group."""
        return tuple(math.prod(self.sizes[name] for name in group) for group in order)

    def tile(self, axis: Axis) -> int:
        """Elements of a full tile, no more than the extent."""
        size = tile_size(axis, self.axes)
        return min(size, axis.extent) if isinstance(axis.extent, int) else size

    def is_exact(self, name: str) -> bool:
        """Whether every element of every block of the axis exists, so that no mask is needed."""
        axis = self.axes[name]
        if not axis.is_dim:
            return True
        tile = self.tile(axis)
        whole = isinstance(axis.extent, int) and axis.extent % tile == 0
        return whole and self.sizes[name] == tile

    def _size(self, axis: Axis) -> int:
        try:
            return _power(self.tile(axis))
        except KeyError:
            raise NotLowered(
                f"kernel {self.kernel.name}: axis {axis.name} is whole and its extent "
                f"{axis.extent} is symbolic; Triton needs a tile size"
            ) from None

    def _join(self, side: Group) -> None:
        if len(side) < 2 or all(self.groups[name] == side for name in side):
            return
        for name in side:
            self.groups[name] = side

    def _check(self, dot: Dot) -> None:
        for side in self.sides(dot):
            for name in side:
                if self.groups[name] != side:
                    raise NotLowered(
                        f"kernel {self.kernel.name}: axis {name} is in two groups of matrix dims"
                    )

    def _widen(self, dot: Dot) -> None:
        """Tensor cores need sides of at least 16 elements, or 32 bytes for K."""
        least = (16, 16, 32 if self.scope.dtype(dot.a) == "i8" else 16)
        for side, low in zip(self.sides(dot), least, strict=True):
            size = math.prod(self.sizes[name] for name in side)
            if size < low:
                self.sizes[side[0]] *= low // size

    def _equalise(self, renames: list[Rename]) -> None:
        for _ in renames:
            for tile in renames:
                both = (tile.old, tile.new)
                if any(self.groups[name] != (name,) for name in both):
                    raise NotLowered(
                        f"kernel {self.kernel.name}: rename of {tile.old}, one of several dims"
                    )
                size = max(self.sizes[name] for name in both)
                self.sizes.update(dict.fromkeys(both, size))


def _power(size: int) -> int:
    return 1 << (size - 1).bit_length()
