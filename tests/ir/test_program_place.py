"""Arenas of one program at several sizes: later plans are like the first."""

from __future__ import annotations

import itertools

import pytest

from rooftile.core.symbolic import Symbols
from rooftile.ir.program import Buffer, Copy, Port, Program, bound, verify
from rooftile.ir.program.place import SLACK
from rooftile.ir.program.records import Arg

WIDTHS = (9, 5, 7, 3, 8, 6, 4, 9, 2, 7, 5, 8)
"""Rows of 64 bytes that each value of the chain has, times N."""


def chain() -> Program:
    """Values that are copied from one to the next, and each fourth is read again at the end."""
    rows = Symbols().new("N", 16)
    assert rows >= 2
    names = [f"v{number}" for number in range(len(WIDTHS))]
    moves = [*itertools.pairwise(names), *((name, "y") for name in names[::4])]
    return Program(
        "chain",
        (Port("x", "x", (rows, 16), "f32"),),
        (Port("y", "y", (rows, 16), "f32"),),
        (
            Buffer("x", 64 * rows, "input"),
            Buffer("y", 64 * rows, "output"),
            *(Buffer(n, 64 * w * rows, "arena") for n, w in zip(names, WIDTHS, strict=True)),
        ),
        tuple(Copy(Arg(a), Arg(b), 64 * rows) for a, b in [("x", "v0"), *moves]),
        numbers=(("N", rows),),
    )


@pytest.mark.parametrize("rows", [2, 16, 35, 1000])
def test_a_plan_like_an_earlier_one_is_sound_and_near_the_bound(rows: int) -> None:
    first = bound(chain(), {"N": 16})
    later = verify(bound(chain(), {"N": rows}, first))
    assert later.lower_bound_bytes <= later.arena_bytes
    assert later.arena_bytes <= (1 + SLACK) * later.lower_bound_bytes


def test_a_plan_scales_with_its_sizes() -> None:
    first = bound(chain(), {"N": 16})
    later = bound(chain(), {"N": 32}, first)
    assert later.arena_bytes == 2 * first.arena_bytes
    assert all(
        later.by_name[buffer.name].offset == 2 * buffer.offset
        for buffer in first.buffers
        if buffer.in_arena
    )
