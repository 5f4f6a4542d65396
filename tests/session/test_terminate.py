"""Runs that never end, or that outgrow the machine: they can be ended, and end themselves."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from onnx import helper, numpy_helper
from onnx_models import floats
from onnx_sessions import any_of, check, info, ran

import rooftile as rt
from rooftile.native import Stop
from rooftile.session import control

X = floats(2, 3)
FOREVER = (1 << 63) - 1
make = helper.make_node


def loop(
    nodes: Sequence[Any],
    outputs: Sequence[str] = ("go", "r"),
    results: Sequence[str] = ("y",),
    trips: int | None = None,
    state: Any = X,
    before: Sequence[Any] = (),
    given: str = "x",
) -> Any:
    """A Loop whose trips are an input "n", a constant, or left out (0)."""
    inputs = [info("i", np.array(1)), info("c", np.array(True)), state_info(state)]
    body = helper.make_graph(list(nodes), "body", inputs, any_of(*outputs))
    held = [numpy_helper.from_array(np.array(trips), "n")] if trips else []
    asked = [] if trips is not None else [info("n", np.array(1))]
    name = "" if trips == 0 else "n"
    graph = helper.make_graph(
        [*before, make("Loop", [name, "", given], list(results), name="loop", body=body)],
        "endless",
        [info("x", X), *asked],
        any_of(*results),
        held,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def state_info(state: Any) -> Any:
    if state is None:
        return helper.make_tensor_sequence_value_info("s", 1, None)
    return info("s", shape=[None, 3])


STEP = [make("Identity", ["c"], ["go"]), make("Neg", ["s"], ["r"])]
NESTED = [
    make("Identity", ["c"], ["go"]),
    make(
        *("Loop", ["n", "", "s"], ["r"]),
        body=helper.make_graph(
            [make("Neg", ["s2"], ["r2"])],
            "inner",
            [info("i2", np.array(1)), info("c2", np.array(True)), info("s2", X)],
            any_of("c2", "r2"),
        ),
    ),
]


@pytest.mark.parametrize(
    ("model", "feeds"),
    [
        (loop(STEP), {"n": np.array(FOREVER)}),
        (loop(STEP, trips=FOREVER), {}),
        (loop(STEP, trips=0), {}),
        (loop(STEP[:0], ["c", "s"], trips=0), {}),
        (loop([*STEP, make("NonZero", ["s"], ["q"])], trips=0), {}),
        (loop(NESTED, trips=1 << 20), {}),
    ],
    ids=["trips-given", "trips-known", "no-trips", "empty-body", "host-body", "native"],
)
def test_an_endless_run_is_ended_from_another_thread(model: Any, feeds: dict[str, Any]) -> None:
    session, options = rt.InferenceSession(model.SerializeToString()), rt.RunOptions()
    timer = threading.Timer(0.3, lambda: setattr(options, "terminate", True))
    timer.start()
    with pytest.raises(
        rt.Terminated, match=r"the run was ended, for `terminate` of its RunOptions"
    ):
        session.run(None, {"x": X, **feeds}, options)
    timer.join()
    assert options.terminate
    with pytest.raises(rt.Terminated, match=r"^endless: the run was ended"):
        session.run(None, {"x": X, **feeds}, options)


def test_other_runs_go_on() -> None:
    options, ended = rt.RunOptions(), rt.RunOptions()
    ended.terminate = True
    model = loop(STEP)
    session = ran(model, {"x": X, "n": np.array(5)})
    with pytest.raises(rt.Terminated):
        session.run(None, {"x": X, "n": np.array(5)}, ended)
    [found] = session.run(None, {"x": X, "n": np.array(5)}, options)
    np.testing.assert_array_equal(found, -X)
    ended.terminate = False
    [found] = session.run(None, {"x": X, "n": np.array(4)}, ended)
    np.testing.assert_array_equal(found, X)


def test_programs_without_loops_are_ended_before_they_start() -> None:
    graph = helper.make_graph([make("Neg", ["x"], ["y"])], "plain", [info("x", X)], any_of("y"))
    session = rt.InferenceSession(helper.make_model(graph).SerializeToString())
    options = rt.RunOptions()
    options.terminate = True
    with pytest.raises(rt.Terminated, match=r"^plain: the run was ended"):
        session.run(None, {"x": X}, options)


def test_a_native_loop_names_its_node() -> None:
    session = rt.InferenceSession(loop(STEP, trips=1 << 20).SerializeToString())
    stop = Stop()
    stop.set()
    with pytest.raises(rt.Terminated, match=r"^'loop': the run was ended"):
        session.compiled_for().executable.run([X], stop)


@pytest.mark.parametrize("trips", [None, FOREVER])
def test_the_largest_trip_count_stands_for_while(trips: int | None) -> None:
    """Exporters write it where only the body's condition ends a loop."""
    nodes = [
        make("Add", ["s", "s"], ["r"]),
        make("ReduceMax", ["r"], ["top"], keepdims=0),
        make("Less", ["top", "limit"], ["go"]),
        make("Identity", ["r"], ["row"]),
    ]
    model = loop(nodes, ("go", "r", "row"), ("y", "rows"), trips)
    model.graph.initializer.append(numpy_helper.from_array(np.array(100, np.float32), "limit"))
    feeds = {"x": X} | ({} if trips else {"n": np.array(FOREVER)})
    check(rt.InferenceSession(model.SerializeToString()), model, feeds)


GROWING = [make("Identity", ["c"], ["go"]), make("Concat", ["s", "x"], ["r"], axis=0)]
LISTED = [make("Identity", ["c"], ["go"]), make("SequenceInsert", ["s", "x"], ["r"])]


@pytest.mark.parametrize(
    "model",
    [
        loop([*STEP, make("Abs", ["s"], ["row"])], ("go", "r", "row"), ("y", "rows")),
        loop(GROWING),
        loop(LISTED, state=None, before=[make("SequenceEmpty", [], ["e"])], given="e"),
    ],
    ids=["scan-outputs", "states", "sequences"],
)
def test_what_a_loop_gathers_is_bounded(model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(control, "machine_bytes", lambda: 1 << 14)
    session = rt.InferenceSession(model.SerializeToString())
    message = r"node loop \(Loop\): after \d+ trips its states and scan outputs take \d+ bytes"
    with pytest.raises(rt.InvalidInput, match=message):
        session.run(None, {"x": X, "n": np.array(FOREVER)})


def test_what_a_scan_gathers_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(control, "machine_bytes", lambda: 1 << 10)
    body = helper.make_graph(
        [make("NonZero", ["a"], ["b"])], "body", [info("a", shape=[3])], any_of("b")
    )
    node = make("Scan", ["x"], ["y"], name="scan", num_scan_inputs=1, body=body)
    x = np.ones((500, 3), np.float32)
    graph = helper.make_graph([node], "g", [info("x", x)], any_of("y"))
    opsets = [helper.make_opsetid("", 17)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    session = rt.InferenceSession(model.SerializeToString())
    with pytest.raises(rt.InvalidInput, match=r"node scan \(Scan\): after \d+ trips"):
        session.run(None, {"x": x})
