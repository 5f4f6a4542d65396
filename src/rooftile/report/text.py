"""The explanation as text: what a person reads in a terminal."""

from __future__ import annotations

import io
import re
from collections import Counter
from collections.abc import Iterator, Sequence

from rich import box
from rich.console import Console, ConsoleRenderable, Group
from rich.table import Table
from rich.text import Text

from rooftile.report.records import Explanation, KernelRow, LedgerRow
from rooftile.report.units import count, percent, scaled, seconds

MOST_KERNELS = 25
MOST_REASONS = 8
WIDTH = 140
"""Columns of `render`."""


def render(facts: Explanation, width: int = WIDTH) -> str:
    """The explanation as plain text of `width` columns."""
    stream = io.StringIO()
    Console(file=stream, width=width, color_system=None).print(layout(facts))
    return "\n".join(line.rstrip() for line in stream.getvalue().splitlines()) + "\n"


def layout(facts: Explanation) -> ConsoleRenderable:
    """The explanation for a console: headline, findings, kernels, ledger, memory, the rest."""
    parts: list[ConsoleRenderable] = [Text(line) for line in _headline(facts)]
    if facts.findings:
        parts += [Text("\nFindings", "bold"), *(Text(f"- {line}") for line in facts.findings)]
    parts += [Text("\nKernels, the most time above the roof first", "bold"), _kernels(facts)]
    hidden = len(facts.kernels) - MOST_KERNELS
    if hidden > 0:
        parts.append(Text(f"and {count(hidden, 'kernel')} that lose less (all are in --json)"))
    parts.append(Text("\nFusion", "bold"))
    parts += [Text(line) for line in _ledger(facts.ledger)]
    parts.append(Text("\nMemory and types", "bold"))
    parts += [Text(line) for line in (*_memory(facts), *_rest(facts))]
    return Group(*parts)


def _headline(facts: Explanation) -> Iterator[str]:
    total, machine = facts.total, facts.machine
    threads = count(machine["threads"], "thread")
    yield (
        f"{facts.model}: {count(len(facts.kernels), 'kernel')} for {count(total.nodes, 'node')} "
        f"on {machine['cpu']} ({machine['isa']}, {threads})"
    )
    word = "predicted" if total.time_ms is None else "sum of the kernels alone"
    share = "" if total.share is None else f", {percent(total.share)} of the roof"
    yield (
        f"{seconds(total.spent_ms / 1e3)} ({word}); the roof allows "
        f"{seconds(total.limit_ms / 1e3)} ({total.bound}: {scaled(total.flops, 'FLOP')}, "
        f"{scaled(total.bytes, 'B')}){share}"
    )


def _kernels(facts: Explanation) -> Table:
    measured = facts.total.time_ms is not None
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1), pad_edge=False, expand=True)
    table.add_column("kernel", no_wrap=True, overflow="ellipsis", ratio=3)
    table.add_column("nodes", no_wrap=True, overflow="ellipsis", ratio=2)
    time = "time" if measured else "predicted"
    figures = ("dtype", "FLOP", "bytes", "FLOP/B", time, "roof", "share", "lost", "bound")
    for name in figures:
        table.add_column(name, justify="right", no_wrap=True, min_width=len("14.4 us"))
    for kernel in sorted(facts.kernels, key=lambda kernel: -kernel.lost_ms)[:MOST_KERNELS]:
        table.add_row(*_row(kernel))
    return table


def _row(kernel: KernelRow) -> tuple[str, ...]:
    nodes = ", ".join(kernel.origin[:3]) + (" ..." if len(kernel.origin) > 3 else "")
    return (
        kernel.name,
        nodes,
        kernel.dtype,
        scaled(kernel.flops, ""),
        scaled(kernel.bytes_read + kernel.bytes_written, "B"),
        f"{kernel.intensity:.1f}",
        seconds(kernel.spent_ms / 1e3),
        seconds(kernel.limit_ms / 1e3),
        "" if kernel.share is None else percent(kernel.share),
        seconds(kernel.lost_ms / 1e3),
        kernel.bound,
    )


def _ledger(ledger: Sequence[LedgerRow]) -> Iterator[str]:
    taken = [row for row in ledger if row.verdict == "taken"]
    refused = [row for row in ledger if row.verdict != "taken"]
    saved = scaled(sum(row.bytes_saved for row in taken), "B")
    yield f"{len(taken)} of {count(len(ledger), 'verdict')} taken: they spare {saved} of traffic"
    reasons = Counter(_general(row.reason) for row in refused)
    for reason, times in reasons.most_common(MOST_REASONS):
        example = next(row for row in refused if _general(row.reason) == reason)
        pair = f"%{example.producer} -> %{example.consumer}"
        yield f"  refused {times}x: {reason}, such as {pair}"
    if len(reasons) > MOST_REASONS:
        yield f"  and {count(len(reasons) - MOST_REASONS, 'other reason')} (all are in --json)"


def _general(reason: str) -> str:
    """A reason without the names of values."""
    return re.sub(r"%[\w./:]+", "%...", reason)


def _memory(facts: Explanation) -> Iterator[str]:
    memory = facts.memory
    yield (
        f"arena {scaled(memory.arena_bytes, 'B')}; no plan needs less than "
        f"{scaled(memory.lower_bound_bytes, 'B')}, {scaled(memory.no_reuse_bytes, 'B')} without "
        f"reuse; constants {scaled(memory.constant_bytes, 'B')}"
    )
    if memory.pinning:
        more = len(memory.pinning) - 6
        listed = ", ".join(memory.pinning[:6]) + (f" and {more} more" if more > 0 else "")
        yield f"live at the peak: {listed}"


def _rest(facts: Explanation) -> Iterator[str]:
    types = ", ".join(f"{dtype} {number}" for dtype, number in facts.precision.items())
    yield f"nodes by the type they compute in: {types or 'none'}"
    for row in facts.host_ops:
        time = "" if row.time_ms is None else f", {seconds(row.time_ms / 1e3)}"
        yield f"on the host: {row.op} ({row.node}){time}: {row.why}"
    for transpose in sorted(facts.layout, key=lambda row: -row.bytes):
        yield f"transpose left: {scaled(transpose.bytes, 'B')}: {transpose.why}"
    if not facts.layout:
        yield "no transpose that moves data is left"
