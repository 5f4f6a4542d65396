"""Packings made in one pass: tensors in some order, each into a gap below what is there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from rooftile.memory.packing import Tensor
from rooftile.memory.sections import Ints

_FAR = 1 << 60


def orders(tensors: Sequence[Tensor]) -> Iterator[Ints]:
    """Orders that work well on real models: by size, by area, by lifetime, by time."""
    lower, upper, size = np.array(tensors, np.int64).reshape(-1, 3).T
    life = upper - lower
    yield np.lexsort((-life, -size))
    yield np.lexsort((-life, -size.astype(float) * life))
    yield np.lexsort((-size, -life))
    yield np.lexsort((-size, lower))


def place(tensors: Sequence[Tensor], order: Ints, tightest: bool = False) -> Ints:
    """Offsets from placing tensors in `order`, in the lowest gap or in the tightest one."""
    lower, upper, size = np.array(tensors, np.int64).reshape(-1, 3).T
    # What is placed is kept sorted by offset: only then are gaps found in one sweep.
    begins: Ints = np.empty(len(tensors), np.int64)
    placed: Ints = np.empty(len(tensors), np.int64)
    offsets: Ints = np.zeros(len(tensors), np.int64)
    for count, tensor in enumerate(order):
        near = placed[:count]
        near = near[(lower[near] < upper[tensor]) & (upper[near] > lower[tensor])]
        at = _gap(offsets[near], offsets[near] + size[near], int(size[tensor]), tightest)
        offsets[tensor] = at
        where = int(np.searchsorted(begins[:count], at))
        begins[where + 1 : count + 1] = begins[where:count]
        placed[where + 1 : count + 1] = placed[where:count]
        begins[where], placed[where] = at, tensor
    return offsets


def _gap(starts: Ints, ends: Ints, size: int, tightest: bool) -> int:
    """Where `size` bytes fit between blocks that are sorted by start; above all if nowhere else."""
    if not len(starts):
        return 0
    below = np.maximum.accumulate(np.concatenate(([0], ends)))
    room = np.append(starts, _FAR) - below
    fits = np.flatnonzero(room >= size)
    chosen = fits[np.argmin(room[fits])] if tightest else fits[0]
    return int(below[chosen])
