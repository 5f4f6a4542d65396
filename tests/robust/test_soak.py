"""The soak, short; the full run is `python benchmarks/soak.py`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from scripts import environment

SOAK = Path(__file__).parents[2] / "benchmarks" / "soak.py"


@pytest.mark.slow
def test_memory_stays_flat(tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, str(SOAK), "--runs", "4000", "--most-mb", "8"],
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert ran.stdout.count(" runs ") == 10
