"""Where the elements of a buffer lie: its physical dims; packing and unpacking in numpy."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from rooftile.core.affine import Affine, Dim, affine, bind, dim
from rooftile.ir.tile.query import halo_of
from rooftile.ir.tile.records import Buf, Part

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class PhysicalDim:
    """`count` cells that hold part `part` of logical dim `dim`, halo and rounding included.

    Neighbours lie `stride` elements apart, times the symbolic extents in `factors`.
    """

    dim: int
    block: int
    part: Part
    count: Dim
    stride: int
    factors: tuple[Affine, ...] = ()


def physical_dims(buf: Buf) -> tuple[PhysicalDim, ...]:
    """The physical dims of a buffer, outermost first."""
    plain: tuple[tuple[int, int, Part], ...] = tuple((d, 1, "all") for d in range(len(buf.shape)))
    found: list[PhysicalDim] = []
    stride = 1
    factors: tuple[Affine, ...] = ()
    for which, block, part in reversed(plain if buf.layout is None else buf.layout):
        count = _count(buf, which, block, part)
        found.append(PhysicalDim(which, block, part, count, stride, factors))
        if isinstance(count, int):
            stride *= count
        else:
            factors = (*factors, count)
    return tuple(reversed(found))


def _count(buf: Buf, which: int, block: int, part: Part) -> Dim:
    if part == "mod":
        return block
    if part == "div":
        extent = buf.shape[which]
        assert isinstance(extent, int), f"{buf.name}: a symbolic dim is not split"
        return -(-extent // block)
    return dim(affine(buf.shape[which]) + sum(halo_of(buf, which)))


def physical_shape(buf: Buf, symbols: Mapping[str, int] | None = None) -> tuple[int, ...]:
    """Cells along each physical dim."""
    return tuple(bind(entry.count, symbols) for entry in physical_dims(buf))


def pack(buf: Buf, array: Array, symbols: Mapping[str, int] | None = None) -> Array:
    """A logical array in the buffer's layout, in its physical shape; halo and rounding hold 0."""
    packed = np.zeros(physical_shape(buf, symbols), array.dtype)
    packed[_positions(buf, array.shape)] = array
    return packed


def unpack(buf: Buf, packed: Array, symbols: Mapping[str, int] | None = None) -> Array:
    """The logical array that a physical one holds; `packed` may be flat."""
    shape = tuple(bind(extent, symbols) for extent in buf.shape)
    cells = packed.reshape(-1)[: math.prod(physical_shape(buf, symbols))]
    found: Array = cells.reshape(physical_shape(buf, symbols))[_positions(buf, shape)]
    return found


def _positions(buf: Buf, shape: tuple[int, ...]) -> tuple[Array, ...]:
    """For each physical dim, the positions of the logical elements."""
    logical = np.indices(shape, sparse=True)
    positions: list[Array] = []
    for entry in physical_dims(buf):
        index = logical[entry.dim] + halo_of(buf, entry.dim)[0]
        if entry.part == "div":
            index = index // entry.block
        elif entry.part == "mod":
            index = index % entry.block
        positions.append(index)
    return tuple(np.broadcast_arrays(*positions)) if positions else ()
