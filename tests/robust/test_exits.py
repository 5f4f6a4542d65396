"""Processes end, and end quietly, whatever runs in them."""

from __future__ import annotations

from pathlib import Path

import pytest
from scripts import run

AFTER_A_RUN = "check(session())\nprint('well')\n"
IN_A_DAEMON = """
made = session({threads})
check(made)
def forever():
    while True:
        made.run(None, {{"x": X}})
for _ in range({daemons}):
    threading.Thread(target=forever, daemon=True).start()
time.sleep(0.1)
print("well")
"""
ASYNC = """
made = session()
made.run_async(None, {"x": X}, lambda found, data, error: print(len(found), data, error), "last")
"""
AT_EXIT = """
import atexit
made = session()
atexit.register(lambda: (check(made), print("well")))
"""


def test_right_after_a_run(tmp_path: Path) -> None:
    for _ in range(3):
        assert run(AFTER_A_RUN, tmp_path) == "well\n"


@pytest.mark.parametrize(("threads", "daemons"), [(1, 1), (2, 1), (2, 3)])
def test_while_daemons_run_a_session(tmp_path: Path, threads: int, daemons: int) -> None:
    assert run(IN_A_DAEMON.format(threads=threads, daemons=daemons), tmp_path) == "well\n"


def test_before_a_run_has_called_back(tmp_path: Path) -> None:
    assert run(ASYNC, tmp_path) == "1 last \n"


def test_a_run_at_exit(tmp_path: Path) -> None:
    assert run(AT_EXIT, tmp_path) == "well\n"
