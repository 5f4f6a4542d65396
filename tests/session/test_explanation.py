"""Explanations of sessions: one program, and a model that runs in steps."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_models
import pytest
from onnx import helper

import rooftile

X = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)


def session(*nodes: Any, outputs: tuple[str, ...] = ("y",)) -> rooftile.InferenceSession:
    return rooftile.InferenceSession(onnx_models.model_of(list(nodes), {"x": X}, outputs))


def test_one_program() -> None:
    made = session(helper.make_node("Relu", ["x"], ["y"], name="relu"))
    facts = made.explanation({"x": X})
    assert [kernel.origin for kernel in facts.kernels] == [("relu",)]
    assert facts.total.time_ms is not None and not facts.host_ops
    assert [program.name for program in made.programs] == [facts.model]
    with pytest.raises(rooftile.InvalidInput, match="missing: 'x'"):
        made.explanation({})


def test_steps() -> None:
    made = session(
        helper.make_node("Relu", ["x"], ["r"], name="relu"),
        helper.make_node("NonZero", ["r"], ["n"], name="places"),
        helper.make_node("Add", ["n", "n"], ["y"], name="twice"),
    )
    facts = made.explanation({"x": X})
    assert [kernel.origin for kernel in facts.kernels] == [("relu",), ("twice",)]
    (host,) = facts.host_ops
    assert (host.node, host.op) == ("places", "NonZero")
    assert host.why and host.time_ms is not None and host.time_ms > 0
    assert facts.total.nodes == 3
    assert len(made.programs) == 2
    (y,) = made.run(None, {"x": X})
    np.testing.assert_array_equal(y, 2 * np.array(np.nonzero(np.maximum(X, 0))))
