"""Arrays in the physical order that a kernel's buffer asks for."""

from __future__ import annotations

import numpy as np

from rooftile.ir.graph import Array
from rooftile.ir.tile import Buf


def packed(buf: Buf, array: Array) -> Array:
    """The logical `array` with the buffer's halo (zeros) and blocks, C-contiguous."""
    if buf.halo:
        array = np.pad(array, buf.halo)
    if buf.layout is None:
        return np.ascontiguousarray(array)
    blocks = {dim: block for dim, block, part in buf.layout if part == "mod"}
    rest = [(0, -extent % blocks.get(dim, 1)) for dim, extent in enumerate(array.shape)]
    array = np.pad(array, rest)
    shape: list[int] = []
    where: dict[tuple[int, str], int] = {}
    for dim, extent in enumerate(array.shape):
        if dim in blocks:
            where[dim, "div"], where[dim, "mod"] = len(shape), len(shape) + 1
            shape += [extent // blocks[dim], blocks[dim]]
        else:
            where[dim, "all"] = len(shape)
            shape.append(extent)
    order = [where[dim, part] for dim, _, part in buf.layout]
    return np.ascontiguousarray(array.reshape(shape).transpose(order))
