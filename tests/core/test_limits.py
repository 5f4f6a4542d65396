"""What this machine can hold."""

from __future__ import annotations

import os
import resource

import pytest

from rooftile.core.limits import machine_bytes


def test_memory_of_the_machine_or_of_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (-1, -1))
    assert machine_bytes() == os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (1 << 20, 1 << 20))
    assert machine_bytes() == 1 << 20
