"""The memory of a program against its bound, and who is to blame at the peak."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rooftile.ir.program import Buffer, Program
from rooftile.ir.program.records import reads, writes


@dataclass(frozen=True)
class Memory:
    """Bytes. `pinning` names the arena's buffers that are live where most are, largest first."""

    arena_bytes: int
    lower_bound_bytes: int
    no_reuse_bytes: int
    constant_bytes: int
    pinning: tuple[str, ...]


def memory_of(programs: Sequence[Program]) -> Memory:
    """The figures of programs that run one after the other, each with an arena of its own."""
    largest = max(programs, key=lambda program: program.arena_bytes, default=None)
    return Memory(
        sum(program.arena_bytes for program in programs),
        sum(program.lower_bound_bytes for program in programs),
        sum(program.no_reuse_bytes for program in programs),
        sum(program.constant_bytes for program in programs),
        () if largest is None else tuple(buffer.name for buffer in pinning(largest)),
    )


def pinning(program: Program) -> list[Buffer]:
    """The arena's buffers that are live at the step where they need most bytes."""
    spans: dict[str, tuple[int, int]] = {}
    for step, name in _uses(program):
        first, _ = spans.get(name, (step, step))
        spans[name] = (first, step)
    live: list[Buffer] = []
    most = -1
    for step in range(len(program.steps)):
        now = [program.by_name[n] for n, (first, last) in spans.items() if first <= step <= last]
        if sum(buffer.nbytes for buffer in now) > most:
            live, most = now, sum(buffer.nbytes for buffer in now)
    return sorted(live, key=lambda buffer: (-buffer.nbytes, buffer.name))


def _uses(program: Program) -> Iterator[tuple[int, str]]:
    for number, step in enumerate(program.steps):
        for arg in (*reads(step), *writes(step)):
            if program.by_name[arg.buffer].in_arena:
                yield number, arg.buffer
