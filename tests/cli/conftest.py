"""The demo's model as a file, and the command line in this process."""

from __future__ import annotations

from collections.abc import Callable
from importlib import resources
from pathlib import Path

import pytest

from rooftile.cli.main import main

Cli = Callable[..., tuple[int, str, str]]


@pytest.fixture
def digits() -> Path:
    """The demo's trained model: images [batch, 1, 8, 8]."""
    return Path(str(resources.files("rooftile.cli") / "assets" / "digits.onnx"))


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> Cli:
    """`cli("run", path)` gives the exit code, and what went to both outputs."""

    def call(*arguments: object) -> tuple[int, str, str]:
        code = main([str(item) for item in arguments])
        out, err = capsys.readouterr()
        return code, out, err

    return call
