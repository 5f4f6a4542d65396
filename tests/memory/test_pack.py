"""pack: sound for all tensors, at the bound where that can be reached, refusals by message."""

from __future__ import annotations

import csv
import itertools
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rooftile.core.errors import InvalidOption
from rooftile.memory import check, lower_bound, pack
from rooftile.memory import pack as pack_function
from rooftile.memory.constructions import orders, place
from rooftile.memory.packing import Packing
from rooftile.memory.search import Search
from rooftile.memory.sections import Sections

Tensor = tuple[int, int, int]
DATA = Path(__file__).parent / "data"
CAPACITY = 1 << 20

tensor_lists = st.lists(
    st.tuples(st.integers(-8, 8), st.integers(1, 6), st.integers(0, 9)).map(
        lambda made: (made[0], made[0] + made[1], made[2])
    ),
    max_size=14,
)


def load(name: str) -> list[Tensor]:
    rows = list(csv.reader((DATA / f"{name}.1048576.csv").open()))[1:]
    return [(int(lower), int(upper), int(size)) for _, lower, upper, size in rows]


def brute_force(tensors: list[Tensor]) -> int:
    """The least peak over every order of first-fit by offset: optimal for a few tensors."""
    best = None
    for order in itertools.permutations(range(len(tensors))):
        offsets = place(tensors, np.array(order, np.int64))
        peak = max(int(offsets[i]) + tensors[i][2] for i in range(len(tensors)))
        best = peak if best is None else min(best, peak)
    return best or 0


@settings(max_examples=150, deadline=None)
@given(tensor_lists)
def test_any_packing_is_sound_and_above_the_bound(tensors: list[Tensor]) -> None:
    packing = pack(tensors, seconds=0.05)
    check(tensors, packing)
    assert packing.lower_bound == lower_bound(tensors) <= packing.peak
    used = [offset + size for offset, (_, _, size) in zip(packing.offsets, tensors, strict=True)]
    assert packing.peak == max(used, default=0)


@settings(max_examples=40, deadline=None)
@given(tensor_lists.map(lambda tensors: [t for t in tensors if t[2]][:6]).filter(bool))
def test_few_tensors_are_packed_as_well_as_can_be(tensors: list[Tensor]) -> None:
    assert pack(tensors, seconds=5.0).peak == brute_force(tensors)


@settings(max_examples=60, deadline=None)
@given(tensor_lists.filter(lambda tensors: any(size for _, _, size in tensors)))
def test_every_construction_is_sound(tensors: list[Tensor]) -> None:
    for order in orders(tensors):
        for tightest in (False, True):
            offsets = tuple(place(tensors, order, tightest).tolist())
            peak = max(offset + t[2] for offset, t in zip(offsets, tensors, strict=True))
            check(tensors, Packing(offsets, peak, 0))


@settings(max_examples=60, deadline=None)
@given(tensor_lists.map(lambda tensors: [t for t in tensors if t[2]]).filter(bool))
def test_sections_keep_the_pairs_that_live_together(tensors: list[Tensor]) -> None:
    sections = Sections(tensors)
    for i, j in itertools.combinations(range(len(tensors)), 2):
        together = tensors[i][0] < tensors[j][1] and tensors[j][0] < tensors[i][1]
        share = sections.first[i] < sections.last[j] and sections.first[j] < sections.last[i]
        assert together == share
    sections.index()
    assert int(sections.total.max()) * sections.unit == lower_bound(tensors)


def test_the_same_tensors_give_the_same_offsets() -> None:
    tensors = load("C")
    assert pack(tensors, capacity=CAPACITY, seconds=30) == pack(
        tensors, capacity=CAPACITY, seconds=30
    )


def test_it_returns_early_within_capacity() -> None:
    tensors = load("E")
    packing = pack(tensors, capacity=2 * CAPACITY, seconds=600)
    check(tensors, packing)
    assert CAPACITY < packing.peak <= 2 * CAPACITY


