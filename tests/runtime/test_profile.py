"""Times of single steps."""

from __future__ import annotations

import pytest
import sample_programs as samples

from rooftile.core.errors import InvalidInput, InvalidOption
from rooftile.runtime import profile


def test_each_step_has_a_time() -> None:
    linked = samples.executable()
    times = linked.profile(samples.feeds(), repeats=3)
    assert len(times) == 3
    assert all(0 <= seconds < 1 for seconds in times)


def test_steps_run_in_order_on_real_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """The best of a step is kept, overhead is subtracted and never makes it negative."""
    linked = samples.executable()
    clock = iter([0, 5, 10, 12, 20, 29, 30, 33, 40, 47, 50, 51])
    monkeypatch.setattr(profile, "_overhead", lambda arity: 2.0)
    monkeypatch.setattr(profile, "perf_counter", lambda: next(clock))
    assert linked.profile(samples.feeds(), repeats=2) == [1.0, 0.0, 0.0]


def test_host_calls_are_timed() -> None:
    linked = samples.executable(samples.SORTED, host_functions={"sort": samples.sort})
    times = linked.profile(samples.feeds(), repeats=2)
    assert times[1] > 0


def test_refusals() -> None:
    linked = samples.executable()
    with pytest.raises(InvalidOption, match="repeats must be at least 1, not 0"):
        linked.profile(samples.feeds(), repeats=0)
    with pytest.raises(InvalidInput, match="Gather_1"):
        linked.profile(samples.feeds(9))
