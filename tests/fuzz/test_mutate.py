"""Two hundred damaged models: each runs or is refused with a clear error."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

MUTATE = Path(__file__).with_name("mutate.py")


def test_damaged_models_run_or_are_refused() -> None:
    command = [sys.executable, str(MUTATE), "--count", "200", "--start", "5000"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert "'ran':" in done.stdout and "'refused':" in done.stdout
