"""The nodes of a model in an order in which each comes after what it reads."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from heapq import heapify, heappop, heappush
from typing import Any

from rooftile.core.errors import InvalidModel
from rooftile.frontends.onnx.bodies import reads


def in_order(nodes: Sequence[Any], names: Sequence[str], known: Iterable[str]) -> list[int]:
    """Numbers of the nodes, sorted stably; InvalidModel for cycles, unknown and double names."""
    producer: dict[str, int] = {}
    given = set(known)
    for number, node in enumerate(nodes):
        for output in filter(None, node.output):
            if output in producer or output in given:
                raise InvalidModel(
                    f"node {names[number]}: its output {output!r} is computed twice; rename one"
                )
            producer[output] = number
    waits: list[set[int]] = []
    readers: list[list[int]] = [[] for _ in nodes]
    for number, node in enumerate(nodes):
        needed = {name for name in reads(node) if name not in given}
        for name in sorted(name for name in needed if name not in producer):
            raise InvalidModel(
                f"node {names[number]} ({node.op_type}) reads {name!r}, which is neither an input, "
                "an initializer nor the output of a node; the model is incomplete"
            )
        waits.append({producer[name] for name in needed})
        for before in waits[-1]:
            readers[before].append(number)
    return _sorted(waits, readers, names)


def _sorted(waits: list[set[int]], readers: list[list[int]], names: Sequence[str]) -> list[int]:
    missing = [len(before) for before in waits]
    ready = [number for number, count in enumerate(missing) if not count]
    heapify(ready)
    order: list[int] = []
    while ready:
        number = heappop(ready)
        order.append(number)
        for reader in readers[number]:
            missing[reader] -= 1
            if not missing[reader]:
                heappush(ready, reader)
    if len(order) < len(waits):
        stuck = [names[number] for number, count in enumerate(missing) if count]
        raise InvalidModel(f"these nodes wait for one another in a cycle: {', '.join(stuck[:8])}")
    return order
