"""Races on made-up engines, and rows and the command on real ones."""

from __future__ import annotations

import json
from dataclasses import replace
from importlib import resources
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from rooftile.bench import facts, rows
from rooftile.bench import race as race_module
from rooftile.bench.process import EngineFailed
from rooftile.bench.race import LEAST_ROUNDS, race
from rooftile.cli.main import main
from rooftile.core.journal import Journal
from rooftile.ir.program import HostCall, KernelFacts, Launch, Program

DIGITS = str(Path(str(resources.files("rooftile.cli") / "assets" / "digits.onnx")))
FEEDS = {"images": np.full((2, 1, 8, 8), 3, np.float32)}


class FakeProcess:
    """Stands in for EngineProcess; `log` tells who ran a block when."""

    log: list[str] = []
    load_ms, first_run_ms = 1.0, 2.0

    def __init__(self, name: str, model: str, feeds: Any, threads: int) -> None:
        if name == "openvino_default":
            raise EngineFailed("no module named openvino")
        self.name = name
        self.blocks = 0

    def values(self) -> list[Any]:
        return [np.array([1.0, 2.0])]

    def block(self) -> list[float]:
        self.log.append(self.name)
        self.blocks += 1
        if self.name == "openvino_f32" and self.blocks == 2:
            raise EngineFailed("no answer in 300 s")
        return [0.002, 0.001, 0.004]

    def rss_mb(self) -> float:
        return 50.0

    def facts(self) -> dict[str, Any]:
        return {"kernels": 3} if self.name == "rooftile" else {}

    def close(self) -> None:
        self.log.append(f"close {self.name}")


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    FakeProcess.log = []
    monkeypatch.setattr(race_module, "EngineProcess", FakeProcess)
    return FakeProcess.log


def test_rounds_rotate_and_failures_are_named(fake: list[str]) -> None:
    names = ("rooftile", "onnxruntime", "openvino_f32", "openvino_default")
    raced = race(names, "m", {}, 1, seconds=0.0)
    assert raced.engines["openvino_default"] == {"failed": "no module named openvino"}
    assert raced.engines["openvino_f32"] == {"failed": "no answer in 300 s"}
    assert raced.engines["rooftile"] == {
        "best_ms": 1.0,
        "median_ms": 2.0,
        "load_ms": 1.0,
        "first_run_ms": 2.0,
        "rss_mb": 50.0,
        "calls": 3 * LEAST_ROUNDS,
        "precision": "as the model says",
    }
    assert set(raced.values) == {"rooftile", "onnxruntime"}
    assert raced.facts == {"rooftile": {"kernels": 3}, "onnxruntime": {}}
    r, o, v = names[:3]
    rounds = [r, o, v, o, v, f"close {v}", r, r, o]
    assert fake == [*rounds, f"close {r}", f"close {o}"]


def test_row_of_a_real_race() -> None:
    found = rows.row(DIGITS, FEEDS, ("onnxruntime", "torch"), threads=1, seconds=0.1)
    json.dumps(found, allow_nan=False)
    keys = "model nodes kernels host_ops compiled_share engines speedup error roof memory"
    assert set(found) >= set(keys.split())
    assert (found["nodes"], found["host_ops"], found["compiled_share"]) == (20, {}, 1.0)
    assert found["engines"]["torch"] == {"failed": "ValueError: torch runs no ONNX files"}
    assert set(found["speedup"]) == {"onnxruntime"}
    assert found["error"]["vs"] == "onnxruntime"
    assert found["error"]["max_rel"] < 1e-4 and found["error"]["vs_float64"] < 1e-4
    roof, best = found["roof"], found["engines"]["rooftile"]["best_ms"]
    assert roof["share"] == pytest.approx(roof["limit_ms"] / best)
    # 2 images: 64 pixels x (9 x 32 depthwise + 32 x 32 pointwise + ...) multiply-adds and more.
    assert 1_000_000 < roof["flops"] / 2 < 1_500_000
    assert set(found["memory"]) == {"arena_bytes", "lower_bound_bytes", "no_reuse_bytes"}


