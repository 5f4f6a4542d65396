"""Iterate and what proves its indices: text, rules, meaning, ranges, cost."""

from __future__ import annotations

import numpy as np
import pytest

from rooftile.core.errors import InvalidIR
from rooftile.ir.tile import Iterate, Kernel, Store
from rooftile.ir.tile.cost import cost
from rooftile.ir.tile.interpret import run
from rooftile.ir.tile.query import complete_scope
from rooftile.ir.tile.ranges import value_range
from rooftile.ir.tile.text import parse, to_text
from rooftile.ir.tile.verify import verify


def kernel(expression: str, head: str = "") -> Kernel:
    return parse(
        f"""
kernel k
  memory T: u32[8] most 7
  memory F: f32[8]
  memory S: i32[m]
  memory Y: u32[5]
  whole r<5
  {head}Y[r] := {expression}
""".replace("S: i32[m]", "S: i32[5]")
    )


STEP = "T[@cast(last(u32), i64)]"
WALK = f"iterate(cast(iota(r), u32), {STEP}, bitxor({STEP}, last(u32)), 3)"


def test_text_comes_back_as_it_was() -> None:
    written = verify(kernel(WALK))
    assert parse(to_text(written)) == written
    assert "T: u32[8] most 7" in to_text(written)


def test_steps_end_where_more_is_nothing_or_after_the_most() -> None:
    table = np.array([0, 0, 1, 2, 3, 4, 5, 6], np.uint32)
    arrays = {"T": table, "F": np.zeros(8), "S": np.zeros(5, np.int32)}
    np.testing.assert_array_equal(run(kernel(WALK), arrays)["Y"], [0, 0, 0, 0, 1])


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("last(u32)", r"last\(u32\) stands in no such iterate"),
        ("iterate(1:u32, last(i64), 1:u32, 3)", r"last\(i64\) stands in no such iterate"),
        ("iterate(1:u32, 1:i32, 1:u32, 3)", "iterate: u32 becomes i32; cast one"),
        ("iterate(1.0, last(f32), 1:u32, 3)", "it goes over integers, not f32"),
        ("iterate(1:u32, last(u32), 1.0, 3)", "whether to go on is f32; cast it"),
        (f"iterate(1:u32, {WALK}, 1:u32, 3)", "iterate stands in another one"),
        ("iterate(1:u32, last(u32), cast(sum(F[r] over r), u32), 3)", "its step reduces"),
    ],
)
def test_rules(expression: str, message: str) -> None:
    with pytest.raises(InvalidIR, match=message):
        verify(kernel(expression))


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("T[r]", (0, 7)),
        ("cast(S[r], u32)", (0, 2**32 - 1)),
        ("bitand(cast(S[r], u32), 6:u32)", (0, 6)),
        ("bitor(T[r], 8:u32)", (8, 15)),
        ("shr(T[r], 1:u32)", (0, 3)),
        ("shr(T[r], T[r])", (0, 7)),
        ("min(cast(S[r], u32), 3:u32)", (0, 3)),
        ("add(T[r], 1:u32)", (0, 2**32 - 1)),
        ("cast(bitand(S[r], 3:i32), u32)", (0, 2**32 - 1)),
        ("cast(F[r], u32)", (0, 2**32 - 1)),
        ("cast(lt(F[r], 0.0), u32)", (0, 1)),
        (WALK, (0, 2**32 - 1)),
        (WALK.replace("cast(iota(r), u32)", "T[r]"), (0, 7)),
    ],
)
def test_ranges(expression: str, expected: tuple[int, int]) -> None:
    found = verify(kernel(expression))
    [store] = found.body
    assert isinstance(store, Store)
    assert value_range(store.expr, complete_scope(found)) == expected


def test_all_steps_are_counted() -> None:
    [store] = kernel(WALK).body
    assert isinstance(store, Store) and isinstance(store.expr, Iterate)
    assert cost(kernel(WALK)).total_flops >= 3 * 5
    assert cost(kernel(WALK.replace(", 3)", ", 30)"))).total_flops > cost(kernel(WALK)).total_flops


def test_a_limit_of_what_is_written_proves_nothing() -> None:
    text = to_text(kernel("T[r]")).replace("Y: u32[5]", "Y: u32[5] most 3")
    with pytest.raises(InvalidIR, match="most is for unsigned integers that are only read"):
        verify(parse(text))
