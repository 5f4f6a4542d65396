"""Time cut into the moments that matter: the sets of tensors live together that are largest."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from rooftile.memory.packing import Tensor

Ints = npt.NDArray[np.int64]


class Sections:
    """Tensors over sections instead of times, and sizes in units of their common divisor.

    A section is a maximal set of tensors that live at one time; all other times are subsets of
    one and constrain nothing more. Tensor `i` covers sections `first[i] .. last[i] - 1`.
    """

    def __init__(self, tensors: Sequence[Tensor]) -> None:
        self.first, self.last, self.count = _cover(tensors)
        self.unit = math.gcd(*(size for _, _, size in tensors)) or 1
        self.size: Ints = np.array([size // self.unit for _, _, size in tensors], np.int64)
        spans = self.last - self.first
        self.incidences = int(spans.sum())
        self.spans = spans
        self.bounds: Ints = np.stack([self.first, self.last], 1).ravel()

    def index(self) -> None:
        """Make `members`, tensors section after section, and `start`, where each one begins."""
        section = np.repeat(self.first - _offsets(self.spans), self.spans)
        section = section + np.arange(self.incidences)
        tensor = np.repeat(np.arange(len(self.size)), self.spans)
        order = np.argsort(section, kind="stable")
        self.members: Ints = tensor[order]
        per_section = np.bincount(section, minlength=self.count)
        self.per_section: Ints = per_section.astype(np.int64)
        self.start: Ints = _offsets(self.per_section)
        self.total: Ints = np.add.reduceat(self.size[self.members], self.start)


def _offsets(counts: Ints) -> Ints:
    return np.cumsum(counts) - counts


def _cover(tensors: Sequence[Tensor]) -> tuple[Ints, Ints, int]:
    """First and one past the last section of each tensor, and the number of sections."""
    events = [(lower, 1, index) for index, (lower, _, _) in enumerate(tensors)]
    events += [(upper, 0, index) for index, (_, upper, _) in enumerate(tensors)]
    first = np.zeros(len(tensors), np.int64)
    last = np.zeros(len(tensors), np.int64)
    section, grown = 0, False
    for _, begins, index in sorted(events):
        if begins:
            first[index] = section
            grown = True
            continue
        if grown:  # the set shrinks after it grew: it was maximal
            section, grown = section + 1, False
        last[index] = section
    return first, last, section
