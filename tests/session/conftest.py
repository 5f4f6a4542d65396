"""Sessions are tested on a stand-in for the compiler."""

from __future__ import annotations

import sys
from typing import Any

import fake
import pytest

import rooftile as rt
from rooftile.session import inference


@pytest.fixture
def pipeline(monkeypatch: pytest.MonkeyPatch) -> fake.Pipeline:
    """`rooftile.pipeline` replaced by one that knows `y = x + 1`."""
    made = fake.Pipeline()
    monkeypatch.setitem(sys.modules, "rooftile.pipeline", made.module())
    return made


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """For each compilation of a session, whether its dims were left open."""
    asked: list[bool] = []
    real = inference.compile

    def compile(*args: Any) -> rt.Compiled:
        asked.append(args[3])
        return real(*args)

    monkeypatch.setattr(inference, "compile", compile)
    return asked
