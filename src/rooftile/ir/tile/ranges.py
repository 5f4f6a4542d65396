"""What values the elements of an integer tile can have, as far as its operations say."""

from __future__ import annotations

from collections.abc import Callable

from rooftile.core.dtype import DType, itemsize, kind
from rooftile.ir.tile.records import Cast, Const, Iterate, Last, Map, Tile

Range = tuple[int, int]
"""The least and the greatest value."""
TypeOf = Callable[[Tile], DType]


def value_range(tile: Tile, dtype: TypeOf, last: Range | None = None) -> Range:
    """The range of an integer or bool tile; `last` is that of Last. At worst all of the type."""
    whole = _of_type(dtype(tile))
    if isinstance(tile, Const):
        return int(tile.value), int(tile.value)
    if isinstance(tile, Last) and last is not None:
        return last
    if isinstance(tile, Cast) and not tile.bits and kind(dtype(tile.x)) != "float":
        inner = value_range(tile.x, dtype, last)
        return inner if whole[0] <= inner[0] and inner[1] <= whole[1] else whole
    if isinstance(tile, Iterate):
        return iterated(tile, dtype)
    if isinstance(tile, Map):
        return _mapped(tile, whole, dtype, last)
    return whole


def iterated(tile: Iterate, dtype: TypeOf) -> Range:
    """The range of an Iterate, and of Last in it."""
    first, after = value_range(tile.init, dtype), value_range(tile.next, dtype)
    return min(first[0], after[0]), max(first[1], after[1])


def _of_type(dtype: DType) -> Range:
    bits = 1 if dtype == "bool" else 8 * itemsize(dtype)
    return (-(1 << bits - 1), (1 << bits - 1) - 1) if kind(dtype) == "int" else (0, (1 << bits) - 1)


def _mapped(tile: Map, whole: Range, dtype: TypeOf, last: Range | None) -> Range:
    if tile.op not in ("min", "bitand", "bitor", "shr"):
        return whole
    a, b = (value_range(arg, dtype, last) for arg in tile.args)
    if tile.op == "min":
        return min(a[0], b[0]), min(a[1], b[1])
    if min(a[0], b[0]) < 0:
        return whole
    if tile.op == "bitand":
        return 0, min(a[1], b[1])
    if tile.op == "bitor":
        return max(a[0], b[0]), (1 << max(a[1], b[1]).bit_length()) - 1
    return a[0] >> min(b[1], 64), a[1] >> min(b[0], 64)
