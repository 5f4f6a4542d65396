"""Sessions are tested on a stand-in for the compiler."""

from __future__ import annotations

import sys

import fake
import pytest


@pytest.fixture
def pipeline(monkeypatch: pytest.MonkeyPatch) -> fake.Pipeline:
    """`rooftile.pipeline` replaced by one that knows `y = x + 1`."""
    made = fake.Pipeline()
    monkeypatch.setitem(sys.modules, "rooftile.pipeline", made.module())
    return made
