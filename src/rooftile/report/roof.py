"""The least time that work can take on a machine, and what sets it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rooftile.machine import Machine


@dataclass(frozen=True)
class Limit:
    """`seconds` that no program can go below, and the `bound`: compute, or a level of memory."""

    seconds: float
    bound: str


def limit(
    flops: Mapping[str, int], traffic: Mapping[str, int], machine: Machine, threads: int = 1
) -> Limit:
    """The larger of operations over peak and, for each level, bytes over bandwidth.

    `flops` counts by dtype; `traffic` gives the bytes that come from each level of memory or
    from behind it.
    """
    compute = sum(count / machine.peak_of(dtype, threads) for dtype, count in flops.items())
    found = Limit(compute, "compute")
    for level, nbytes in traffic.items():
        seconds = nbytes / machine.bandwidth_of(level, threads)
        if seconds > found.seconds:
            found = Limit(seconds, level)
    return found
