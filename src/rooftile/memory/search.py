"""Depth-first search for a packing within a capacity, restarted with other orders.

Offsets are given from the bottom up. A valley is a run of sections whose floor is lower than both
neighbours: the next tensor of one of its sections either starts at that floor and lies within the
valley, or the section wastes bytes. Sections with few ways on, or that failed often, go first.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from rooftile.memory.sections import Ints, Sections

_FAR = 1 << 60
_FIRST_NODES = 300
_SPREAD = (0.05, 0.15, 0.4, 0.8)
_DECAY = 0.9

Floats = npt.NDArray[np.float64]


@dataclass
class _State:
    """Floor and bytes still to place by section, tensors still to place, their least offsets."""

    floor: Ints
    rest: Ints
    waiting: npt.NDArray[np.bool_]
    least: Ints


@dataclass
class _Branch:
    """A section with the ways on: tensors that may start at its floor, then the wasted floor."""

    state: _State
    section: int
    tensors: list[int]
    wasted: int | None


class Search:
    """Looks for offsets within `capacity`, in the sections' units, until `deadline`."""

    def __init__(self, sections: Sections, capacity: int, deadline: float, seed: int = 0) -> None:
        self._sections = sections
        self._capacity = capacity
        self._deadline = deadline
        self._random = np.random.default_rng(seed)
        self._failures: Floats = np.zeros(sections.count)
        self._weighted = False
        self._offsets: Ints = np.zeros(len(sections.size), np.int64)

    def run(self) -> Ints | None:
        """Offsets, or None when the deadline has passed or no packing exists."""
        for attempt, priority in enumerate(self._priorities()):
            self._weighted = attempt % 2 == 1
            found = self._descend(priority, _FIRST_NODES * (1 + attempt // 28))
            if found is not None:
                return self._offsets if found else None
            if time.perf_counter() >= self._deadline:
                return None
            self._failures *= _DECAY
        return None

    def _priorities(self) -> Iterator[Floats]:
        """Orders of tensors, the smallest value first: plain ones, then shaken ones, for ever."""
        sections = self._sections
        span, size = sections.spans.astype(float), sections.size.astype(float)
        fullest = np.array(
            [
                sections.total[first:last].max()
                for first, last in zip(sections.first, sections.last, strict=True)
            ]
        ).astype(float)
        span_first = span + size / (1 + size.max())
        plain = [span_first, span * size, fullest * 1e3 + span_first, fullest * 1e3 + span * size]
        yield from (-order for order in plain)
        while True:
            for spread in _SPREAD:
                for order in plain:
                    yield -order * np.exp(self._random.normal(0, spread, len(order)))

    def _descend(self, priority: Floats, nodes: int) -> bool | None:
        """True with `_offsets` set, False when all is searched, None when `nodes` are used up."""
        sections = self._sections
        waiting = np.ones(len(sections.size), bool)
        root = self._settle(np.zeros(sections.count, np.int64), sections.total, waiting)
        if root is None:
            return False
        path: list[_Branch] = [self._branch(root, priority)]
        for _ in range(nodes):
            while not path[-1].tensors and path[-1].wasted is None:
                self._failures[path.pop().section] += 1
                if not path:
                    return False
            state = self._advance(path[-1])
            if state is None:
                continue
            if not state.waiting.any():
                return True
            path.append(self._branch(state, priority))
        return None

    def _advance(self, branch: _Branch) -> _State | None:
        """The state after the next way of a branch; None where it cannot fit."""
        state, section = branch.state, branch.section
        floor, rest, waiting = state.floor.copy(), state.rest, state.waiting
        if branch.tensors:
            tensor = branch.tensors.pop()
            where = slice(self._sections.first[tensor], self._sections.last[tensor])
            size = self._sections.size[tensor]
            self._offsets[tensor] = floor[section]
            rest, waiting = rest.copy(), waiting.copy()
            floor[where] = floor[section] + size
            rest[where] -= size
            waiting[tensor] = False
        else:
            assert branch.wasted is not None
            floor[section], branch.wasted = branch.wasted, None
        return self._settle(floor, rest, waiting)

    def _settle(self, floor: Ints, rest: Ints, waiting: npt.NDArray[np.bool_]) -> _State | None:
        """Raise floors to the least offset of any tensor still to come, until nothing moves."""
        sections, live = self._sections, rest > 0
        padded = np.append(np.where(live, floor, 0), 0)
        while True:
            least = np.maximum.reduceat(padded, sections.bounds)[::2]
            least = np.where(waiting, least, _FAR)
            raised = np.minimum.reduceat(least[sections.members], sections.start)
            raised = np.where(live, raised, 0)
            if (raised + rest > self._capacity).any():
                self._failures[int(np.argmax(raised + rest))] += 1
                return None
            if (raised == padded[:-1]).all():
                return _State(raised, rest, waiting, least)
            padded[:-1] = raised

    def _branch(self, state: _State, priority: Floats) -> _Branch:
        sections = self._sections
        section, low, high = self._choose(state)
        floor = int(state.floor[section])
        covers = state.waiting & (sections.first <= section) & (sections.last > section)
        level = state.least == floor
        tensors = np.flatnonzero(covers & level)
        # The next tensor here rests on a neighbour: one that starts higher, or the top of one
        # that may still be placed beside this section in its valley.
        beside = level & ~covers & (sections.first >= low) & (sections.last <= high)
        higher = min(
            state.least[covers & ~level].min(initial=_FAR),
            floor + sections.size[beside].min(initial=_FAR),
        )
        fits = higher + state.rest[section] <= self._capacity
        order = np.argsort(-priority[tensors], kind="stable")  # taken from the end
        return _Branch(state, section, tensors[order].tolist(), int(higher) if fits else None)

    def _choose(self, state: _State) -> tuple[int, int, int]:
        """The section to decide next, and the ends of its valley."""
        sections = self._sections
        floor = np.where(state.rest > 0, state.floor, _FAR)
        begins = np.flatnonzero(np.concatenate(([True], floor[1:] != floor[:-1])))
        heights = floor[begins]
        walls = np.concatenate(([_FAR + 1], heights, [_FAR + 1]))
        valley = (heights < walls[:-2]) & (heights < walls[2:]) & (heights < _FAR)
        lengths = np.diff(np.append(begins, sections.count))
        level = state.least[sections.members] == np.repeat(state.floor, sections.per_section)
        ways = np.add.reduceat(level.astype(np.int64), sections.start)
        score = ways + (state.floor + state.rest < self._capacity)
        score = score + state.floor / (1 + self._capacity)
        if self._weighted:
            score = score / (1 + self._failures)
        score = np.where(np.repeat(valley, lengths), score, np.inf)
        section = int(np.argmin(score))
        run = int(np.searchsorted(begins, section, side="right")) - 1
        return section, int(begins[run]), int(begins[run] + lengths[run])
