"""The memory of a program against its bound, and who is to blame at the peak."""

from __future__ import annotations

from collections.abc import Iterator
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


def memory_of(program: Program) -> Memory:
    """The figures of a program."""
    return Memory(
        program.arena_bytes,
        program.lower_bound_bytes,
        program.no_reuse_bytes,
        program.constant_bytes,
        tuple(buffer.name for buffer in pinning(program)),
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
