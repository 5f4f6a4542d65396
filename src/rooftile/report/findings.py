"""What is worth knowing about a compiled model: one sentence each, and what to do about it."""

from __future__ import annotations

from collections.abc import Iterator

from rooftile.machine import Machine
from rooftile.report.records import Explanation, KernelRow
from rooftile.report.units import count, percent, scaled, seconds

NEAR = 0.85
"""Share of its limit above which a kernel is called near its roof."""
MINOR = 0.05
"""Share of the run below which a loss is not worth a sentence."""


def findings(facts: Explanation, machine: Machine) -> Iterator[str]:
    """The findings, the most costly first."""
    yield from _slowest(facts)
    yield from _calls(facts, machine)
    yield from _host(facts)
    yield from _transposes(facts)
    yield from _memory(facts)
    yield from _roof(facts)


def _slowest(facts: Explanation) -> Iterator[str]:
    ranked = sorted(facts.kernels, key=lambda kernel: -kernel.lost_ms)
    for kernel in ranked[:3]:
        if kernel.share is None or kernel.share >= NEAR or kernel.bound == "launch":
            continue
        if kernel.lost_ms < MINOR * facts.total.spent_ms:
            break
        yield (
            f"{kernel.name} ({_nodes(kernel)}) loses {seconds(kernel.lost_ms / 1e3)} of "
            f"{seconds(facts.total.spent_ms / 1e3)}: it reaches {percent(kernel.share)} of its "
            f"{kernel.bound} roof; {_advice(kernel)}"
        )


def _advice(kernel: KernelRow) -> str:
    show = f"read its tiles and code with `rooftile show --stage tile --kernel {kernel.name}`"
    if kernel.bound == "compute":
        return show
    saved = kernel.bytes_unfused - kernel.bytes_read - kernel.bytes_written
    if saved > 0:
        return f"fusion already spares it {scaled(saved, 'B')}; {show}"
    return f"see in the ledger why its neighbours are kernels of their own; {show}"


def _calls(facts: Explanation, machine: Machine) -> Iterator[str]:
    bound = [kernel for kernel in facts.kernels if kernel.bound == "launch"]
    spent = len(bound) * machine.launch_s * 1e3
    if bound and spent > MINOR * facts.total.spent_ms:
        yield (
            f"{count(len(bound), 'kernel')} of {len(facts.kernels)} do less work than a call "
            f"costs ({seconds(machine.launch_s)}); the ledger says why they were not joined"
        )


def _host(facts: Explanation) -> Iterator[str]:
    if facts.host_ops:
        first = facts.host_ops[0]
        yield (
            f"{count(len(facts.host_ops), 'op')} on the host, such as {first.op} ({first.node}): "
            f"{first.why}; another form of the op in the model may compile"
        )


def _transposes(facts: Explanation) -> Iterator[str]:
    moved = sum(row.bytes for row in facts.layout)
    if moved > MINOR * max(1, sum(k.bytes_read + k.bytes_written for k in facts.kernels)):
        worst = max(facts.layout, key=lambda row: row.bytes)
        yield (
            f"{count(len(facts.layout), 'transpose')} left, {scaled(moved, 'B')} moved, the "
            f"largest because {worst.why}; a model with channels last inside and outside needs none"
        )


def _memory(facts: Explanation) -> Iterator[str]:
    memory = facts.memory
    if memory.arena_bytes > memory.lower_bound_bytes:
        over = memory.arena_bytes / max(1, memory.lower_bound_bytes) - 1
        yield (
            f"the arena is {percent(over)} above its lower bound; what is live at the peak: "
            f"{', '.join(memory.pinning[:4])}"
        )


def _roof(facts: Explanation) -> Iterator[str]:
    total = facts.total
    if total.share is None or total.share < NEAR:
        return
    way = "fewer operations or a narrower type" if total.bound == "compute" else "fewer bytes"
    yield (
        f"the run is at {percent(total.share)} of the {total.bound} roof: only {way} can make it "
        f"faster on this machine"
    )


def _nodes(kernel: KernelRow) -> str:
    shown = ", ".join(kernel.origin[:2]) or ", ".join(kernel.ops[:2])
    return shown + (" ..." if len(kernel.origin) > 2 else "")
