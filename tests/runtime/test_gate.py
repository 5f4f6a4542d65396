"""The gate into native code: what it takes, and what it leaves to Python."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rooftile.core.errors import InvalidInput
from rooftile.runtime import executable as module
from rooftile.runtime.executable import Executable
from rooftile.runtime.gate import UNFIT, gate
from tests import sample_programs as samples


class Counting:
    """An executable whose runs by way of Python are counted."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.slow = 0
        real = Executable._run_slowly

        def run_slowly(*arguments: Any) -> int:
            self.slow += 1
            return real(*arguments)

        monkeypatch.setattr(Executable, "_run_slowly", run_slowly)


def test_usual_inputs_pass_the_gate(monkeypatch: pytest.MonkeyPatch) -> None:
    if gate() is None:
        pytest.skip("objects are laid out in another way here")
    executable, counting = samples.executable(), Counting(monkeypatch)
    for feeds in (list(samples.feeds()), tuple(samples.feeds())):
        executable.run(feeds)
    assert counting.slow == 0


def _changed(array: Any) -> list[Any]:
    """Spellings of an array that Python has to convert or to check."""
    unaligned = np.zeros(array.nbytes + 1, np.uint8)[1:].view(array.dtype).reshape(array.shape)
    unaligned[...] = array
    return [
        array.astype(array.dtype.newbyteorder(">")),
        np.repeat(array, 2, axis=0)[::2],
        np.asfortranarray(array),
        unaligned,
        array.view(type("Own", (np.ndarray,), {})),
        array.tolist(),
    ]


@pytest.mark.parametrize("spelling", range(6))
def test_other_inputs_give_the_same(spelling: int) -> None:
    executable = samples.executable()
    feeds = list(samples.feeds())
    wanted = executable.run(feeds)
    place = next(n for n, array in enumerate(feeds) if array.ndim > 0)
    feeds[place] = _changed(feeds[place])[spelling]
    for mine, theirs in zip(executable.run(feeds), wanted, strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_without_a_gate(monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = samples.executable().run(list(samples.feeds()))
    monkeypatch.setattr(module, "gate", lambda: None)
    for mine, theirs in zip(samples.executable().run(list(samples.feeds())), wanted, strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_refusals_are_those_of_python() -> None:
    executable = samples.executable()
    feeds: list[Any] = list(samples.feeds())
    feeds[0] = np.zeros((*feeds[0].shape, 1), feeds[0].dtype)
    with pytest.raises(InvalidInput, match="has the shape"):
        executable.run(feeds)
    assert UNFIT < 0
