"""Col2Im: the columns of sliding blocks added up where they overlap."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from rooftile.frontends.onnx.call import Call
from rooftile.frontends.onnx.registry import reads
from rooftile.ir.graph import Array, Value

MAX_TABLE = 1 << 28
"""Entries of the table of what each pixel sums up."""


@reads("Col2Im", since=18)
def col2im(call: Call) -> Value:
    """Each pixel is the sum of the block elements that lie on it: a gather, then a sum."""
    x = call.input(0)
    image, block = call.input_ints(1, "image_shape"), call.input_ints(2, "block_shape")
    rank = len(image)
    dilations, strides = call.ints("dilations", [1] * rank), call.ints("strides", [1] * rank)
    pads = call.ints("pads", [0] * 2 * rank)
    lists = (block, dilations, strides)
    if x.rank != 3 or any(len(item) != rank or min(item, default=1) < 1 for item in lists):
        call.invalid(f"block_shape, dilations and strides must be {rank} positive numbers each")
    if len(pads) != 2 * rank or min((*pads, *image), default=0) < 0:
        call.invalid(f"pads {list(pads)} must be {2 * rank} numbers, none negative")
    taps = math.prod(block)
    counts = []
    for dim, extent in enumerate(image):
        whole = extent + pads[dim] + pads[rank + dim] - dilations[dim] * (block[dim] - 1) - 1
        counts.append(whole // strides[dim] + 1)
    if x.dims[1] % taps or x.dims[2] != math.prod(counts) or min(counts, default=1) < 1:
        call.invalid(f"{list(x.shape)} is not {counts} blocks of {list(block)}")
    if max(1, math.prod(image)) * taps > MAX_TABLE:
        call.unsupported(f"an image of {list(image)} with blocks of {list(block)}")
    table = _table(image, block, counts, dilations, strides, pads[:rank])
    channels = x.dims[1] // taps
    flat = call.reshape(x, (x.dims[0], channels, taps * x.dims[2]))
    flat = call.emit("pad", flat, low=(0, 0, 0), high=(0, 0, 1), value=0.0)
    taken = call.emit("gather", flat, call.constant(table, "i64"), axis=2)
    total = call.emit("reduce", taken, op="sum", dims=(3,))
    return call.reshape(total, (x.dims[0], channels, *image))


def _table(
    image: Sequence[int],
    block: Sequence[int],
    counts: Sequence[int],
    dilations: Sequence[int],
    strides: Sequence[int],
    low: Sequence[int],
) -> Array:
    """[pixels, summands]: indices into [taps * blocks]; one behind the last stands for nothing."""
    blocks, nothing = math.prod(counts), math.prod(block) * math.prod(counts)
    rows = []
    for number, tap in enumerate(np.ndindex(*block)):
        index, there = np.zeros(image, np.int64), np.ones(image, np.bool_)
        for dim, part in enumerate(tap):
            shape = [-1 if other == dim else 1 for other in range(len(image))]
            place = np.arange(image[dim]) + low[dim] - part * dilations[dim]
            which = place // strides[dim]
            fits = (place % strides[dim] == 0) & (which >= 0) & (which < counts[dim])
            index = index * counts[dim] + which.reshape(shape)
            there &= fits.reshape(shape)
        rows.append(np.where(there, number * blocks + index, nothing).ravel())
    table = np.sort(np.stack(rows, -1), axis=-1)
    return table[:, : max(1, int((table < nothing).sum(-1).max(initial=1)))]
