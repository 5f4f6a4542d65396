"""A forked child runs sessions, whatever the parent's threads were at."""

from __future__ import annotations

from pathlib import Path

import pytest
from scripts import run

ALONE = """
made = session()
check(made)
for _ in range(5):
    child = os.fork()
    if not child:
        check(made)
        check(session())
        sys.exit(7)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    check(made)
print("well")
"""
BUSY = """
import multiprocessing, warnings
warnings.simplefilter("ignore")
made, small, over = session(), session(1), threading.Event()

def busy(number):
    while not over.is_set():
        check(made if number % 2 else small)

def compiling():
    rows = 1
    while not over.is_set():
        check(session(2, rows), rows)
        rows = rows % 64 + 1

def child():
    check(made)
    check(small)
    check(session(2, 7), 7)

threads = [threading.Thread(target=busy, args=(n,)) for n in range(3)]
threads.append(threading.Thread(target=compiling))
for thread in threads:
    thread.start()
context = multiprocessing.get_context("fork")
for _ in range(12):
    process = context.Process(target=child)
    process.start()
    process.join(30)
    if process.exitcode != 0:
        print("a child ended with", process.exitcode, flush=True)
        process.kill()
        os._exit(1)
over.set()
for thread in threads:
    thread.join()
print("well")
"""


def test_a_child_of_a_quiet_process(tmp_path: Path) -> None:
    assert run(ALONE, tmp_path) == "well\n"


@pytest.mark.slow
def test_children_of_a_busy_process(tmp_path: Path) -> None:
    assert run(BUSY, tmp_path) == "well\n"
