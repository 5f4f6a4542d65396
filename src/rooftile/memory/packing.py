"""What a packing is, what it cannot go below, and whether it is sound."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass

from rooftile.core.errors import InvalidOption

Tensor = tuple[int, int, int]
"""A buffer: live in the half-open interval [lower, upper), and its size in bytes."""


@dataclass(frozen=True)
class Packing:
    """An offset for each tensor, the bytes that they need, and a bound that no packing beats."""

    offsets: tuple[int, ...]
    peak: int
    lower_bound: int


def validate(tensors: Sequence[Tensor]) -> None:
    """InvalidOption for a tensor that never lives, or whose size is negative."""
    for index, (lower, upper, size) in enumerate(tensors):
        if upper <= lower:
            raise InvalidOption(
                f"tensor {index} lives in [{lower}, {upper}), which is empty; upper must be greater"
            )
        if size < 0:
            raise InvalidOption(f"tensor {index} has size {size}; a size cannot be negative")


def lower_bound(tensors: Sequence[Tensor]) -> int:
    """The largest sum of sizes that are live at one time: no packing needs fewer bytes."""
    changes: dict[int, int] = {}
    for lower, upper, size in tensors:
        changes[lower] = changes.get(lower, 0) + size
        changes[upper] = changes.get(upper, 0) - size
    live = most = 0
    for time in sorted(changes):
        live += changes[time]
        most = max(most, live)
    return most


def check(tensors: Sequence[Tensor], packing: Packing) -> None:
    """InvalidOption if two tensors that live together overlap, or one leaves [0, peak)."""
    validate(tensors)
    if len(packing.offsets) != len(tensors):
        raise InvalidOption(f"{len(packing.offsets)} offsets were given for {len(tensors)} tensors")
    for index, ((_, _, size), offset) in enumerate(zip(tensors, packing.offsets, strict=True)):
        if offset < 0 or offset + size > packing.peak:
            raise InvalidOption(
                f"tensor {index} at {offset} to {offset + size} leaves 0 to {packing.peak}"
            )
    live: list[tuple[int, int]] = []
    for index in sorted(range(len(tensors)), key=lambda index: tensors[index][0]):
        lower, upper, size = tensors[index]
        while live and live[0][0] <= lower:
            heapq.heappop(live)
        if size == 0:
            continue
        start = packing.offsets[index]
        for _, other in live:
            begin = packing.offsets[other]
            if begin < start + size and start < begin + tensors[other][2]:
                raise InvalidOption(f"tensors {other} and {index} live together and overlap")
        heapq.heappush(live, (upper, index))
