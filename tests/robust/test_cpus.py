"""The number of threads follows the CPUs that a process may use."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from scripts import run

BODY = """
from rooftile.session.options import default_threads
made = session(0)
check(made)
print(default_threads(), threading.active_count(), made.compiled_for().program.threads)
"""


@pytest.mark.skipif(not shutil.which("taskset"), reason="taskset is not there")
def test_one_cpu_is_one_thread(tmp_path: Path) -> None:
    assert run(BODY, tmp_path, "taskset", "-c", "0") == "1 1 1\n"
