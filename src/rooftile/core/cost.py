"""What a piece of work needs, without a machine: operations and bytes. Costs add up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from rooftile.core.dtype import DType


@dataclass(frozen=True)
class Cost:
    """`flops` by dtype (a multiply-add counts two), bytes `read` and `written`, `scratch` bytes."""

    flops: Mapping[DType, int] = field(default_factory=dict)
    read: int = 0
    written: int = 0
    scratch: int = 0

    def __add__(self, other: Cost) -> Cost:
        flops = dict(self.flops)
        for dtype, count in other.flops.items():
            flops[dtype] = flops.get(dtype, 0) + count
        return Cost(
            flops,
            self.read + other.read,
            self.written + other.written,
            max(self.scratch, other.scratch),
        )

    @property
    def total_flops(self) -> int:
        """Operations of all dtypes together."""
        return sum(self.flops.values())

    @property
    def nbytes(self) -> int:
        """Bytes read and written."""
        return self.read + self.written
