"""The predicted time of a region: launch, plus for each pass over the data the roofline's two
terms with a partial overlap. Levels of memory follow from working-set sizes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rooftile.core.dtype import itemsize
from rooftile.ir.graph import Array, Node, Region, Value
from rooftile.machine.model import Machine
from rooftile.ops import OPS

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
    region: Region,
    machine: Machine,
    constants: Mapping[str, Array],
    flops: int | None = None,
) -> Prediction:
    """`flops`: what the region's program really computes, where it recomputes something."""
    passes = _passes(region)
    values = {v.name: v for v in region.inputs}
    own = sum(_flops(node, region) for node in region.nodes)
    factor = max(1.0, flops / own) if flops is not None and own else 1.0
    seconds = machine.launch_s
    read = sum(_touched(value, region) for value in region.inputs)
    written = sum(nbytes(value) for value in region.outputs)
    level = machine.level_of(read + written)
    seen: set[str] = set()
    last = passes[-1] if passes else []
    for nodes in passes:
        dot = any(node.op in ("dot", "conv") for node in nodes)
        work = sum(_flops(node, region) for node in nodes) * factor
        rate = machine.peak_of("f32") * (1.0 if dot else ELEMENTWISE_SHARE)
        moved = 0
        for node in nodes:
            for name in node.inputs:
                if name in values and name not in seen:
                    seen.add(name)
                    moved += _touched(values[name], region)
        if nodes is last:
            moved += written
        compute, memory = work / rate, moved / machine.bandwidth[level]
        alpha = machine.overlap["dot" if dot else "elementwise"]
        seconds += max(compute, memory) + alpha * min(compute, memory)
    return Prediction(seconds, int(own * factor), read, written)


def nbytes(value: Value) -> int:
    """Bytes of a value."""
    return math.prod(value.dims) * itemsize(value.dtype)


def _touched(value: Value, region: Region) -> int:
    """Bytes of an input that are read: of a gathered table, the rows alone."""
    total = nbytes(value)
    gathers = [n for n in region.nodes if n.op == "gather" and n.inputs[0] == value.name]
    others = [n for n in region.nodes if value.name in n.inputs and n not in gathers]
    if gathers and not others:
        return min(total, sum(nbytes(node.output) for node in gathers))
    return total


def _flops(node: Node, region: Region) -> int:
    values = {v.name: v for n in region.nodes for v in n.outputs}
    values.update((v.name, v) for v in region.inputs)
    inputs = [values[name] for name in node.inputs if name in values]
    if len(inputs) < len(node.inputs):
        return 0
    return OPS[node.op].flops(dict(node.attrs), inputs, node.outputs)


def _passes(region: Region) -> list[list[Node]]:
    """The nodes by sweep: what needs a finished reduction, or a dot after a dot, is a new one."""
    stage: dict[str, int] = {}
    for node in region.nodes:
        number = 0
        for name in node.inputs:
            if name not in stage:
                continue
            producer = next(n for n in region.nodes if any(v.name == name for v in n.outputs))
            fresh = producer.op == "reduce" or (
                node.op in ("dot", "conv", "reduce")
                and producer.op not in ("cast",)
                and stage[name] == _anchor_stage(region.nodes, stage)
            )
            number = max(number, stage[name] + (1 if fresh else 0))
        for value in node.outputs:
            stage[value.name] = number
    count = max(stage.values(), default=0) + 1
    passes: list[list[Node]] = [[] for _ in range(count)]
    for node in region.nodes:
        passes[stage[node.name]].append(node)
    return [nodes for nodes in passes if nodes]


def _anchor_stage(nodes: Sequence[Node], stage: Mapping[str, int]) -> int:
    """The latest sweep that has a dot or conv; -1 where there is none yet."""
    return max(
        (stage[n.name] for n in nodes if n.op in ("dot", "conv") and n.name in stage), default=-1
    )
