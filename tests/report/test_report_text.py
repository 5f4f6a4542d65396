"""The explanation as text, its findings, and figures as people read them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import explained
import pytest

from rooftile.core.journal import Journal
from rooftile.ir.program import Launch
from rooftile.report import explain, render
from rooftile.report.units import count, percent, scaled, seconds

SECONDS = [200e-6, 50e-6, 20e-6]


def test_text(golden: Callable[[str, str], None]) -> None:
    facts = explain(explained.program(), explained.journal(), explained.MACHINE, SECONDS)
    golden("explain.txt", render(facts))


def test_text_of_predictions() -> None:
    text = render(explain(explained.program(), Journal(), explained.MACHINE))
    assert "(predicted); the roof allows" in text
    assert "of the roof" not in text
    assert "0 of 0 verdicts taken" in text
    assert "no transpose that moves data is left" in text


def test_findings_say_what_costs_most() -> None:
    facts = explain(explained.program(), explained.journal(), explained.MACHINE, SECONDS)
    slow, host, moved, memory = facts.findings
    assert slow.startswith("dense (gemm, relu) loses 100 us of 270 us: it reaches 50 % of its")
    assert "rooftile show --stage tile --kernel dense" in slow
    assert host.startswith("1 op on the host, such as TopK (top): sorting has no kernel yet")
    assert "1 transpose left, 80 kB moved" in moved
    assert memory.startswith("the arena is 12 % above its lower bound; what is live at the peak: a")


def test_findings_of_a_model_at_the_roof_and_of_one_made_of_calls() -> None:
    made = explained.program()
    plain = replace(made, lower_bound_bytes=made.arena_bytes)
    alone = replace(plain, steps=plain.steps[:1], outputs=())
    (found,) = explain(alone, Journal(), explained.MACHINE, [105e-6]).findings
    assert found.startswith("the run is at 95 % of the compute roof: only fewer operations")
    first, second = plain.launches
    many = replace(plain, steps=(*(replace(first, facts=explained.TINY),) * 9,), outputs=())
    (found,) = explain(many, Journal(), explained.MACHINE, [1e-6] * 9).findings
    assert found.startswith("9 kernels of 9 do less work than a call costs (1 us)")
    assert isinstance(second, Launch)


def test_advice_for_a_kernel_that_memory_binds() -> None:
    made = explained.program()
    light = replace(explained.DENSE, flops=1000)
    alone = replace(made, steps=(replace(made.launches[0], facts=light),), outputs=())
    found = explain(alone, Journal(), explained.MACHINE, [100e-6]).findings[0]
    assert "of its l2 roof; fusion already spares it 80 kB" in found
    bare = replace(light, bytes_unfused=0)
    alone = replace(made, steps=(replace(made.launches[0], facts=bare),), outputs=())
    found = explain(alone, Journal(), explained.MACHINE, [100e-6]).findings[0]
    assert "see in the ledger why its neighbours are kernels of their own" in found


def test_long_lists_are_cut() -> None:
    made = explained.program()
    journal = Journal()
    for number in range(12):
        journal.add("fusion", ("a", "b"), "refused", f"reason {number}")
    steps = (made.steps[0],) * 40
    text = render(explain(replace(made, steps=steps, outputs=()), journal, explained.MACHINE))
    assert "and 15 kernels that lose less" in text
    assert "and 4 other reasons" in text


@pytest.mark.parametrize(
    ("shown", "wanted"),
    [
        (scaled(1_234_567, "B"), "1.23 MB"),
        (scaled(999, "B"), "999 B"),
        (scaled(12_345, "FLOP"), "12.3 kFLOP"),
        (scaled(2e12, "FLOP/s"), "2 TFLOP/s"),
        (seconds(2.5), "2.50 s"),
        (seconds(0.0123), "12.3 ms"),
        (seconds(4.2e-6), "4.20 us"),
        (seconds(4.2e-9), "4.20 ns"),
        (percent(0.347), "35 %"),
        (count(1, "kernel"), "1 kernel"),
        (count(0, "kernel"), "0 kernels"),
    ],
)
def test_units(shown: str, wanted: str) -> None:
    assert shown == wanted
