"""Differences between results."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from rooftile.core.compare import difference


def test_differences() -> None:
    a = np.array([1.0, -4.0, np.inf, np.nan], np.float32)
    assert difference([a], [a]) == (0.0, "")
    assert difference([a], [a + np.float32(0.4)]) == (pytest.approx(0.4 / 3.6, rel=1e-5), "")
    assert difference([a], []) == (None, "1 outputs for 0")
    assert difference([a], [a[:2]]) == (None, "output 0: shape [4] for [2]")
    assert difference([a], [a[::-1]])[1] == "output 0: nan or infinite elsewhere"
    assert difference([a], [np.ones(4)])[1] == "output 0: nan or infinite elsewhere"
    whole = np.arange(3)
    assert difference([whole], [whole]) == (0.0, "")
    assert difference([whole], [whole + 1]) == (None, "output 0: values differ")
    half = whole.astype(ml_dtypes.bfloat16)
    assert difference([whole * 1.5], [half]) == (pytest.approx(0.5), "")
    assert difference([np.ones(2)], [np.zeros(2)]) == (1.0, "")
    assert difference([np.array(["a"])], [np.array(["a"], object)]) == (0.0, "")
