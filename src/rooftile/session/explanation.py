"""The explanation of a model that runs in steps: its programs, and what runs between them."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import TYPE_CHECKING, Any

from rooftile.ir.program import Program
from rooftile.session.segment import Environment, Segment
from rooftile.session.segmented import ControlRunner, Segmented

if TYPE_CHECKING:
    from rooftile.report import Explanation

REPEATS = 5
"""Calls of a step on the host; the best counts."""


def explained(name: str, steps: Segmented, inputs: Environment) -> Explanation:
    """Each program is timed step by step on what a run gives it, each op on the host as a whole.

    The body of a control-flow op counts as part of that op.
    """
    from rooftile.machine import current
    from rooftile.report import HostRow, explain_parts

    steps.run(Environment(inputs))  # compiles, and cuts what cannot be one program
    environment = Environment(inputs)
    parts, between = [], []
    for runner in steps.steps:
        if isinstance(runner, Segment):
            parts.append(runner.profile(environment))
            runner.run(environment)
        else:
            best = _best_ms(lambda run=runner.run: run(environment))  # type: ignore[misc]
            between.append(HostRow(runner.step.name, runner.step.op, runner.step.why, best))
    return explain_parts(name, parts, steps.shared.journal, current(), between)


def programs_of(steps: Segmented) -> list[Program]:
    """Every program that is kept, those of bodies included."""
    found: list[Program] = []
    for runner in steps.steps:
        if isinstance(runner, Segment):
            found += runner.programs
        elif isinstance(runner, ControlRunner):
            for body in runner.bodies.values():
                found += programs_of(body)
    return found


def _best_ms(call: Callable[[], Any]) -> float:
    best = float("inf")
    for _ in range(REPEATS):
        began = perf_counter()
        call()
        best = min(best, perf_counter() - began)
    return best * 1e3
