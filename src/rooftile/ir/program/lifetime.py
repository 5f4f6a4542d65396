"""When each buffer is in use, in steps; those of loops are counted once, in their place."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from rooftile.ir.program.records import Arg, Loop, Step, flat, reads, writes

Span = tuple[int, int]


def lifetimes(steps: Sequence[Step], kept: Iterable[str] = ()) -> dict[str, Span]:
    """The first and the last step that uses each buffer, of `flat(steps)`.

    What a loop reads from outside or from an iteration before is in use as long as the loop runs.
    Buffers named in `kept` are in use until behind the last step.
    """
    walk = _Walk()
    walk.run(steps)
    for name in kept:
        walk.use(name, walk.place)
    return {name: walk.span(name) for name in walk.uses}


@dataclass
class _Walk:
    place: int = 0
    uses: dict[str, list[int]] = field(default_factory=dict)
    loops: list[tuple[Span, frozenset[str]]] = field(default_factory=list)
    """Inner loops come before those around them; with each, what lives from one iteration on."""

    def use(self, name: str, place: int) -> None:
        self.uses.setdefault(name, []).append(place)

    def run(self, steps: Sequence[Step]) -> None:
        """Number the steps and note what each uses."""
        for step in steps:
            if isinstance(step, Loop):
                start = self.place
                self.run(step.body)
                self.loops.append(((start, self.place - 1), _carried(step)))
                continue
            for arg in (*reads(step), *writes(step)):
                self.use(arg.buffer, self.place)
            self.place += 1

    def span(self, name: str) -> Span:
        """From first to last use, stretched over each loop that needs it all the time."""
        first, last = min(self.uses[name]), max(self.uses[name])
        for (start, end), carried in self.loops:
            inside = any(start <= place <= end for place in self.uses[name])
            if inside and (first < start or last > end or name in carried):
                first, last = min(first, start), max(last, end)
        return first, last


def _carried(loop: Loop) -> frozenset[str]:
    """Buffers that an iteration reads before it writes them, or that it goes through."""
    found: set[str] = set()
    written: set[str] = set()
    for step in flat(loop.body):
        found.update(arg.buffer for arg in reads(step) if arg.buffer not in written)
        written.update(arg.buffer for arg in writes(step))
        found.update(arg.buffer for arg in _args(step) if arg.step)
    return frozenset(found)


def _args(step: Step) -> Iterable[Arg]:
    return (*reads(step), *writes(step))
