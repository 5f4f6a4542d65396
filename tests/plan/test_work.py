"""Compulsory work of a graph."""

from __future__ import annotations

import numpy as np
import pytest
from sketch import Sketch

from rooftile.core.journal import Journal
from rooftile.plan.work import record_work, work


def test_dot_and_elementwise() -> None:
    sketch = Sketch()
    product = sketch.dot(sketch.input(4, 8), sketch.constant(np.ones((8, 3))))
    cost = work(sketch.graph(sketch("add", product, 1.0)))
    assert dict(cost.flops) == {"f32": 2 * 4 * 8 * 3 + 4 * 3}
    assert (cost.read, cost.written) == (4 * (4 * 8 + 8 * 3 + 1), 4 * 12)


@pytest.mark.parametrize(
    ("pads", "pairs"),
    [
        (1, 3 * 5 - 2),  # the first and the last place have a tap outside
        (0, 3 * 3),
        (3, 3 * 9 - 2 * (3 + 2 + 1)),
    ],
)
def test_products_with_padding_do_not_count(pads: int, pairs: int) -> None:
    sketch = Sketch()
    x = sketch.input(1, 5, 5, 2)
    y = sketch.conv(x, 3, 3, 4, pads_low=(pads, pads), pads_high=(pads, pads))
    assert dict(work(sketch.graph(y)).flops) == {"f32": 2 * pairs**2 * 2 * 4}


def test_strides_and_dilations() -> None:
    sketch = Sketch()
    x = sketch.input(1, 7, 1)
    spread = {"strides": (2,), "dilations": (2,), "pads_low": (2,), "pads_high": (2,)}
    y = sketch.conv(x, 3, 1, **spread)
    # Places 0, 2, 4, 6 with taps at -2, 0 and 2 of each: two of twelve lie outside.
    assert dict(work(sketch.graph(y)).flops) == {"f32": 2 * 10}


def test_rows_of_a_table() -> None:
    sketch = Sketch()
    rows = sketch.input(3, dtype="i64")
    table = sketch.constant(np.ones((100, 4)))
    found = sketch("gather", table, rows, axis=0)
    assert work(sketch.graph(found)).read == 3 * 8 + 3 * 4 * 4
    product = sketch.dot(sketch.input(3, 100), table)
    assert work(sketch.graph(found, product)).read == 3 * 8 + 3 * 100 * 4 + 100 * 4 * 4


def test_what_nobody_reads_is_not_read() -> None:
    sketch = Sketch()
    x = sketch.input(4)
    sketch.input(9)
    assert work(sketch.graph(sketch("neg", x))).read == 16


def test_the_journal_has_it() -> None:
    sketch = Sketch()
    journal = Journal()
    record_work(sketch.graph(sketch("exp", sketch.input(5))), journal)
    (decision,) = journal.of("work")
    assert decision.subject == ("sketch",)
    assert decision.facts == {"flops": {"f32": 5}, "bytes": 40}
