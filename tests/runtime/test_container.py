"""Saved models: what comes back, and what is refused."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sample_programs as samples

from rooftile.core.errors import InvalidModel
from rooftile.native import cross_target, host_target
from rooftile.runtime import container, load, save


@pytest.fixture
def path(tmp_path: Path) -> Path:
    saved = tmp_path / "sample.rt"
    save(samples.executable(), saved, {"producer": "test"})
    return saved


def test_round_trip(path: Path) -> None:
    saved = load(path)
    assert saved.notes == {"producer": "test"}
    assert saved.made.program == samples.PROGRAM
    for out, want in zip(
        saved.made.run(samples.feeds()),
        samples.executable().run(samples.feeds()),
        strict=True,
    ):
        np.testing.assert_array_equal(out, want)


def test_constants_are_mapped(path: Path) -> None:
    constants = load(path).made.constants
    assert not constants.flags.writeable
    assert constants.ctypes.data % 64 == 0
    assert path.read_bytes().endswith(samples.WEIGHTS.tobytes())


def test_saved_over_its_own_file(path: Path) -> None:
    saved = load(path)
    save(saved.made, path, {"again": 1})
    np.testing.assert_array_equal(saved.made.run(samples.feeds())[3], samples.WEIGHTS)
    assert load(path).notes == {"again": 1}
    assert [file.name for file in path.parent.iterdir()] == ["sample.rt"]


def edit_header(path: Path, **fields: Any) -> None:
    """Change fields of the header; sections stay where they are relative to its end."""
    raw = path.read_bytes()
    length = int.from_bytes(raw[8:16], "little")
    header = json.loads(raw[16 : 16 + length]) | fields
    encoded = json.dumps({k: v for k, v in header.items() if v is not None}).encode()
    start, end = 16 + length, 16 + len(encoded)
    body = raw[start + -start % 64 :]
    path.write_bytes(
        raw[:8] + len(encoded).to_bytes(8, "little") + encoded + b"\0" * (-end % 64) + body
    )


def refused(path: Path) -> str:
    with pytest.raises(InvalidModel) as caught:
        load(path)
    assert str(path) in str(caught.value)
    return str(caught.value)


def test_other_files_are_refused(path: Path, tmp_path: Path) -> None:
    assert "cannot be read: No such file" in refused(tmp_path / "none")
    assert "cannot be read" in refused(tmp_path)
    raw = path.read_bytes()
    path.write_bytes(b"")
    assert "is empty" in refused(path)
    path.write_bytes(b"onnx" + raw)
    assert "is not a saved model" in refused(path)
    path.write_bytes(raw[:7] + b"\x09" + raw[8:])
    assert "has format 09, this version of rooftile reads 02" in refused(path)


@pytest.mark.parametrize("kept", [8, 12, 16, 100, 3000, -1])
def test_cut_files_are_refused(path: Path, kept: int) -> None:
    path.write_bytes(path.read_bytes()[:kept])
    assert "is cut short" in refused(path)


def test_longer_files_are_refused(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"\0")
    assert "is damaged" in refused(path)


def test_changed_code_is_refused(path: Path) -> None:
    raw = path.read_bytes()
    path.write_bytes(raw.replace(b"program sample", b"program zample"))
    assert "what it holds does not match its digest" in refused(path)


@pytest.mark.parametrize(
    "fields",
    [
        {"sizes": None},
        {"sizes": [3]},
        {"sizes": [-1, 3]},
        {"symbols": []},
        {"symbols": {"k": 1}},
        {"target": {}},
        {"notes": None},
    ],
)
def test_headers_without_a_field_are_refused(path: Path, fields: dict[str, Any]) -> None:
    edit_header(path, **fields)
    assert "its header lacks a field" in refused(path)


def test_headers_that_are_not_json_are_refused(path: Path) -> None:
    raw = path.read_bytes()
    path.write_bytes(raw[:16] + b"[" + raw[17:])
    assert "its header is not JSON" in refused(path)
    path.write_bytes(raw[:8] + (2).to_bytes(8, "little") + b"[]" + raw[18:])
    assert "its header lacks a field" in refused(path)


def test_other_systems_are_refused(path: Path) -> None:
    target = replace(host_target(), triple="riscv64-unknown-linux-gnu")
    save(samples.executable(), path, target=target)
    assert "was compiled for riscv64-unknown-linux-gnu, this is" in refused(path)


def test_other_cpus_are_refused(path: Path) -> None:
    features = host_target().features + ",+" + ",+".join(f"future{i}" for i in range(9))
    save(samples.executable(), path, target=replace(host_target(), cpu="next", features=features))
    message = refused(path)
    assert "for the CPU next; this one" in message
    assert "lacks future0, future1" in message and "future7, ...;" in message


def test_fewer_features_are_enough(path: Path) -> None:
    if host_target().arch == "x86_64":
        save(samples.executable(), path, target=cross_target("x86-64-v2"))
        load(path)
    assert container._system("arm64-apple-darwin23.1.0") == ("aarch64", "darwin")
    assert container._system("wasm32") == ("wasm32", "")


def test_programs_that_cannot_run_are_refused(path: Path) -> None:
    linked = samples.executable()
    linked.program = replace(linked.program, arena_bytes=64)
    save(linked, path)
    assert "holds a program that cannot run: sample: buffer 't' ends" in refused(path)
    linked = samples.executable()
    linked.code = b"not code"
    save(linked, path)
    assert "holds a program that cannot run" in refused(path)


def test_a_failed_save_leaves_nothing(tmp_path: Path) -> None:
    linked = samples.executable()
    target = tmp_path / "taken"
    target.mkdir()
    with pytest.raises(OSError):
        save(linked, target)
    assert [file.name for file in tmp_path.iterdir()] == ["taken"]
