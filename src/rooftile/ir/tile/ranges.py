"""What values the elements of an integer tile can have, as far as its operations say."""

from __future__ import annotations

from rooftile.core.dtype import DType, itemsize, kind
from rooftile.ir.tile.records import Cast, Const, Iterate, Last, Load, Map, Scope, Tile

Range = tuple[int, int]
"""The least and the greatest value."""


def value_range(tile: Tile, scope: Scope, last: Range | None = None) -> Range:
    """The range of an integer or bool tile; `last` is that of Last. At worst all of the type."""
    whole = _of_type(scope.dtype(tile))
    if isinstance(tile, Const):
        return int(tile.value), int(tile.value)
    if isinstance(tile, Last) and last is not None:
        return last
    if isinstance(tile, Load) and tile.pad is None:
        most = scope.bufs[tile.buf].most
        return (whole[0], whole[1] if most is None else most)
    if isinstance(tile, Cast) and not tile.bits and kind(scope.dtype(tile.x)) != "float":
        inner = value_range(tile.x, scope, last)
        return inner if whole[0] <= inner[0] and inner[1] <= whole[1] else whole
    if isinstance(tile, Iterate):
        return iterated(tile, scope)
    if isinstance(tile, Map):
        return _mapped(tile, whole, scope, last)
    return whole


def iterated(tile: Iterate, scope: Scope) -> Range:
    """The range of an Iterate, and of Last in it."""
    first, after = value_range(tile.init, scope), value_range(tile.next, scope)
    return min(first[0], after[0]), max(first[1], after[1])


def _of_type(dtype: DType) -> Range:
    bits = 1 if dtype == "bool" else 8 * itemsize(dtype)
    return (-(1 << bits - 1), (1 << bits - 1) - 1) if kind(dtype) == "int" else (0, (1 << bits) - 1)


def _mapped(tile: Map, whole: Range, scope: Scope, last: Range | None) -> Range:
    if tile.op not in ("min", "bitand", "bitor", "shr"):
        return whole
    a, b = (value_range(arg, scope, last) for arg in tile.args)
    if tile.op == "min":
        return min(a[0], b[0]), min(a[1], b[1])
    if min(a[0], b[0]) < 0:
        return whole
    if tile.op == "bitand":
        return 0, min(a[1], b[1])
    if tile.op == "bitor":
        return max(a[0], b[0]), (1 << max(a[1], b[1]).bit_length()) - 1
    return a[0] >> min(b[1], 64), a[1] >> min(b[0], 64)
