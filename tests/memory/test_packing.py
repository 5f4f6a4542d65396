"""Lower bounds and the check that a packing is sound."""

from __future__ import annotations

import pytest

from rooftile.core.errors import InvalidOption
from rooftile.memory import Packing, check, lower_bound

PAIR = [(0, 2, 10), (1, 3, 5)]


@pytest.mark.parametrize(
    ("tensors", "bound"),
    [
        ([], 0),
        ([(0, 1, 7)], 7),
        (PAIR, 15),
        ([(0, 2, 10), (2, 3, 5)], 10),  # half-open: the first is gone when the second comes
        ([(0, 9, 1), (1, 2, 4), (3, 4, 6)], 7),
        ([(-5, 0, 3), (-1, 4, 2)], 5),
    ],
)
def test_lower_bound(tensors: list[tuple[int, int, int]], bound: int) -> None:
    assert lower_bound(tensors) == bound


def test_a_sound_packing_passes() -> None:
    check(PAIR, Packing((0, 10), 15, 15))
    check([(0, 2, 10), (2, 3, 10)], Packing((0, 0), 10, 10))
    check([(0, 2, 0), (0, 2, 4)], Packing((2, 0), 4, 4))


@pytest.mark.parametrize(
    ("offsets", "peak", "message"),
    [
        ((0, 9), 15, r"tensors 0 and 1 live together and overlap"),
        ((0, 0), 15, r"tensors 0 and 1 live together and overlap"),
        ((0, 10), 14, r"tensor 1 at 10 to 15 leaves 0 to 14"),
        ((-1, 10), 15, r"tensor 0 at -1 to 9 leaves 0 to 15"),
        ((0,), 15, r"1 offsets were given for 2 tensors"),
    ],
)
def test_an_unsound_packing_is_refused(offsets: tuple[int, ...], peak: int, message: str) -> None:
    with pytest.raises(InvalidOption, match=message):
        check(PAIR, Packing(offsets, peak, 15))


def test_an_overlap_is_found_behind_an_empty_tensor() -> None:
    with pytest.raises(InvalidOption, match=r"tensors 0 and 2 live together and overlap"):
        check([(0, 5, 8), (1, 5, 0), (2, 3, 4)], Packing((0, 4, 6), 10, 12))