def test_command(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    options = ["--shape", "images=1x1x8x8", "--seconds", "0.1", "--vs", "onnxruntime,torch"]
    assert main(["bench", DIGITS, *options, "--json", str(tmp_path / "rows.json")]) == 0
    shown = capsys.readouterr().out
    assert "1 thread" in shown and "x as fast" in shown and "failed: ValueError: torch" in shown
    assert "kernels for 20 nodes" in shown and "from float64" in shown
    found = json.loads((tmp_path / "rows.json").read_text())
    assert set(found["machine"]) >= {"cpu", "threads", "peak_flops", "bandwidth"}
    assert len(found["rows"]) == 1


def test_command_with_a_model_that_fails(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    missing = str(tmp_path / "none.onnx")
    options = ["--seconds", "0.1", "--vs", "onnxruntime", "--no-float64", "--json", "-"]
    assert main(["bench", missing, DIGITS, *options]) == 1
    shown = capsys.readouterr()
    first, second = json.loads(shown.out)["rows"]
    assert set(first) == {"model", "failed"} and "none.onnx" in first["failed"]
    assert second["error"]["vs_float64"] is None
    assert shown.err.splitlines()[-1].startswith(f"error: {missing}: ")
    assert main(["bench", missing]) == 1
    assert f"{missing}: " in capsys.readouterr().out


def made_row(**changes: Any) -> dict[str, Any]:
    row = {"model": "m", "engines": {"rooftile": {}}, "error": {"max_rel": 1e-6, "vs": "o"}}
    return row | changes


@pytest.mark.parametrize(
    ("changes", "wanted"),
    [
        ({}, []),
        ({"error": {"max_rel": None, "vs": None}}, []),
        ({"error": {"max_rel": 0.5, "vs": "o"}}, ["m: values differ from o by 5.0e-01"]),
        (
            {"error": {"max_rel": None, "vs": "o", "why": "output 0: shape"}},
            ["m: values differ from o: output 0: shape"],
        ),
        ({"engines": {"rooftile": {"failed": "died"}}}, ["m: died"]),
        ({"failed": "no kernel"}, ["m: no kernel"]),
    ],
)
def test_wrong_values_and_failures_fail(changes: dict[str, Any], wanted: list[str]) -> None:
    from rooftile.cli.bench import _failures

    assert _failures(made_row(**changes)) == wanted


def test_facts_of_a_session_that_runs_in_steps() -> None:
    """Two programs with a host call in one of them, and an op on the host between them."""
    journal = Journal()
    journal.add("host", ("sorted",), "host", "sorting has no kernel", op="TopK")
    journal.add("work", ("p",), "counted", "", flops={"f32": 100}, bytes=40)
    journal.add("work", ("q",), "counted", "", flops={"f32": 10}, bytes=4)
    first = Launch("k", (), KernelFacts(("a", "b", "c"), flops=5), writes=())
    call = HostCall("NonZero", (), (), origin=("d",))
    programs = [
        Program("p", (), (), (), (first, call), 64, 64, 128),
        Program("q", (), (), (), (replace(first, facts=KernelFacts(("e",), flops=6)),), 10, 10, 10),
    ]
    session = SimpleNamespace(programs=programs, decisions=list(journal))
    found = facts.facts_of(session)
    assert found["kernels"] == 2
    assert found["host_ops"] == {"NonZero": 1, "TopK": 1}
    assert found["compiled_share"] == pytest.approx(4 / 6)
    assert (found["roof"]["flops"], found["roof"]["bytes"]) == (110, 44)
    assert found["memory"] == {
        "arena_bytes": 74,
        "lower_bound_bytes": 74,
        "no_reuse_bytes": 138,
    }
    session.decisions.pop()
    assert facts.facts_of(session)["roof"]["flops"] == 11


def test_row_of_a_model_that_rooftile_cannot_run(monkeypatch: pytest.MonkeyPatch) -> None:
    failed = {"rooftile": {"failed": "died"}, "onnxruntime": {"best_ms": 1.0}}
    raced = race_module.Raced(failed, {"onnxruntime": [np.zeros(1)]}, {})
    monkeypatch.setattr(rows, "race", lambda *arguments: raced)
    found = rows.row(DIGITS, FEEDS, ("onnxruntime",), 1, 1.0)
    json.dumps(found, allow_nan=False)
    assert (found["kernels"], found["speedup"], found["roof"]["share"]) == (None, {}, None)
    assert found["error"] == {"max_rel": None, "vs": "onnxruntime", "vs_float64": None}
