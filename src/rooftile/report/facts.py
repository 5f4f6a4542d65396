"""Gathers the explanation of a compiled model.

Everything comes from the journal, the program, the machine and measured times; what is missing
there is written by the stage that knows it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from rooftile.core.journal import Decision, Journal
from rooftile.ir.program import HostCall, Launch, Loop, Program
from rooftile.ir.program.records import label
from rooftile.machine import Machine
from rooftile.report.findings import findings
from rooftile.report.memory import memory_of
from rooftile.report.records import Explanation, HostRow, KernelRow, LedgerRow, Total, TransposeRow
from rooftile.report.roof import Limit, limit

Part = tuple[Program, "Sequence[float] | None"]
"""A program, and the measured time of each of its steps, as `Executable.profile` gives it."""


def explain(
    program: Program, journal: Journal, machine: Machine, seconds: Sequence[float] | None = None
) -> Explanation:
    """The explanation of a model that is one program."""
    return explain_parts(program.name, [(program, seconds)], journal, machine)


def explain_parts(
    model: str,
    parts: Sequence[Part],
    journal: Journal,
    machine: Machine,
    between: Sequence[HostRow] = (),
) -> Explanation:
    """The explanation of a model that runs as several programs, with ops `between` them."""
    kernels: list[KernelRow] = []
    host = list(between)
    for program, seconds in parts:
        times = [None] * len(program.steps) if seconds is None else [s * 1e3 for s in seconds]
        for step, time in zip(program.steps, times, strict=True):
            if isinstance(step, (Launch, Loop)):
                kernels.append(_kernel(step, program, machine, time))
            elif isinstance(step, HostCall):
                host.append(_host(step, journal, time))
    programs = [program for program, _ in parts]
    facts = Explanation(
        model=model,
        machine=machine_facts(machine, _threads(kernels)),
        total=_total(programs, journal, machine, kernels, host, _sum(parts, between)),
        kernels=tuple(kernels),
        ledger=tuple(_ledger(decision) for decision in journal.of("fusion")),
        memory=memory_of(programs),
        precision=_precision(kernels),
        host_ops=tuple(host),
        layout=tuple(_transpose(d) for d in journal.of("layout") if d.verdict == "left"),
    )
    return facts.with_findings(tuple(findings(facts, machine)))


def _sum(parts: Sequence[Part], between: Sequence[HostRow]) -> float | None:
    """Seconds of all steps; None where some were not measured."""
    total = 0.0
    for _, seconds in parts:
        if seconds is None:
            return None
        total += sum(seconds)
    return total + sum(row.time_ms or 0.0 for row in between) / 1e3


def machine_facts(machine: Machine, threads: int) -> dict[str, Any]:
    """The roofs that `threads` cores have together: flop/s by dtype, bytes/s by level."""
    return {
        "name": machine.name,
        "cpu": machine.cpu,
        "isa": machine.isa,
        "threads": threads,
        "peak_flops": {dtype: machine.peak_of(dtype, threads) for dtype in machine.peak},
        "bandwidth": {level: machine.bandwidth_of(level, threads) for level in machine.levels},
        "source": machine.source,
    }


def _kernel(
    step: Launch | Loop, program: Program, machine: Machine, time: float | None
) -> KernelRow:
    facts = step.facts
    nbytes = facts.bytes_read + facts.bytes_written
    schedule = _schedule(step, machine)
    least = _limit(step, program, machine, int(schedule["threads"]))
    bound = "launch" if machine.launch_s > least.seconds else least.bound
    limit_ms = least.seconds * 1e3
    return KernelRow(
        name=label(step),
        origin=facts.origin,
        ops=facts.ops,
        dtype=facts.dtype,
        flops=facts.flops,
        bytes_read=facts.bytes_read,
        bytes_written=facts.bytes_written,
        bytes_unfused=facts.bytes_unfused,
        intensity=facts.flops / max(1, nbytes),
        time_ms=time,
        predicted_ms=facts.predicted_s * 1e3,
        limit_ms=limit_ms,
        share=limit_ms / time if time else None,
        bound=bound,
        schedule=schedule,
    )


def _limit(step: Launch | Loop, program: Program, machine: Machine, threads: int) -> Limit:
    """A kernel finds its operands where a run leaves them: weights are swept once a run, so they
    come from the level that holds all constants and the arena, the rest from where it fits.
    """
    facts = step.facts
    nbytes = facts.bytes_read + facts.bytes_written
    names = {arg.buffer for arg in step.read}
    buffers = [program.by_name[name] for name in names]
    weights = sum(buffer.nbytes for buffer in buffers if buffer.space == "constant")
    footprint = program.constant_bytes + program.arena_bytes
    traffic = {machine.level_of(nbytes): nbytes}
    behind = machine.level_of(footprint)
    traffic[behind] = max(traffic.get(behind, 0), min(weights, facts.bytes_read))
    return limit({facts.dtype: facts.flops}, traffic, machine, threads)


def _schedule(step: Launch | Loop, machine: Machine) -> dict[str, Any]:
    """Choices by name; `tile` holds what has no key of its own, `vector` is in elements."""
    known = {"unroll": None, "vector": None, "threads": 1, "isa": machine.isa}
    found: dict[str, Any] = {"tile": {}, **known}
    for name, value in step.facts.schedule:
        if name in known:
            found[name] = value
        else:
            found["tile"][name] = value
    return found


def _host(step: HostCall, journal: Journal, time: float | None) -> HostRow:
    node = ", ".join(step.origin) or step.function
    said = [d for d in journal.of("host") if set(d.subject) & {*step.origin, step.function}]
    why = said[0].reason if said else "no kernel can be generated for it"
    return HostRow(node, step.function, why, time)


def _ledger(decision: Decision) -> LedgerRow:
    facts = decision.facts
    producer, consumer = (*decision.subject, "", "")[:2]
    return LedgerRow(
        producer,
        consumer,
        decision.verdict,
        decision.reason,
        int(facts.get("bytes_saved", 0)),
        int(facts.get("flops_added", 0)),
        float(facts.get("predicted_ms", 0.0)),
    )


def _transpose(decision: Decision) -> TransposeRow:
    return TransposeRow(decision.subject[0], int(decision.facts.get("bytes", 0)), decision.reason)


def _precision(kernels: Sequence[KernelRow]) -> dict[str, int]:
    """How many nodes of the model each dtype computes; a node is counted once."""
    by_node: dict[str, str] = {}
    for kernel in kernels:
        by_node |= dict.fromkeys(kernel.origin, kernel.dtype)
    dtypes = list(by_node.values())
    return {dtype: dtypes.count(dtype) for dtype in sorted(set(dtypes))}


def _threads(kernels: Sequence[KernelRow]) -> int:
    return max((int(kernel.schedule["threads"]) for kernel in kernels), default=1)


def _total(
    programs: Sequence[Program],
    journal: Journal,
    machine: Machine,
    kernels: Sequence[KernelRow],
    host: Sequence[HostRow],
    seconds: float | None,
) -> Total:
    flops, nbytes = work_of(programs, journal)
    level = machine.level_of(nbytes)
    least = limit(flops, {level: nbytes}, machine, _threads(kernels))
    nodes = {name for kernel in kernels for name in kernel.origin} | {row.node for row in host}
    return Total(
        nodes=len(nodes),
        flops=sum(flops.values()),
        bytes=nbytes,
        time_ms=None if seconds is None else seconds * 1e3,
        predicted_ms=math.fsum(kernel.predicted_ms for kernel in kernels),
        limit_ms=least.seconds * 1e3,
        share=least.seconds / seconds if seconds else None,
        bound=least.bound,
    )


def work_of(
    programs: Sequence[Program], decisions: Iterable[Decision]
) -> tuple[dict[str, int], int]:
    """Operations by dtype and compulsory bytes: as counted on the graphs, else from the programs.

    A graph that was compiled more than once was counted more than once: then programs count.
    """
    flops: dict[str, int] = {}
    counted = [decision.facts for decision in decisions if decision.stage == "work"]
    if len(counted) == len(programs):
        for facts in counted:
            for dtype, count in facts["flops"].items():
                flops[dtype] = flops.get(dtype, 0) + int(count)
        return flops, sum(int(facts["bytes"]) for facts in counted)
    nbytes = 0
    for program in programs:
        for step in program.steps:
            if isinstance(step, (Launch, Loop)):
                flops[step.facts.dtype] = flops.get(step.facts.dtype, 0) + step.facts.flops
        nbytes += sum(port.nbytes for port in (*program.inputs, *program.outputs))
        nbytes += program.constant_bytes
    return flops, nbytes
