"""Each command from the outside: what it prints, writes, and how it ends."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest

from rooftile.cli import machine as machine_command
from rooftile.machine import preset

Cli = Callable[..., tuple[int, str, str]]
BATCH = "images=2x1x8x8"


def test_no_command_and_wrong_usage(cli: Cli, digits: Path) -> None:
    assert cli()[0] == 2
    assert cli("--version")[0] == 0
    assert cli("--help")[0] == 0
    assert cli("nothing")[0] == 2
    assert cli("show", digits)[0] == 2
    code, _, err = cli("run", digits, "--shape", "images=2,1,8,8")
    assert code == 2 and "is not of the form NAME=1x3x224x224" in err
    code, _, err = cli("run", digits, "--input", "x.npy")
    assert code == 2 and "is not of the form NAME=FILE.npy" in err
    code, _, err = cli("bench", digits, "--threads", "0")
    assert code == 2 and "is not a whole number of at least 1" in err
    code, _, err = cli("bench", digits, "--seconds", "soon")
    assert code == 2 and "is not a time above 0" in err
    code, _, err = cli("bench", digits, "--vs", "tvm")
    assert code == 2 and "'tvm' is none of onnxruntime, openvino, torch" in err


def test_errors_are_one_line(cli: Cli, digits: Path, tmp_path: Path) -> None:
    code, out, err = cli("explain", tmp_path / "none.onnx")
    assert (code, out) == (1, "")
    assert err.startswith("error: ") and err.count("\n") == 1 and "none.onnx" in err
    code, _, err = cli("explain", digits, "--json", tmp_path / "no" / "folder.json")
    assert code == 1 and "error: " in err
    code, _, err = cli("run", digits, "--shape", "pictures=1x1x8x8")
    assert code == 1 and "error: the model has no input 'pictures'; it takes 'images'" in err


def test_run(cli: Cli, digits: Path, tmp_path: Path) -> None:
    given = np.random.default_rng(0).uniform(0, 16, (3, 1, 8, 8)).astype(np.float32)
    np.save(tmp_path / "in.npy", given)
    code, out, err = cli(
        "run", digits, "--input", f"images={tmp_path / 'in.npy'}", "--output", tmp_path / "out"
    )
    assert (code, err) == (0, "")
    assert "probabilities" in out and "[3, 10]" in out
    (want,) = onnxruntime.InferenceSession(str(digits)).run(None, {"images": given})
    got = np.load(tmp_path / "out" / "probabilities.npy")
    np.testing.assert_allclose(got, want, atol=1e-5)


def test_run_without_inputs(cli: Cli, digits: Path) -> None:
    code, out, err = cli("run", digits)
    assert code == 0 and "[1, 10]" in out
    assert err == "note: input 'images': open dims taken as 1: batch; --shape chooses others\n"
    assert cli("run", digits, "--level", "0")[0] == 0
    assert cli("run", digits, "--seed", "1")[1] != out


def test_explain(cli: Cli, digits: Path, tmp_path: Path) -> None:
    code, out, _ = cli("explain", digits, "--shape", BATCH, "--json", tmp_path / "facts.json")
    assert code == 0
    assert out.startswith("digits: ") and "Kernels, the most time above the roof first" in out
    facts = json.loads((tmp_path / "facts.json").read_text())
    assert facts["model"] == "digits"
    assert all(kernel["time_ms"] >= 0 for kernel in facts["kernels"])
    origins = {name for kernel in facts["kernels"] for name in kernel["origin"]}
    assert {"stem", "residual", "gemm_logits", "softmax_probabilities"} <= origins
    assert any(row["verdict"] == "taken" for row in facts["ledger"])


def test_json_alone(cli: Cli, digits: Path) -> None:
    code, out, _ = cli("explain", digits, "--shape", BATCH, "--json", "-", "--no-fuse")
    assert code == 0
    assert not [row for row in json.loads(out)["ledger"] if row["verdict"] == "taken"]


@pytest.mark.parametrize(
    ("stage", "start"),
    [
        ("graph", "graph digits\n  input %images: f32[2,1,8,8]\n"),
        ("regions", "region "),
        ("tile", "kernel "),
        ("program", "program digits\n  arena "),
        ("llvm", ""),
        ("asm", ""),
    ],
)
def test_show(cli: Cli, digits: Path, stage: str, start: str) -> None:
    code, out, _ = cli("show", digits, "--shape", BATCH, "--stage", stage)
    assert code == 0
    assert out.startswith(start)
    assert {"llvm": "define i32 @", "asm": ".text"}.get(stage, start) in out


def test_show_one_kernel(cli: Cli, digits: Path) -> None:
    _, every, _ = cli("show", digits, "--shape", BATCH, "--stage", "tile")
    names = [line.split()[1] for line in every.splitlines() if line.startswith("kernel ")]
    wanted = names[-1]
    _, out, _ = cli("show", digits, "--shape", BATCH, "--stage", "tile", "--kernel", wanted)
    assert out.startswith(f"kernel {wanted}\n") and out in every and len(out) < len(every)
    code, _, err = cli("show", digits, "--shape", BATCH, "--stage", "llvm", "--kernel", "no")
    assert code == 1 and f"error: no kernel is called 'no'; there are {names[0]}" in err
    code, _, err = cli("show", digits, "--stage", "graph", "--kernel", "no")
    assert code == 1 and "stage graph shows the whole model; --kernel goes with tile" in err


def test_machine(cli: Cli, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ROOFTILE_MACHINE", "zen4-server")
    code, out, _ = cli("machine", "--json", tmp_path / "m.json")
    assert code == 0
    assert "zen4-server: AMD EPYC (Zen 4), avx512, 2 cores" in out
    assert "118 GFLOP/s" in out and "apple-m1" in out and "33.6 MB" in out
    assert json.loads((tmp_path / "m.json").read_text())["peak"]["f32"] == 117.6e9
    assert json.loads(cli("machine", "--json", "-")[1])["name"] == "zen4-server"


def test_machine_probe_is_kept(cli: Cli, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    kept: list[Any] = []
    monkeypatch.setattr(machine_command, "probe", lambda: preset("zen5-server"))
    monkeypatch.setattr(machine_command, "keep", lambda machine: kept.append(machine) or True)
    assert "zen5-server" in cli("machine", "--probe")[1]
    assert [machine.name for machine in kept] == ["zen5-server"]
    monkeypatch.setattr(machine_command, "keep", lambda machine: False)
    assert "cannot be written: the next command measures again" in cli("machine", "--probe")[1]


def test_cache(cli: Cli, digits: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ROOFTILE_MACHINE", "zen4-server")
    monkeypatch.setenv("ROOFTILE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("ROOFTILE_PROGRAMS", "1")
    empty = (
        f"0 files of whole models, 0 B in {tmp_path / 'cache' / 'programs'}\n"
        f"0 objects of kernels, 0 B in {tmp_path / 'cache' / 'objects'}\n"
        "models loaded from here spared 0.0 s of compilation so far\n"
    )
    assert cli("cache")[1] == empty
    cli("run", digits)
    cli("run", digits)
    code, out, _ = cli("cache")
    assert code == 0 and out.startswith("2 files of whole models")
    assert "spared 0.0 s" not in out
    code, out, _ = cli("cache", "--clear")
    assert code == 0 and "removed 2 files" in out and "removed 0 objects" not in out
    assert cli("cache")[1].startswith("0 files of whole models, 0 B")


def test_demo(cli: Cli) -> None:
    code, out, _ = cli("demo")
    assert code == 0
    assert "read as " in out and "of the 64 shipped test images are read right" in out
    assert "kernels instead of" in out and "of the roof of" in out
    code, out, _ = cli("demo", "--digit", "5", "--explain")
    assert code == 0 and "Kernels, the most time above the roof first" in out
    code, _, err = cli("demo", "--digit", "64")
    assert code == 1 and "error: --digit must be 0 to 63" in err


def test_as_a_module_and_into_a_closed_pipe(digits: Path) -> None:
    command = [sys.executable, "-m", "rooftile", "show", str(digits), "--stage", "llvm"]
    made = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert made.stdout is not None and made.stderr is not None
    made.stdout.readline()
    made.stdout.close()
    errors = made.stderr.read().decode()
    made.stderr.close()
    assert made.wait() == 1
    assert "Traceback" not in errors and "BrokenPipe" not in errors
