"""Sessions of rooftile held against those of onnxruntime, on models of any kind of value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from onnx import TensorProto, helper
from onnx_models import truth

import rooftile as rt


def ran(model: Any, feeds: dict[str, Any], **close: float) -> rt.InferenceSession:
    """The session after a run whose outputs are those of onnxruntime."""
    session = rt.InferenceSession(model.SerializeToString())
    check(session, model, feeds, **close)
    return session


def check(session: rt.InferenceSession, model: Any, feeds: dict[str, Any], **close: float) -> None:
    """Assert that a run gives what onnxruntime gives."""
    found, wanted = session.run(None, feeds), truth(model, feeds)
    assert len(found) == len(wanted)
    for mine, theirs in zip(found, wanted, strict=True):
        same(mine, theirs, **close)


def same(mine: Any, theirs: Any, rtol: float = 2e-5, atol: float = 2e-6) -> None:
    """Assert that two values are of one kind and close."""
    if isinstance(theirs, list):
        assert isinstance(mine, list) and len(mine) == len(theirs)
        for one, other in zip(mine, theirs, strict=True):
            same(one, other)
        return
    if isinstance(theirs, dict):
        assert mine.keys() == theirs.keys()
        for key, value in theirs.items():
            np.testing.assert_allclose(mine[key], value, rtol, atol)
        return
    assert isinstance(mine, np.ndarray)
    theirs = np.asarray(theirs)
    assert (mine.dtype, mine.shape) == (theirs.dtype, theirs.shape)
    if mine.dtype == object:
        assert mine.tolist() == theirs.tolist()
    else:
        np.testing.assert_allclose(mine, theirs, rtol, atol)


def info(name: str, array: Any = None, shape: Sequence[Any] | None = None) -> Any:
    """The declaration of a value like an array, or f32 of a shape."""
    if array is None:
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
    code = 8 if array.dtype.kind in "OU" else helper.np_dtype_to_tensor_dtype(array.dtype)
    return helper.make_tensor_value_info(name, code, array.shape if shape is None else shape)


def model_with(
    nodes: Sequence[Any], inputs: Sequence[Any], outputs: Sequence[Any], opset: int = 17
) -> Any:
    """A model of nodes; inputs and outputs are declarations."""
    graph = helper.make_graph(list(nodes), "small", list(inputs), list(outputs))
    imports = [helper.make_opsetid("", opset), helper.make_opsetid("ai.onnx.ml", 3)]
    return helper.make_model(graph, opset_imports=imports, ir_version=8)


def any_of(*names: str) -> list[Any]:
    """Outputs of no declared type."""
    return [helper.make_empty_tensor_value_info(name) for name in names]


def hosted(session: rt.InferenceSession) -> list[str]:
    """The ops that ran on the host."""
    return [entry.facts["op"] for entry in session.decisions if entry.stage == "host"]
