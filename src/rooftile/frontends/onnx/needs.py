"""Values that a reader must know before the run: what they are computed from."""

from __future__ import annotations

import math
from collections.abc import Mapping

from rooftile.core.dtype import kind
from rooftile.core.errors import NeedsValue
from rooftile.ir.graph import Value
from rooftile.ops.builder import Builder

SMALL_INTS = 64
"""Inputs of up to so many integers are taken for axes, sizes and the like."""
SMALL_FLOATS = 8
"""Inputs of up to so many floats are taken for scales, limits and the like."""


class Missing(NeedsValue):
    """NeedsValue as a reader raises it: about a value of the builder."""

    def __init__(self, message: str, value: Value) -> None:
        super().__init__(message)
        self.value = value


def missing(message: str, value: Value, builder: Builder) -> NeedsValue:
    """The error about `value`, with the graph's inputs whose contents would do."""
    found = Missing(message, value)
    sources = _sources(value, builder)
    if sources and all(map(is_small, sources)):
        found.inputs = tuple(source.name for source in sources)
    return found


def explained(error: NeedsValue, known: Mapping[str, Value], builder: Builder) -> None:
    """Say which values among `known` determine the one that is missing."""
    if not isinstance(error, Missing):
        return
    names: dict[str, str] = {}
    for name, value in known.items():
        names.setdefault(value.name, name)
    makers = {value.name: node for node in builder.nodes for value in node.outputs}
    found: dict[str, None] = {}
    left, seen = [error.value.name], set()
    while left:
        own = left.pop()
        if own in seen or own in builder.constants:
            continue
        seen.add(own)
        if own in names:
            found[names[own]] = None
        elif own in makers:
            left += makers[own].inputs
    error.values = tuple(found)


def is_small(value: Value) -> bool:
    """Whether a value is so small that its content may be taken as part of the model."""
    count = math.prod(value.dims)
    return count <= (SMALL_FLOATS if kind(value.dtype) == "float" else SMALL_INTS)


def _sources(value: Value, builder: Builder) -> list[Value]:
    """The inputs of the graph that a value is computed from."""
    makers = {item.name: node for node in builder.nodes for item in node.outputs}
    inputs = {item.name: item for item in builder.inputs}
    found: dict[str, Value] = {}
    left, seen = [value.name], set()
    while left:
        name = left.pop()
        if name in seen:
            continue
        seen.add(name)
        if name in inputs:
            found[name] = inputs[name]
        elif name in makers:
            left += makers[name].inputs
    return list(found.values())
