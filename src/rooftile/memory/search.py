"""Depth-first search for a packing within a capacity, restarted with other orders.

Offsets are given from the bottom up. A valley is a run of sections whose floor is lower than both
neighbours: the next tensor of one of its sections either starts at that floor and lies within the
valley, or the section wastes bytes. Sections with few ways on, or that failed often, go first.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from rooftile.memory.sections import Ints, Sections

_FAR = 1 << 60
_NODES = 300
_DIVES = 1.2
"""Nodes of an attempt are at least `_NODES`, and at least `_DIVES` for each tensor."""

_OPENING = ((1, False), (1, True), (10, True))
"""Attempts with each plain order: how many times those nodes, whether failures count."""

_SPREAD = (0.05, 0.15, 0.4, 0.8)
"""How strongly later attempts shake the orders."""

_DECAY = 0.9
_CLOCK_EVERY = 256

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
    """Looks for offsets within `capacity`, both in the units of `sections`, which are indexed."""

    def __init__(self, sections: Sections, capacity: int, seed: int = 0) -> None:
        self.offsets: Ints = np.zeros(len(sections.size), np.int64)
        self._sections = sections
        self._capacity = capacity
        self._random = np.random.default_rng(seed)
        self._failures: Floats = np.zeros(sections.count)
        self._weighted = False
        self._attempts = self._plan()

    def run(self, deadline: float, nodes: int | None = None) -> bool | None:
        """True with `offsets` set, False where no packing exists, None where time is up.

        Stops at `deadline` (of `time.perf_counter`) or soon after `nodes` more nodes; another call
        goes on from there.
        """
        used = 0
        for effort, weighted, priority in self._attempts:
            self._weighted = weighted
            self._failures *= _DECAY
            found = self._descend(priority, effort, deadline)
            used += effort
            late = time.perf_counter() >= deadline or (nodes is not None and used >= nodes)
            if found is not None or late:
                return found
        return None

    def _plan(self) -> Iterator[tuple[int, bool, Floats]]:
        """Attempts without end: nodes, whether failures count, and the order of tensors."""
        plain = self._orders()
        nodes = max(_NODES, int(_DIVES * len(self.offsets)))
        for effort, weighted in _OPENING:
            for order in plain:
                yield nodes * effort, weighted, order
        for turn in itertools.count():
            spread = _SPREAD[turn % len(_SPREAD)]
            for order in plain:
                shaken = order * np.exp(self._random.normal(0, spread, len(order)))
                yield nodes * _luby(turn + 1), turn % 2 == 0, shaken

    def _orders(self) -> list[Floats]:
        """The greatest value first: long tensors, large areas, tensors in the fullest sections."""
        sections = self._sections
        span, size = sections.spans.astype(float), sections.size.astype(float)
        cover = zip(sections.first, sections.last, strict=True)
        fullest = np.array([float(sections.total[first:last].max()) for first, last in cover])
        long = span + size / (1 + size.max())
        area = span * size
        return [long, area, fullest * 1e3 + long, fullest * 1e3 + area]

    def _descend(self, priority: Floats, nodes: int, deadline: float) -> bool | None:
        """One dive: True with `offsets` set, False when all is searched, None when out of nodes."""
        sections = self._sections
        waiting = np.ones(len(sections.size), bool)
        root = self._settle(np.zeros(sections.count, np.int64), sections.total, waiting)
        if root is None:
            return False
        path: list[_Branch] = [self._branch(root, priority)]
        for node in range(nodes):
            if node % _CLOCK_EVERY == _CLOCK_EVERY - 1 and time.perf_counter() >= deadline:
                return None
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
            self.offsets[tensor] = floor[section]
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
        order = np.argsort(priority[tensors], kind="stable")  # taken from the end
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


def _luby(turn: int) -> int:
    """1 1 2 1 1 2 4 ...: efforts of restarts that are near the best whatever the problem."""
    power = turn.bit_length()
    if turn == (1 << power) - 1:
        return 1 << (power - 1)
    return _luby(turn - (1 << (power - 1)) + 1)
