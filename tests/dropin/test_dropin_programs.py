"""Programs written for onnxruntime print the same with rooftile in its place."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from dropin_models import write_models

HERE = Path(__file__).parent
PROGRAMS = sorted((HERE / "programs").glob("*.py"))
SOURCES = str(HERE.parents[1] / "src")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("dropin")
    write_models(made)
    return made


def printed(program: Path, folder: Path, *path: str) -> str:
    """What a program prints in a folder, with these folders in front of the modules' path."""
    before = [*path, os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, before))}
    ran = subprocess.run(
        [sys.executable, str(program)],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def test_there_are_programs() -> None:
    assert len(PROGRAMS) >= 20
    assert all("import onnxruntime as ort" in path.read_text() for path in PROGRAMS)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.stem)
def test_programs_print_the_same(program: Path, folder: Path) -> None:
    wanted = printed(program, folder)
    assert wanted
    assert printed(program, folder, str(HERE / "stand_in"), SOURCES) == wanted