def test_earlier_offsets_are_followed_where_sizes_grew() -> None:
    tensors = load("C")
    found = pack(tensors, capacity=CAPACITY, seconds=30)
    assert pack(tensors, seconds=0).peak > found.peak, "one pass alone does not find this plan"
    grown = [(lower, upper, 3 * size) for lower, upper, size in tensors]
    packing = pack(grown, seconds=0, earlier=found.offsets)
    check(grown, packing)
    assert packing.peak <= 3 * found.peak


def test_poor_earlier_offsets_do_no_harm() -> None:
    tensors = load("E")
    packing = pack(tensors, 2 * CAPACITY, seconds=600, earlier=range(len(tensors)))
    check(tensors, packing)
    assert packing.peak <= 2 * CAPACITY


def test_no_time_gives_a_packing_all_the_same() -> None:
    packing = pack(load("I"), seconds=0)
    check(load("I"), packing)
    assert packing.peak > packing.lower_bound


def test_time_improves_a_packing_that_misses_the_bound() -> None:
    tensors = load("E")
    hasty, patient = pack(tensors, seconds=0), pack(tensors, seconds=1.5)
    check(tensors, patient)
    assert patient.peak < hasty.peak


def test_pieces_of_time_are_packed_apart() -> None:
    shifted = [
        (lower + 100, upper + 100, 2 * size) for lower, upper, size in [(0, 2, 3), (1, 3, 4)]
    ]
    packing = pack([(0, 2, 3), (1, 3, 4), *shifted])
    assert packing.peak == packing.lower_bound == 14


# Every order of first-fit was tried on these two: none reaches the bound.
ABOVE_BOUND = [
    ([(2, 6, 3), (6, 9, 4), (1, 3, 4), (0, 2, 1), (3, 6, 3), (5, 8, 4), (2, 4, 3), (1, 2, 4)], 11),
    ([(2, 5, 1), (1, 2, 3), (3, 7, 1), (4, 8, 3), (2, 4, 2), (1, 3, 3), (3, 6, 1), (6, 9, 2)], 7),
]


@pytest.mark.parametrize(("tensors", "least"), ABOVE_BOUND)
def test_a_bound_that_cannot_be_reached_is_proved_and_left(
    tensors: list[Tensor], least: int
) -> None:
    assert lower_bound(tensors) == least - 1
    sections = Sections(tensors)
    sections.index()
    end = time.perf_counter() + 60
    assert Search(sections, least - 1).run(end) is False
    assert Search(sections, least).run(end) is True
    packing = pack(tensors, seconds=60)
    check(tensors, packing)
    assert packing.peak == least
    assert time.perf_counter() < end


def test_dense_problems_skip_the_search(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setattr(sys.modules[pack_function.__module__], "_LARGEST_SEARCH", 10)
    packing = pack(load("A"), seconds=30)
    check(load("A"), packing)
    assert packing.peak > packing.lower_bound


@pytest.mark.parametrize(
    ("tensors", "options", "message"),
    [
        ([(0, 1, 4), (3, 3, 1)], {}, r"tensor 1 lives in \[3, 3\), which is empty"),
        ([(5, 2, 1)], {}, r"tensor 0 lives in \[5, 2\), which is empty; upper must be greater"),
        ([(0, 1, -4)], {}, r"tensor 0 has size -4; a size cannot be negative"),
        ([(0, 1, 4)], {"capacity": -1}, r"a capacity of -1 bytes is negative"),
        ([(0, 1, 4)], {"seconds": -0.5}, r"a time of -0.5 seconds is negative"),
        ([(0, 1, 4)], {"earlier": ()}, r"0 earlier offsets for 1 tensors"),
    ],
)
def test_refusals(tensors: list[Tensor], options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidOption, match=message):
        pack(tensors, **options)


@pytest.mark.parametrize("name", ["A", "C"])
def test_hard_problems_that_take_a_moment(name: str) -> None:
    packing = pack(load(name), capacity=CAPACITY, seconds=60)
    check(load(name), packing)
    assert packing.peak <= CAPACITY


@pytest.mark.slow
@pytest.mark.parametrize("name", ["E", "G", "I"])
def test_hard_problems(name: str) -> None:
    packing = pack(load(name), capacity=CAPACITY, seconds=180)
    check(load(name), packing)
    assert packing.peak <= CAPACITY
