"""The records of an explanation: what `explain --json` holds, in its order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from rooftile.report.memory import Memory


@dataclass(frozen=True)
class KernelRow:
    """One launch. `time_ms` and `share` (limit over time) are None where nothing was measured.

    `limit_ms` is the larger of operations over peak and bytes over bandwidth; `bound` says what
    sets it: compute, dram, l3, l2, l1, or launch where a bare call takes longer than the work.
    """

    name: str
    origin: tuple[str, ...]
    ops: tuple[str, ...]
    dtype: str
    flops: int
    bytes_read: int
    bytes_written: int
    bytes_unfused: int
    intensity: float
    time_ms: float | None
    predicted_ms: float
    limit_ms: float
    share: float | None
    bound: str
    schedule: Mapping[str, Any]

    @property
    def lost_ms(self) -> float:
        """Time above the limit."""
        return max(0.0, self.spent_ms - self.limit_ms)

    @property
    def spent_ms(self) -> float:
        """The time, predicted where it was not measured."""
        return self.predicted_ms if self.time_ms is None else self.time_ms


@dataclass(frozen=True)
class LedgerRow:
    """A verdict of the fusion planner. `predicted_ms`: the time of the two as one kernel."""

    producer: str
    consumer: str
    verdict: str
    reason: str
    bytes_saved: int
    flops_added: int
    predicted_ms: float


@dataclass(frozen=True)
class HostRow:
    """An op that runs outside the compiled program."""

    node: str
    op: str
    why: str
    time_ms: float | None


@dataclass(frozen=True)
class TransposeRow:
    """A transpose that moves data: `bytes` read and written, and who needs it."""

    name: str
    bytes: int
    why: str


@dataclass(frozen=True)
class Total:
    """The whole run: times, and the limit of the direct algorithm with compulsory bytes."""

    nodes: int
    flops: int
    bytes: int
    time_ms: float | None
    predicted_ms: float
    limit_ms: float
    share: float | None
    bound: str

    @property
    def spent_ms(self) -> float:
        """The time, predicted where it was not measured."""
        return self.predicted_ms if self.time_ms is None else self.time_ms


@dataclass(frozen=True)
class Explanation:
    """All facts of a compiled model; `to_dict` gives the JSON form."""

    model: str
    machine: Mapping[str, Any]
    total: Total
    kernels: tuple[KernelRow, ...]
    ledger: tuple[LedgerRow, ...]
    memory: Memory
    precision: Mapping[str, int]
    host_ops: tuple[HostRow, ...] = ()
    layout: tuple[TransposeRow, ...] = ()
    findings: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """The explanation as JSON-able values."""
        return asdict(self)

    def with_findings(self, found: tuple[str, ...]) -> Explanation:
        """The same with findings."""
        return replace(self, findings=found)
