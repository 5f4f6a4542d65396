"""The pool: every tile once, codes, many Python threads, forks, exits, quiet when idle."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pytest

from rooftile.native import assemble, cross_target, host_target, pool_text
from rooftile.native.library import Library, link
from rooftile.native.pool import Pool, has_pool, shared_pool

pytestmark = pytest.mark.skipif(not has_pool(), reason="no pool of threads here")
TILES = 100
Cells = npt.NDArray[np.int64]

# Each tile notes itself in its own cell, and the threads that took part in another one behind.
# The code is that of a cell, where it is not 0.
TEXT = f"""
define i32 @mark(ptr %context, i64 %first, i64 %last, i64 %thread) {{
entry:
  %bit = shl i64 1, %thread
  %who = getelementptr i64, ptr %context, i64 {TILES}
  %before = atomicrmw or ptr %who, i64 %bit seq_cst
  br label %tile
tile:
  %at = phi i64 [%first, %entry], [%next, %tile]
  %worst = phi i32 [0, %entry], [%worse, %tile]
  %cell = getelementptr i64, ptr %context, i64 %at
  %old = atomicrmw add ptr %cell, i64 1 seq_cst
  %from = add i64 %at, {TILES + 1}
  %code_at = getelementptr i64, ptr %context, i64 %from
  %wide = load i64, ptr %code_at
  %code = trunc i64 %wide to i32
  %larger = icmp ugt i32 %code, %worst
  %worse = select i1 %larger, i32 %code, i32 %worst
  %next = add i64 %at, 1
  %more = icmp slt i64 %next, %last
  br i1 %more, label %tile, label %end
end:
  ret i32 %worse
}}
"""


@pytest.fixture(scope="module")
def library() -> Library:
    return Library(link([assemble(TEXT, host_target())]))


@pytest.fixture
def pool() -> Iterator[Pool]:
    made = Pool()
    yield made
    made.stop()


def context() -> Cells:
    return np.zeros(2 * TILES + 1, np.int64)


def run(pool: Pool, library: Library, cells: Cells, tiles: int, threads: int) -> int:
    function = library.address("mark")
    return pool.run(function, cells.ctypes.data, tiles, seconds=1e-3, threads=threads)


@pytest.mark.parametrize("threads", [1, 2, 3, 5])
@pytest.mark.parametrize("tiles", [1, 2, 7, TILES])
def test_every_tile_once(pool: Pool, library: Library, threads: int, tiles: int) -> None:
    pool.need(threads)
    cells = context()
    for call in range(1, 200):
        assert run(pool, library, cells, tiles, threads) == 0
        assert (cells[:tiles] == call).all() and not cells[tiles:TILES].any()
    assert cells[TILES] < 1 << threads, "no more threads than were asked for"


def test_helpers_take_part(pool: Pool, library: Library) -> None:
    pool.need(2)
    cells = context()
    deadline = time.monotonic() + 30
    while cells[TILES] != 3 and time.monotonic() < deadline:
        run(pool, library, cells, TILES, 2)
    assert cells[TILES] == 3


def test_without_helpers_the_caller_does_it_all(pool: Pool, library: Library) -> None:
    cells = context()
    assert run(pool, library, cells, TILES, 4) == 0
    assert (cells[:TILES] == 1).all() and cells[TILES] == 1


def test_the_greatest_code_reaches_the_caller(pool: Pool, library: Library) -> None:
    pool.need(3)
    cells = context()
    cells[TILES + 1 + 40], cells[TILES + 1 + 80] = 2, 1
    for _ in range(100):
        assert run(pool, library, cells, TILES, 3) == 2
    cells[TILES + 1 :] = 0
    assert run(pool, library, cells, TILES, 3) == 0


def test_small_work_stays_with_the_caller(pool: Pool, library: Library) -> None:
    pool.need(2)
    cells = context()
    for _ in range(50):
        pool.run(library.address("mark"), cells.ctypes.data, TILES, seconds=1e-9, threads=2)
    assert (cells[:TILES] == 50).all() and cells[TILES] == 1


def test_many_python_threads_at_once(pool: Pool, library: Library) -> None:
    pool.need(3)
    failures: list[BaseException] = []

    def work() -> None:
        try:
            cells = context()
            for call in range(1, 300):
                run(pool, library, cells, TILES, 2 + call % 2)
                assert (cells[:TILES] == call).all()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not failures and not any(thread.is_alive() for thread in threads)


def test_idle_helpers_use_no_cpu(pool: Pool, library: Library) -> None:
    pool.need(3)
    run(pool, library, context(), TILES, 3)
    time.sleep(0.05)
    before = time.process_time()
    time.sleep(0.3)
    assert time.process_time() - before < 0.1


def test_stop_and_start_again(pool: Pool, library: Library) -> None:
    cells = context()
    for call in range(1, 4):
        pool.need(3)
        assert len(pool.helpers) == 2 and pool.threads == 3
        run(pool, library, cells, TILES, 3)
        assert (cells[:TILES] == call).all()
        helpers = pool.helpers
        pool.stop()
        assert not any(helper.is_alive() for helper in helpers)
    pool.stop()
    run(pool, library, cells, TILES, 3)
    assert (cells[:TILES] == 4).all()


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_has_helpers_of_its_own(library: Library) -> None:
    pool = shared_pool()
    pool.need(2)
    cells = context()
    run(pool, library, cells, TILES, 2)
    child = os.fork()
    if child == 0:
        good = pool.threads == 1 and not pool.helpers
        run(pool, library, cells, TILES, 2)  # alone
        pool.need(2)
        deadline = time.monotonic() + 20
        cells[TILES] = 0
        while cells[TILES] != 3 and time.monotonic() < deadline:
            run(pool, library, cells, TILES, 2)
        os._exit(0 if good and cells[TILES] == 3 else 1)
    assert os.waitpid(child, 0)[1] == 0
    run(pool, library, cells, TILES, 2)
    assert (cells[:TILES] == 2).all()


def test_the_interpreter_ends_with_helpers_asleep_and_awake() -> None:
    lines = (
        "from rooftile.native.pool import shared_pool",
        "shared_pool().need(3)",
        "print(len(shared_pool().helpers))",
    )
    found = subprocess.run(
        [sys.executable, "-c", "\n".join(lines)], capture_output=True, text=True, timeout=60
    )
    assert (found.returncode, found.stdout.strip(), found.stderr) == (0, "2", "")


def test_text_for_arm_is_sound() -> None:
    arm = cross_target("aarch64-linux")
    assert pool_text.supported(arm)
    assert assemble(pool_text.pool_text(arm), arm)
    assert not pool_text.supported(cross_target("aarch64-macos"))
