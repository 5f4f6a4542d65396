"""The refactoring proof: the same tree prints the same, whatever the hash seed; changes show."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).parents[2] / "tools" / "prints.py"


@pytest.fixture
def tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("prints_tool", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_prints_do_not_depend_on_the_run(
    tool: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool.write_inputs(tmp_path)
    found = []
    for seed in ("1", "2"):
        monkeypatch.setenv("PYTHONHASHSEED", seed)
        found.append(tool.prints_of(tool.ROOT, tmp_path))
    assert not list(tool.differences(*found))
    names = set(found[0])
    assert {"matmul_gelu/llvm", "softmax/triton", "mlp/graph", "digits/program"} <= names
    assert [name for name in names if name.startswith("attention/llvm/")]
    assert not [name for name in names if name.endswith("/error")]


def test_differences(tool: ModuleType) -> None:
    old = {"a": "one\ntwo\n", "b": "x\n", "d": "same"}
    new = {"a": "one\nthree\n", "c": "y\n", "d": "same"}
    assert list(tool.differences(old, new)) == [
        "differs: a\n    @@ -2 +2 @@\n    -two\n    +three",
        "gone: b",
        "new: c",
    ]
    (long,) = tool.differences({"a": "x\n" * 50}, {"a": "y\n" * 50})
    assert long.endswith("... 89 more lines")


def test_against_a_commit(
    tool: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(tool, "write_inputs", lambda folder: None)
    monkeypatch.setattr(tool, "tree_of", lambda commit, folder: Path(commit))
    monkeypatch.setattr(tool, "prints_of", lambda tree, folder: {"k": str(tree == tool.ROOT)})
    assert tool.main(["--against", str(tool.ROOT)]) == 0
    assert tool.main(["--against", "elsewhere"]) == 1
    shown = capsys.readouterr().out
    assert "0 of 1 prints differ" in shown and "differs: k" in shown


def test_a_commit_is_unpacked(
    tool: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def git(*arguments: str) -> None:
        identity = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
        subprocess.run(["git", *identity, "-C", str(tmp_path / "repo"), *arguments], check=True)

    (tmp_path / "repo").mkdir()
    git("init", "-q")
    (tmp_path / "repo" / "a.txt").write_text("a")
    git("add", ".")
    git("commit", "-qm", "first")
    monkeypatch.setattr(tool, "ROOT", tmp_path / "repo")
    (tmp_path / "tree").mkdir()
    assert (tool.tree_of("HEAD", tmp_path / "tree") / "a.txt").read_text() == "a"


def test_an_unknown_commit_is_an_error() -> None:
    command = [sys.executable, str(SCRIPT), "--against", "no-such-commit"]
    made = subprocess.run(command, capture_output=True, text=True)
    assert made.returncode == 1
    assert "error: git -C" in made.stderr
