"""The predicted time of a region: launch, plus for each pass over the data the roofline's two
terms with a partial overlap. Levels of memory follow from working-set sizes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from rooftile.core.dtype import itemsize
from rooftile.core.symbolic import hint
from rooftile.ir.graph import Node, Region, Value
from rooftile.machine.model import Machine
from rooftile.ops import OPS
from rooftile.plan.partition import ANCHORS

ELEMENTWISE_SHARE = 0.25
"""Share of the multiply-add peak that chains of single operations reach: one operation where a
multiply-add does two, and half of the issue slots go to loads and stores."""


@dataclass(frozen=True)
class Prediction:
    """Seconds, and what they were computed from."""

    seconds: float
    flops: int
    read: int
    written: int


def predict(
    region: Region, machine: Machine, flops: int | None = None, threads: int = 1
) -> Prediction:
    """`flops`: what the region's program really computes, where it computes something again.
    `threads`: how many share the work; they meet once."""
    counts = _flops(region)
    own = sum(counts.values())
    total = max(own, flops or 0)
    again = total / own if own else 1.0
    waiting = {value.name: _touched(value, region) for value in region.inputs}
    read, written = sum(waiting.values()), sum(nbytes(value) for value in region.outputs)
    bandwidth = machine.bandwidth_of(machine.level_of(read + written), threads)
    seconds = machine.launch_s + (machine.barrier_s if threads > 1 else 0.0)
    passes = _passes(region)
    for nodes in passes:
        anchor = next((node for node in nodes if node.op in ANCHORS), None)
        rate = machine.peak_of("f32", threads) * ELEMENTWISE_SHARE
        if anchor is not None:
            rate = machine.peak_of(anchor.output.dtype, threads)
        # An input is read from memory by the first pass that needs it.
        moved = sum(waiting.pop(name, 0) for node in nodes for name in node.inputs)
        moved += written if nodes is passes[-1] else 0
        compute = again * sum(counts[node.name] for node in nodes) / rate
        memory = moved / bandwidth
        alpha = machine.overlap["elementwise" if anchor is None else "dot"]
        seconds += max(compute, memory) + alpha * min(compute, memory)
    return Prediction(seconds, total, read, written)


def nbytes(value: Value) -> int:
    """Bytes of a value, of symbolic extents at the numbers at hand."""
    return hint(math.prod(value.dims)) * itemsize(value.dtype)


def _touched(value: Value, region: Region) -> int:
    """Bytes of an input that are read: of a table that is looked up, the rows alone."""
    total = nbytes(value)
    readers = [node for node in region.nodes if value.name in node.inputs]
    lookups = [node for node in readers if _looks_up(node, value.name)]
    if lookups and len(lookups) == len(readers):
        return min(total, sum(nbytes(node.output) for node in lookups))
    return total


def _looks_up(node: Node, name: str) -> bool:
    """Whether a node reads a value as a table alone."""
    tables = {"gather": (0,), "tree_walk": (2, 3)}.get(node.op, ())
    return all(place in tables for place, read in enumerate(node.inputs) if read == name)


def _flops(region: Region) -> dict[str, int]:
    """Operations of each node by its name."""
    values = {value.name: value for value in region.inputs}
    values.update((value.name, value) for node in region.nodes for value in node.outputs)
    return {
        node.name: hint(
            OPS[node.op].flops(
                dict(node.attrs), [values[name] for name in node.inputs], node.outputs
            )
        )
        for node in region.nodes
    }


def _passes(region: Region) -> list[list[Node]]:
    """The nodes by sweep. What needs a finished reduction starts a new one, and so does a dot, conv
    or reduction of what a dot or conv of the same sweep computed."""
    stage: dict[str, int] = {}
    reduced: set[str] = set()
    behind: set[str] = set()
    for node in region.nodes:
        heavy = node.op in ANCHORS or node.op == "reduce"
        number, follows = 0, node.op in ANCHORS
        for name in node.inputs:
            if name in stage:
                fresh = name in reduced or (heavy and name in behind)
                number = max(number, stage[name] + fresh)
        follows |= any(name in behind and stage[name] == number for name in node.inputs)
        for value in node.outputs:
            stage[value.name] = number
            if node.op == "reduce":
                reduced.add(value.name)
            if follows:
                behind.add(value.name)
    passes: list[list[Node]] = [[] for _ in range(1 + max(stage.values(), default=0))]
    for node in region.nodes:
        passes[stage[node.name]].append(node)
    return [nodes for nodes in passes if nodes]
