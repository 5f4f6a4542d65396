"""A session goes with its last reference, and its code and weights with it."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

import rooftile as rt
from rooftile.runtime import Executable

make = helper.make_node


def model(shape: Any, nodes: Any) -> bytes:
    ends = [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)]
    graph = helper.make_graph(nodes, "g", ends, [helper.make_empty_tensor_value_info("y")])
    opsets = [helper.make_opsetid("", 17)]
    return bytes(helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString())


@pytest.fixture
def uncollected() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("uncollected")
@pytest.mark.parametrize(
    ("shape", "nodes"),
    [
        ([4], [make("Abs", ["x"], ["y"])]),
        (["n"], [make("Abs", ["x"], ["y"])]),
        (["n"], [make("Abs", ["x"], ["a"]), make("NonZero", ["a"], ["y"])]),
    ],
    ids=["known", "open", "steps"],
)
def test_without_the_garbage_collector(shape: Any, nodes: Any) -> None:
    def executables() -> int:
        return sum(isinstance(item, Executable) for item in gc.get_objects())

    before = executables()
    session = rt.InferenceSession(model(shape, nodes))
    for size in (4, 4, 4) if shape == [4] else (4, 5, 6):
        session.run(None, {"x": np.ones(size, np.float32)})
    session.io_binding()
    assert executables() > before
    seen = weakref.ref(session)
    del session
    assert seen() is None
    assert executables() == before
