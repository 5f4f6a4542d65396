"""The race of a model: engines in processes of their own, in rounds of blocks, order rotating."""

from __future__ import annotations

import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rooftile.bench.engines import ENGINES, Feeds
from rooftile.bench.process import EngineFailed, EngineProcess

LEAST_ROUNDS = 3


@dataclass(frozen=True)
class Raced:
    """`engines`: figures, or `{"failed": why}`, by engine; `values`: outputs of those that ran;
    `facts`: what they tell of their programs.
    """

    engines: Mapping[str, Mapping[str, Any]]
    values: Mapping[str, Sequence[Any]]
    facts: Mapping[str, Mapping[str, Any]]


def race(names: Sequence[str], model: str, feeds: Feeds, threads: int, seconds: float) -> Raced:
    """Race the engines for about `seconds` together, and not less than LEAST_ROUNDS rounds."""
    running: dict[str, EngineProcess] = {}
    failed: dict[str, str] = {}
    try:
        for name in names:
            try:
                running[name] = EngineProcess(name, model, feeds, threads)
            except EngineFailed as error:
                failed[name] = str(error)
        values = _each(running, failed, EngineProcess.values)
        times = _rounds(running, failed, seconds)
        rss = _each(running, failed, EngineProcess.rss_mb)
        facts = _each(running, failed, EngineProcess.facts)
        figures = {name: _figures(running[name], times[name], rss[name]) for name in running}
    finally:
        for process in running.values():
            process.close()
    engines = {name: figures.get(name) or {"failed": failed[name]} for name in names}
    return Raced(engines, {name: values[name] for name in figures}, facts)


def _rounds(
    running: dict[str, EngineProcess], failed: dict[str, str], seconds: float
) -> dict[str, list[float]]:
    times: dict[str, list[float]] = {name: [] for name in running}
    end = time.perf_counter() + seconds
    turn = 0
    while running and (turn < LEAST_ROUNDS or time.perf_counter() < end):
        names = list(running)
        first = turn % len(names)
        order = {name: running[name] for name in names[first:] + names[:first]}
        for name, block in _each(order, failed, EngineProcess.block).items():
            times[name] += block
        for name in failed:
            running.pop(name, None)
        turn += 1
    return times


def _each(running: dict[str, EngineProcess], failed: dict[str, str], ask: Any) -> dict[str, Any]:
    """Answers by engine; one that fails is closed, taken out, and its words are kept."""
    answers = {}
    for name, process in list(running.items()):
        try:
            answers[name] = ask(process)
        except EngineFailed as error:
            failed[name] = str(error)
            process.close()
            del running[name]
    return answers


def _figures(process: EngineProcess, times: Sequence[float], rss_mb: float) -> dict[str, Any]:
    return {
        "best_ms": min(times) * 1e3,
        "median_ms": statistics.median(times) * 1e3,
        "load_ms": process.load_ms,
        "first_run_ms": process.first_run_ms,
        "rss_mb": rss_mb,
        "calls": len(times),
        "precision": ENGINES[process.name].precision,
    }
