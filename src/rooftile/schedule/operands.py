"""How the operands of a dot lie in memory, as far as sizes of tiles follow from it."""

from __future__ import annotations

from collections.abc import Mapping

from rooftile.core.affine import Affine
from rooftile.core.dtype import itemsize
from rooftile.ir.tile import Dot, Kernel, Load, expressions, subtiles
from rooftile.schedule.rewrites import PAGE

WAYS = 8
"""Lines that each set of the first cache holds, on nearly all machines."""


def starts_panels(kernel: Kernel, buf: str, dim: int, name: str, width: int) -> bool:
    """Whether each access of a buffer along `dim` starts a panel of `width` elements of an axis."""
    for tile in expressions(kernel.body):
        for part in subtiles(tile):
            if isinstance(part, Load) and part.buf == buf:
                index = part.index[dim]
                if not isinstance(index, Affine) or index.const % width:
                    return False
                if any(n != name and c % width for n, c in index.terms):
                    return False
    return True


def clashing_rows(kernel: Kernel, dot: Dot, extents: Mapping[str, int]) -> str | None:
    """The axis along which the nearest rows of a dot's left operand lie whole pages apart; None
    where they do not. All rows of a register tile then have one set of the cache."""
    load = dot.a
    if not isinstance(load, Load):
        return None
    buf = kernel.buf(load.buf)
    parts = [part for part in load.index if isinstance(part, Affine)]
    sizes = [extent for extent in buf.shape if isinstance(extent, int)]
    if min(len(parts), len(sizes)) < len(buf.shape):
        return None
    rows: list[tuple[int, str]] = []
    stride = itemsize(buf.dtype)
    for part, extent in zip(reversed(parts), reversed(sizes), strict=True):
        wide = [(coef, name) for name, coef in part.terms if extents[name] > 1]
        rows += [(coef * stride, name) for coef, name in wide if name not in dot.over]
        stride *= extent
    distance, name = min(rows, default=(1, ""))
    return name if distance % PAGE == 0 else None
