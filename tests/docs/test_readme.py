"""Commands, snippets and links of the README are true."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from importlib import resources
from pathlib import Path

import numpy as np
import pytest

from rooftile.cli.main import main

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```(\w*)\n(.*?)```", README, re.DOTALL)
COMMANDS = [
    line.split("#")[0].strip()
    for language, block in BLOCKS
    if not language
    for line in block.splitlines()
    if line.startswith("rooftile ")
]
SNIPPETS = [block for language, block in BLOCKS if language == "python"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a model.onnx to be in."""
    assets = resources.files("rooftile.cli") / "assets"
    shutil.copy(str(assets / "digits.onnx"), tmp_path / "model.onnx")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_there_is_something_to_test() -> None:
    assert len(COMMANDS) >= 6 and len(SNIPPETS) == 2


@pytest.mark.parametrize("command", COMMANDS)
def test_commands(command: str, folder: Path) -> None:
    arguments = shlex.split(command)[1:]
    if arguments[0] == "bench":
        arguments += ["--seconds", "0.1", "--no-float64"]
    assert main(arguments) == 0


@pytest.mark.parametrize("snippet", SNIPPETS)
def test_snippets(snippet: str, folder: Path) -> None:
    exec(compile(snippet, "README.md", "exec"), {"x": np.ones((2, 1, 8, 8), np.float32)})


def test_links() -> None:
    links = re.findall(r"\]\((?!https?:)([^)#]+)\)", README)
    missing = [link for link in links if not (ROOT / link).exists()]
    assert len(links) > 5 and not missing


def test_the_script_of_ci_is_sound() -> None:
    script = ROOT / ".ci" / "run"
    assert script.stat().st_mode & 0o111, ".ci/run must be executable"
    subprocess.run(["bash", "-n", str(script)], check=True)
    text = script.read_text(encoding="utf-8")
    assert "set -euo pipefail" in text and "-m pytest" in text
