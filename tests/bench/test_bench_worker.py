"""Both ends of an engine's process: the worker on a made-up engine, the parent on real ones."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from importlib import resources
from multiprocessing import Pipe
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rooftile.bench import engines, process, worker
from rooftile.bench.process import EngineFailed, EngineProcess

DIGITS = str(Path(str(resources.files("rooftile.cli") / "assets" / "digits.onnx")))
FEEDS = {"images": np.ones((2, 1, 8, 8), np.float32)}


@pytest.fixture
def doubled(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """An engine called `doubled`; the list counts its calls."""
    calls: list[int] = []

    def open_it(model: str, feeds: engines.Feeds, threads: int) -> engines.Opened:
        if model == "broken":
            raise ValueError("first line\nno such model")

        def call() -> list[Any]:
            calls.append(threads)
            return [2 * feeds["x"]]

        return call, None

    made = engines.Engine("doubled", "f32", open_it)
    monkeypatch.setitem(engines.ENGINES, "doubled", made)
    return calls


def conversation(*messages: Any) -> Iterator[Any]:
    """What `serve` answers, in a thread."""
    ours, theirs = Pipe()
    thread = threading.Thread(target=worker.serve, args=(theirs,))
    thread.start()
    try:
        for message in messages:
            ours.send(message)
            yield ours.recv()
    finally:
        theirs_closed = thread.is_alive()
        if theirs_closed:
            ours.send("end")
        thread.join()


def request(name: str, model: str = "m") -> dict[str, Any]:
    return {"name": name, "model": model, "feeds": {"x": np.float32(3)}, "threads": 2}


def test_worker(doubled: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "BLOCK_S", 0.0)
    answers = conversation(request("doubled"), "values", "block", "rss")
    started, values, block, rss = answers
    assert started["load_ms"] >= 0 and started["first_run_ms"] >= 0
    assert values == {"values": [6.0]}
    assert len(block["seconds"]) == worker.BLOCK_CALLS
    assert rss["rss_mb"] > 5
    assert doubled == [2] * (1 + 1 + worker.DISCARDED + worker.BLOCK_CALLS)


def test_worker_tells_why(doubled: list[int]) -> None:
    assert list(conversation(request("doubled", "broken"))) == [
        {"failed": "ValueError: no such model"}
    ]
    assert list(conversation(request("torch"))) == [
        {"failed": "ValueError: torch runs no ONNX files"}
    ]
    assert not doubled


def test_worker_ends_with_its_parent() -> None:
    ours, theirs = Pipe()
    ours.close()
    worker.serve(theirs)


def test_real_processes_agree() -> None:
    outputs = []
    for name in ("rooftile", "onnxruntime"):
        made = EngineProcess(name, DIGITS, FEEDS, threads=1)
        try:
            assert made.load_ms > 0 and made.first_run_ms > 0 and made.rss_mb() > 10
            assert min(made.block()) > 0
            outputs.append(made.values())
            assert made.facts().get("compiled_share") == (1.0 if name == "rooftile" else None)
        finally:
            made.close()
    np.testing.assert_allclose(outputs[0][0], outputs[1][0], atol=1e-5)


def outputs_of(name: str) -> list[Any]:
    call, _ = engines.open_engine(name, DIGITS, FEEDS, 1)
    return call()


def test_adapters_in_this_process() -> None:
    want = outputs_of("onnxruntime")
    np.testing.assert_allclose(outputs_of("rooftile"), want, atol=1e-5)
    pytest.importorskip("openvino")
    for name in ("openvino_f32", "openvino_default"):
        np.testing.assert_allclose(outputs_of(name), want, atol=2e-2)


def test_failures_have_the_words_of_the_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(EngineFailed, match=r"MissingFile: none\.onnx cannot be read"):
        EngineProcess("rooftile", "none.onnx", FEEDS, 1)
    with pytest.raises(EngineFailed, match="no answer in 0 s"):
        EngineProcess("rooftile", DIGITS, FEEDS, 1, answer_s=0.0)
    monkeypatch.setattr(process.sys, "executable", "/bin/false")
    with pytest.raises(EngineFailed, match=r"its process died \(exit 1\)"):
        EngineProcess("rooftile", DIGITS, FEEDS, 1)


def test_peak_memory_without_proc(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: Any, **more: Any) -> Any:
        raise OSError("no /proc")

    direct = worker.peak_rss_mb()
    monkeypatch.setattr("builtins.open", refuse)
    assert worker.peak_rss_mb() == pytest.approx(direct, rel=0.5)
