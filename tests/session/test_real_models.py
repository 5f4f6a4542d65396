"""Trained models through the public API against onnxruntime; skipped where they are not there."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest
import zoo

import rooftile


@pytest.mark.parametrize("name", sorted(zoo.ROWS))
def test_values_and_what_ran(name: str) -> None:
    model, feeds = str(zoo.path(name)), zoo.feed(name, seed=3)
    session = rooftile.InferenceSession(model)
    found = session.run(None, feeds)
    onnxruntime.set_default_logger_severity(4)
    wanted = onnxruntime.InferenceSession(model).run(None, feeds)
    assert len(found) == len(wanted)
    for mine, theirs in zip(found, wanted, strict=True):
        assert mine.dtype == theirs.dtype and mine.shape == theirs.shape
        if mine.dtype.kind == "f":
            bound = 1e-4 * np.abs(theirs).max()
            np.testing.assert_allclose(mine, theirs, rtol=0, atol=bound)
        else:
            np.testing.assert_array_equal(mine, theirs)
    facts = session.explanation(feeds)
    assert not facts.host_ops
    assert any(row.verdict == "taken" for row in facts.ledger)
