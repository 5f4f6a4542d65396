"""The instruction sets that this machine can be asked for."""

from __future__ import annotations

import os

import pytest

from rooftile.core.errors import InvalidOption
from rooftile.native.target import FORCE, Target, host_target


@pytest.fixture(params=["native", "avx2", "sse4.2"])
def isa(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Target:
    """A target of this host: its own, or lowered."""
    if request.param == "native":
        return host_target()
    monkeypatch.setenv(FORCE, request.param)
    assert os.environ[FORCE] == request.param
    try:
        return host_target()
    except InvalidOption as error:
        pytest.skip(str(error))
