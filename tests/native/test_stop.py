"""The flag that ends runs."""

from __future__ import annotations

import ctypes

import pytest

from rooftile.core.errors import Terminated
from rooftile.native import NEVER, Stop


def test_the_flag_is_seen_at_its_address() -> None:
    stop = Stop()
    flag = ctypes.c_int32.from_address(stop.address)
    stop.check("model")
    assert not stop.is_set and flag.value == 0
    stop.set()
    assert stop.is_set and flag.value == 1
    with pytest.raises(Terminated, match=r"^model: the run was ended"):
        stop.check("model")
    stop.set(False)
    stop.check("model")
    assert not NEVER.is_set
