"""The append-only record of what the compiler decided and why; reports are made from it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Decision:
    """One decision: the `stage` that made it, its `subject`, the `verdict` and the `reason`.

    `facts` holds figures by name, with units in the name (`bytes_saved`, `predicted_ms`).
    """

    stage: str
    subject: tuple[str, ...]
    verdict: str
    reason: str
    facts: dict[str, Any] = field(default_factory=dict)


class Journal:
    """Decisions in the order in which they were made."""

    def __init__(self, decisions: tuple[Decision, ...] = ()) -> None:
        self._decisions = list(decisions)

    def add(
        self, stage: str, subject: tuple[str, ...], verdict: str, reason: str, **facts: Any
    ) -> None:
        """Append a decision."""
        self._decisions.append(Decision(stage, subject, verdict, reason, facts))

    def of(self, stage: str) -> list[Decision]:
        """The decisions of one stage."""
        return [entry for entry in self._decisions if entry.stage == stage]

    def __iter__(self) -> Iterator[Decision]:
        return iter(self._decisions)

    def __len__(self) -> int:
        return len(self._decisions)
