"""Compiled micro-kernels and the best time of several rounds."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable
from dataclasses import dataclass

from rooftile.native import Library, Target, build, link

MIN_ROUNDS = 5


@dataclass(frozen=True)
class Effort:
    """How long each measurement lasts: seconds of one round, and the number of rounds."""

    round_s: float
    rounds: int


QUICK = Effort(0.0008, MIN_ROUNDS)
FULL = Effort(0.02, 11)


class Kernels:
    """One module of micro-kernels, loaded; `call` gives a function and keeps the code alive."""

    def __init__(self, text: str, target: Target) -> None:
        self._library = Library(link(build([text], target)))

    def call(self, name: str, *types: type, result: type | None = None) -> Callable[..., int]:
        """A C function by name; the GIL is released while it runs."""
        library = self._library
        function = ctypes.CFUNCTYPE(result, *types)(library.address(name))

        def run(*arguments: int) -> int:
            return function(*arguments) or 0

        run.library = library  # type: ignore[attr-defined]
        return run


def best(work: Callable[[int], object], effort: Effort) -> float:
    """Seconds of one turn of `work(turns)`, the best of the rounds."""
    turns = 1
    while (taken := _seconds(work, turns)) < effort.round_s / 2 and turns < 1 << 40:
        turns = turns * 2 if taken <= 0 else max(turns * 2, int(turns * effort.round_s / 2 / taken))
    return min(_seconds(work, turns) for _ in range(max(effort.rounds, MIN_ROUNDS))) / turns


def _seconds(work: Callable[[int], object], turns: int) -> float:
    start = time.perf_counter()
    work(turns)
    return time.perf_counter() - start
