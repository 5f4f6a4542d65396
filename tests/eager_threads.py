"""Lets threads share whatever they can, however small, so that small models test it."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pytest

from rooftile.native import pool_text
from rooftile.native.pool import has_pool, shared_pool
from rooftile.schedule import parallel

LINUX = pytest.mark.skipif(not has_pool(), reason="no pool of threads here")
THRESHOLDS = (pool_text.HOT, pool_text.COLD, pool_text.GRAIN)


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No launch is too small to be cut, nor to be shared, and tickets are single tiles."""
    monkeypatch.setattr(parallel, "LEAST_S", 0.0)
    monkeypatch.setattr(parallel, "PIECE_S", 1e-15)
    monkeypatch.setattr(parallel, "READ_AGAIN", math.inf)
    monkeypatch.setattr(parallel, "AGAIN", math.inf)
    words = shared_pool().memory.view(np.uint64)
    kept = [words[place // 8] for place in THRESHOLDS]
    for place in THRESHOLDS:
        words[place // 8] = int(place == pool_text.GRAIN)
    yield
    for place, value in zip(THRESHOLDS, kept, strict=True):
        words[place // 8] = value
