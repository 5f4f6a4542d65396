"""The pool: every chunk once, phases in order, from many threads, after a fork, quiet when idle."""

from __future__ import annotations

import ctypes
import gc
import os
import threading
import time

import numpy as np
import pytest

from rooftile.core.errors import InvalidOption
from rooftile.native.assemble import assemble
from rooftile.native.library import Library
from rooftile.native.pool import Job, Pool, available_threads, pool, ticks_per_second
from rooftile.native.target import host_target

COUNTS = [7, 1, 13, 100, 2]
WIDTH = 100

# Each chunk notes itself in its own cell, and how many chunks of the phase before it saw done.
TEXT = f"""
define void @chunk(ptr %context, i64 %phase, i64 %chunk, i64 %thread) {{
  %row = mul i64 %phase, {WIDTH}
  %at = add i64 %row, %chunk
  %cell = getelementptr i64, ptr %context, i64 %at
  %old = atomicrmw add ptr %cell, i64 1 seq_cst
  %total = getelementptr i64, ptr %context, i64 {len(COUNTS) * WIDTH}
  %mine = getelementptr i64, ptr %total, i64 %phase
  %n = atomicrmw add ptr %mine, i64 1 seq_cst
  %first = icmp eq i64 %phase, 0
  br i1 %first, label %end, label %check
check:
  %before = sub i64 %phase, 1
  %other = getelementptr i64, ptr %total, i64 %before
  %done = load atomic i64, ptr %other seq_cst, align 8
  %seen = getelementptr i64, ptr %total, i64 %at
  %place = getelementptr i64, ptr %seen, i64 16
  store i64 %done, ptr %place
  br label %end
end:
  ret void
}}
"""


@pytest.fixture(scope="module")
def chunk() -> int:
    library = Library([assemble(TEXT, host_target())])
    chunk.library = library  # type: ignore[attr-defined]
    return library.address("chunk")


def context() -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.zeros(2 * len(COUNTS) * WIDTH + 32, np.int64)


def check(memory: np.ndarray[tuple[int], np.dtype[np.int64]], calls: int) -> None:
    for phase, count in enumerate(COUNTS):
        row = memory[phase * WIDTH : (phase + 1) * WIDTH]
        assert (row[:count] == calls).all()
        assert (row[count:] == 0).all()
    seen = memory[len(COUNTS) * WIDTH + 16 :]
    for phase in range(1, len(COUNTS)):
        row = seen[phase * WIDTH : phase * WIDTH + COUNTS[phase]]
        assert (row == calls * COUNTS[phase - 1]).all(), "a phase began before the last was done"


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_every_chunk_once_and_phases_in_order(chunk: int, threads: int) -> None:
    memory = context()
    job = Job(pool(threads), chunk, memory.ctypes.data, COUNTS, seconds=1.0)
    for call in range(1, 300):
        job.run()
        check(memory, call)


def test_small_work_stays_with_the_caller(chunk: int) -> None:
    memory = context()
    own = Pool(2)
    job = Job(own, chunk, memory.ctypes.data, COUNTS, seconds=1e-9)
    job.run()
    check(memory, 1)
    assert job.memory.view(np.uint32)[20 // 4] == 0, "no call was shared"
    own.stop()


def test_many_python_threads_at_once(chunk: int) -> None:
    failures: list[BaseException] = []

    def work() -> None:
        try:
            memory = context()
            job = Job(pool(2), chunk, memory.ctypes.data, COUNTS, seconds=1.0)
            for _ in range(100):
                job.run()
            check(memory, 100)
            del job
            gc.collect()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not failures and not any(thread.is_alive() for thread in threads)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_has_a_pool_of_its_own(chunk: int) -> None:
    memory = context()
    job = Job(pool(2), chunk, memory.ctypes.data, COUNTS, seconds=1.0)
    job.run()
    child = os.fork()
    if child == 0:
        memory[:] = 0
        fresh = Job(pool(2), chunk, memory.ctypes.data, COUNTS, seconds=1.0)
        fresh.run()
        os._exit(0 if (memory[: COUNTS[0]] == 1).all() else 1)
    assert os.waitpid(child, 0)[1] == 0
    job.run()
    check(memory, 2)


def test_idle_helpers_use_no_cpu(chunk: int) -> None:
    memory = context()
    job = Job(pool(2), chunk, memory.ctypes.data, COUNTS, seconds=1.0)
    job.run()
    time.sleep(0.05)
    before = time.process_time()
    time.sleep(0.3)
    assert time.process_time() - before < 0.1


def test_stop_and_start_again(chunk: int) -> None:
    own = Pool(2)
    memory = context()
    job = Job(own, chunk, memory.ctypes.data, COUNTS, seconds=1.0)
    job.run()
    assert len(own.helpers) == 1
    own.stop()
    assert own.helpers == []
    job.run()
    check(memory, 2)
    own.stop()


def test_counts_outside_the_range() -> None:
    for threads in (0, 65):
        with pytest.raises(InvalidOption, match="is not a count from 1 to 64"):
            Pool(threads)
    assert 1 <= available_threads() <= 64
    assert ticks_per_second() > 1e6
    assert ctypes.sizeof(ctypes.c_uint64) == 8
