"""Traces: an event for each step, the values as without, the file when it is asked for."""

from __future__ import annotations

import gc
import json
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import helper, numpy_helper
from onnx_sessions import any_of, info

import rooftile as rt
from rooftile.session import trace as trace_module

make = helper.make_node
X = np.random.default_rng(0).standard_normal((6, 64)).astype(np.float32)
W = np.random.default_rng(1).standard_normal((64, 64)).astype(np.float32)


def model(steps: bool = False) -> bytes:
    """A softmax of a product; for steps with its places above a half and a loop beside."""
    nodes = [
        make("MatMul", ["x", "w"], ["a"], name="product"),
        make("Softmax", ["a"], ["y"], name="softmax"),
    ]
    outputs = any_of("y")
    weights = [numpy_helper.from_array(W, "w")]
    if steps:
        body = helper.make_graph(
            [make("Identity", ["c"], ["go"]), make("Neg", ["s"], ["r"], name="negate")],
            "body",
            [info("i", np.array(1)), info("c", np.array(True)), info("s", X)],
            any_of("go", "r"),
        )
        weights.append(numpy_helper.from_array(np.array(3), "trips"))
        nodes += [
            make("Greater", ["y", "half"], ["g"], name="greater"),
            make("NonZero", ["g"], ["places"], name="places"),
            make("Cast", ["sum"], ["n"], to=7),
            make("ReduceSum", ["y"], ["sum"], keepdims=0),
            make("Loop", ["n", "", "x"], ["z"], name="loop", body=body),
        ]
        weights.append(numpy_helper.from_array(np.array(0.5, np.float32), "half"))
        outputs = any_of("y", "places", "z")
    graph = helper.make_graph(nodes, "traced", [info("x", X)], outputs, weights)
    opsets = [helper.make_opsetid("", 17)]
    return bytes(helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString())


def traced(tmp_path: Path, content: bytes, threads: int = 1) -> rt.InferenceSession:
    options = rt.SessionOptions()
    options.enable_profiling = True
    options.profile_file_prefix = str(tmp_path / "trace")
    options.intra_op_num_threads = threads
    return rt.InferenceSession(content, options)


def events_of(path: str) -> list[dict[str, Any]]:
    found = json.loads(Path(path).read_text())
    assert all(event["ph"] == "X" and event["dur"] >= 0 for event in found)
    return list(found)


@pytest.mark.parametrize("threads", [1, 2])
def test_an_event_for_each_kernel(tmp_path: Path, threads: int) -> None:
    session = traced(tmp_path, model(), threads)
    wanted = rt.InferenceSession(model()).run(None, {"x": X})
    for _ in range(2):
        np.testing.assert_array_equal(session.run(None, {"x": X}), wanted)
    binding = session.io_binding()
    held = rt.OrtValue.ortvalue_from_shape_and_type([6, 64])
    binding.bind_cpu_input("x", X)
    binding.bind_ortvalue_output("y", held)
    session.run_with_iobinding(binding)
    np.testing.assert_array_equal(held.numpy(), wanted[0])
    steps = session.compiled_for().program.steps
    events = events_of(session.end_profiling())
    runs = [event for event in events if event["name"] == "model_run"]
    nodes = [event for event in events if event["cat"] == "Node"]
    assert len(runs) == 3 and len(nodes) == 3 * len(steps)
    assert {name for event in nodes for name in event["args"]["origin"]} == {"product", "softmax"}
    assert events[0]["name"] == "session_initialization"
    for event in nodes:
        assert event["tid"] == threading.get_native_id()
        assert any(
            run["ts"] <= event["ts"] and event["ts"] + event["dur"] <= run["ts"] + run["dur"] + 1e-3
            for run in runs
        )
    assert session.end_profiling() == ""
    session.run(None, {"x": X})


def test_steps_on_the_host_and_bodies_have_events(tmp_path: Path) -> None:
    session = traced(tmp_path, model(steps=True))
    plain = rt.InferenceSession(model(steps=True))
    for _ in range(2):
        for found, wanted in zip(
            session.run(None, {"x": X}), plain.run(None, {"x": X}), strict=True
        ):
            np.testing.assert_array_equal(found, wanted)
    events = events_of(session.end_profiling())
    names = [event["name"] for event in events]
    assert names.count("model_run") == 2
    assert names.count("places_kernel_time") == 2
    hosts = [event["args"] for event in events if event["args"].get("provider") == "host"]
    assert {"op_name": "NonZero", "provider": "host", "origin": ["places"]} in hosts
    origins = {name for event in events for name in event["args"].get("origin", ())}
    assert {"product", "softmax", "greater", "negate"} <= origins


def test_a_run_that_fails_is_in_the_trace(tmp_path: Path) -> None:
    nodes = [make("Gather", ["w", "i"], ["y"], name="look_up")]
    weights = [numpy_helper.from_array(W, "w")]
    graph = helper.make_graph(nodes, "g", [info("i", np.array([1]))], any_of("y"), weights)
    opsets = [helper.make_opsetid("", 17)]
    content = helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()
    session = traced(tmp_path, content)
    for made in (session, rt.InferenceSession(content)):
        with pytest.raises(rt.InvalidInput, match="'look_up': an index is out of range"):
            made.run(None, {"i": np.array([99])})
    names = [event["name"] for event in events_of(session.end_profiling())]
    assert "model_run" in names and len(names) == 3


def test_sessions_without_a_trace_have_nothing_of_it() -> None:
    session = rt.InferenceSession(model())
    assert not {"run", "_execute"} & vars(session).keys()
    assert session.get_profiling_start_time_ns() == 0
    assert session.end_profiling() == ""


def test_the_file_is_written_when_the_session_goes(tmp_path: Path) -> None:
    session = traced(tmp_path, model())
    session.run(None, {"x": X})
    assert not list(tmp_path.iterdir())
    del session
    gc.collect()
    (path,) = tmp_path.iterdir()
    assert path.name.startswith("trace_") and path.suffix == ".json"
    assert len(events_of(str(path))) > 2


def test_a_trace_has_an_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace_module, "MAX_EVENTS", 5)
    session = traced(tmp_path, model())
    for _ in range(5):
        session.run(None, {"x": X})
    assert len(events_of(session.end_profiling())) == 5


def test_threads_share_a_trace(tmp_path: Path) -> None:
    session = traced(tmp_path, model())
    threads = [threading.Thread(target=session.run, args=(None, {"x": X})) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    events = events_of(session.end_profiling())
    assert len({event["tid"] for event in events if event["name"] == "model_run"}) == 4
