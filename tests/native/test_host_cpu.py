"""The description of this CPU in a file: read again, never trusted when damaged."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rooftile.native import host_cpu


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ROOFTILE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def _never() -> host_cpu.Description:
    raise AssertionError("LLVM was asked")


def test_llvm_is_asked_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = host_cpu.described_host()
    assert found == host_cpu.ask_llvm()
    monkeypatch.setattr(host_cpu, "ask_llvm", _never)
    assert host_cpu.described_host() == found


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b'["a", "b", "c", "d"]', b"\xff"])
def test_damaged_files_are_made_anew(folder: Path, content: bytes) -> None:
    found = host_cpu.described_host()
    [path] = folder.iterdir()
    path.write_bytes(content)
    assert host_cpu.described_host() == found
    assert json.loads(path.read_bytes())[:3] == list(found)


def test_another_cpu_has_another_file(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host_cpu.described_host()
    other = tmp_path / "cpuinfo"
    other.write_text("model name\t: another\nflags\t\t: fpu\ncpu MHz\t\t: 1\n\nmodel name\t: x\n")
    monkeypatch.setattr(host_cpu, "_CPUINFO", other)
    host_cpu.described_host()
    assert len(list(folder.iterdir())) == 2
    other.write_text("model name\t: another\nflags\t\t: fpu\ncpu MHz\t\t: 2\n")
    host_cpu.described_host()
    assert len(list(folder.iterdir())) == 2


def test_no_file_without_a_folder_or_a_description(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "taken").write_bytes(b"")
    monkeypatch.setenv("ROOFTILE_CACHE", str(tmp_path / "taken"))
    assert host_cpu.described_host() == host_cpu.ask_llvm()
    monkeypatch.setenv("ROOFTILE_CACHE", str(tmp_path / "none"))
    monkeypatch.setattr(host_cpu, "_CPUINFO", tmp_path / "nothing")
    assert host_cpu.described_host() == host_cpu.ask_llvm()
    assert not (tmp_path / "none").exists()
