"""Which function computes which op on the host, and what kinds of values it gives.

A kind is "tensor" (numbers that kernels take), "string" (a tensor of Python strings), "map", or
one of these inside "seq(...)" or "optional(...)".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Kinds = tuple[str, ...]
Gives = Callable[[Sequence[str], Mapping[str, Any]], Kinds]
"""Kinds of the outputs, from the kinds of the inputs ("" for one left out) and the attributes."""


@dataclass(frozen=True)
class HostOp:
    """`function` takes the inputs by position (None for one left out) and the attributes by name;
    it gives one value, or a tuple of the outputs.
    """

    op: str
    domain: str
    function: Callable[..., Any]
    gives: Gives
    why: str


BODIES: dict[tuple[str, str], HostOp] = {}
"""By domain and op."""


def tensors(kinds: Sequence[str], attributes: Mapping[str, Any]) -> Kinds:
    """Numbers in every output."""
    return ("tensor",)


def strings(kinds: Sequence[str], attributes: Mapping[str, Any]) -> Kinds:
    """Strings in every output."""
    return ("string",)


def same(kinds: Sequence[str], attributes: Mapping[str, Any]) -> Kinds:
    """What the first input is."""
    return (kinds[0],)


def body(
    op: str, *, gives: Gives = tensors, domain: str = "", why: str = ""
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a function for an op. A last kind that `gives` names holds for all further outputs.

    `why` says for reports what keeps the op out of kernels.
    """

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        BODIES[domain, op] = HostOp(op, domain, function, gives, why)
        return function

    return register


def find_body(domain: str, op: str) -> HostOp | None:
    """The host op, or None."""
    return BODIES.get((domain, op))
