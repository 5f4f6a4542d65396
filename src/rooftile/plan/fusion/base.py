"""What a fusion rule is: legality alone. Profit is the planner's question."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from rooftile.plan.partition import Group, Partition

Refusal = str
"""Why two groups cannot be one kernel, in words."""


@dataclass(frozen=True)
class Rule:
    """`applies` says whether the rule is about this pair; `refuse` gives a reason, or None."""

    name: str
    applies: Callable[[Group, Group], bool]
    refuse: Callable[[Partition, Group, Group], Refusal | None]


__all__ = ["Group", "Partition", "Refusal", "Rule", "kinds", "never", "only"]


def kinds(group: Group) -> frozenset[str]:
    """The kinds of op in a group."""
    return frozenset(group.kinds())


def only(group: Group, *allowed: str) -> bool:
    """Whether all nodes are of the kinds given."""
    return kinds(group) <= frozenset(allowed)


def never(partition: Partition, producer: Group, consumer: Group) -> Refusal | None:
    """Nothing to refuse."""
    return None
