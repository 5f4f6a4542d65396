"""A compiled model in one page of text."""

from __future__ import annotations

from collections.abc import Sequence

from rooftile.core.journal import Journal
from rooftile.ir.program import HostCall, Launch, Program

_HEADER = ("kernel", "MFLOP", "kB", "FLOP/B", "predicted us", "nodes")


def summary(program: Program, journal: Journal) -> str:
    """Kernels with their work, host calls, memory, and how many decisions each stage made."""
    lines = [f"{program.name}: {len(program.launches)} kernels", ""]
    lines += _table([_HEADER, *map(_row, program.launches)])
    host = [step for step in program.steps if isinstance(step, HostCall)]
    lines += ["", "on the host: " + ", ".join(step.function for step in host)] if host else []
    lines += [
        "",
        f"arena {program.arena_bytes} bytes (no plan needs fewer than {program.lower_bound_bytes}; "
        f"{program.no_reuse_bytes} without reuse), constants {program.constant_bytes} bytes",
    ]
    stages = dict.fromkeys(decision.stage for decision in journal)
    lines += [f"{stage}: {len(journal.of(stage))} decisions" for stage in stages]
    return "\n".join(lines) + "\n"


def _row(launch: Launch) -> tuple[str, ...]:
    facts = launch.facts
    nbytes = facts.bytes_read + facts.bytes_written
    nodes = ", ".join(facts.origin[:3]) + (" ..." if len(facts.origin) > 3 else "")
    return (
        launch.kernel,
        f"{facts.flops / 1e6:.2f}",
        f"{nbytes / 1e3:.1f}",
        f"{facts.flops / max(1, nbytes):.1f}",
        f"{facts.predicted_s * 1e6:.1f}",
        nodes,
    )


def _table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows with columns aligned: the first and last to the left, figures to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for first, *figures, last in rows:
        cells = [figure.rjust(width) for figure, width in zip(figures, widths[1:-1], strict=True)]
        lines.append("  ".join([first.ljust(widths[0]), *cells, last]).rstrip())
    return lines
