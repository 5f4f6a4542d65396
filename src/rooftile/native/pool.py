"""One pool of threads for the process, shared by all sessions: `pool(threads)`, `Job`."""

from __future__ import annotations

import atexit
import ctypes
import os
import threading
import time
import weakref
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from rooftile.core.errors import InvalidOption
from rooftile.native import pool_text as layout
from rooftile.native.aligned import aligned
from rooftile.native.assemble import assemble
from rooftile.native.library import Library
from rooftile.native.target import host_target

MAX_THREADS = 64
SPIN_S = 50e-6
"""How long a helper looks for the next call before it parks: no CPU is used between calls."""
HOT_S, COLD_S = 20e-6, 150e-6
"""Least predicted work of a call that asks helpers which still spin, and which have parked."""

_CYCLES = """
declare i64 @llvm.readcyclecounter()
define i64 @pool_cycles() {
  %now = call i64 @llvm.readcyclecounter()
  ret i64 %now
}
"""


class Job:
    """Phases of chunks: `function(context, phase, chunk, thread)` is native code.

    Chunks of one phase may run at once, on any thread; phases run in order. `seconds` is what one
    thread is expected to need. The memory behind `context` must outlive the job.
    """

    def __init__(
        self, pool: Pool, function: int, context: int, counts: Sequence[int], seconds: float
    ) -> None:
        self.pool = pool
        self.memory = aligned(layout.PHASES + len(counts) * layout.phase_bytes(pool.threads))
        self.memory[:] = 0
        words64, words32 = self.memory.view(np.uint64), self.memory.view(np.uint32)
        words64[layout.JOB_FUNCTION // 8] = function
        words64[layout.JOB_CONTEXT // 8] = context
        words32[layout.JOB_PHASES // 4] = len(counts)
        words64[layout.JOB_COST // 8] = int(seconds * ticks_per_second())
        for number, count in enumerate(counts):
            place = layout.PHASES + number * layout.phase_bytes(pool.threads)
            words32[(place + layout.PHASE_COUNT) // 4] = count
        self.address = self.memory.ctypes.data
        self._retire = weakref.finalize(self, _retire, pool, self.memory)

    def run(self) -> None:
        """All phases; returns when the last chunk is done."""
        self.pool.run(self.address)


class Pool:
    """`threads` threads, the caller's included. Helpers start at the first call."""

    def __init__(self, threads: int) -> None:
        if not 1 <= threads <= MAX_THREADS:
            raise InvalidOption(f"threads {threads} is not a count from 1 to {MAX_THREADS}")
        self.threads = threads
        self.library = _library(threads)
        entry = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)
        self._run = entry(self.library.address("pool_run"))
        self._retire = entry(self.library.address("pool_retire"))
        self._helper = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint32)(
            self.library.address("pool_helper")
        )
        self._start_lock = threading.Lock()
        self._reset()

    def _reset(self) -> None:
        """Fresh memory and no helpers, as a process has after a fork."""
        self.helpers: list[threading.Thread] = []
        self.started = self.threads == 1
        self.memory = aligned(layout.pool_bytes(self.threads))
        self.memory[:] = 0
        self._words32[layout.THREADS // 4] = self.threads
        ticks = ticks_per_second()
        self._words64[layout.SPIN // 8] = int(SPIN_S * ticks)
        self._words64[layout.HOT // 8] = int(HOT_S * ticks)
        self._words64[layout.COLD // 8] = int(COLD_S * ticks)
        self.address = self.memory.ctypes.data

    @property
    def _words32(self) -> np.ndarray[tuple[int], np.dtype[np.uint32]]:
        return self.memory.view(np.uint32)

    @property
    def _words64(self) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
        return self.memory.view(np.uint64)

    def run(self, job: int) -> None:
        """One call of the job at an address; any number of Python threads may call at once."""
        if not self.started:
            self.start()
        self._run(self.address, job)

    def start(self) -> None:
        """Start the helpers and wait until they run."""
        with self._start_lock:
            if self.started:
                return
            for number in range(1, self.threads):
                helper = threading.Thread(
                    target=self._helper,
                    args=(self.address, number),
                    name=f"rooftile-{number}",
                    daemon=True,
                )
                helper.start()
                self.helpers.append(helper)
            deadline = time.monotonic() + 5.0
            while self._words32[layout.JOINED // 4] < len(self.helpers):
                if time.monotonic() > deadline:
                    break
                time.sleep(0.0005)
            self.started = True

    def stop(self) -> None:
        """End the helpers; a later call starts new ones."""
        with self._start_lock:
            if not self.helpers:
                return
            self._words32[layout.STOP // 4] = 1
            # Helpers that park now see the flag; those that are parked are woken by a call's wake.
            self._words32[layout.GENERATION // 4] += 2
            while any(helper.is_alive() for helper in self.helpers):
                self._run_wake()
                for helper in self.helpers:
                    helper.join(0.002)
            self._reset()

    def _run_wake(self) -> None:
        wake = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(self.library.address("pool_wake"))
        wake(self.address)

    def retire(self, job: int) -> None:
        """No helper is in the job at an address behind this."""
        if self.helpers:
            self._retire(self.address, job)


def _retire(pool: Pool, memory: np.ndarray[tuple[int], np.dtype[np.uint8]]) -> None:
    pool.retire(memory.ctypes.data)


_pools: dict[int, Pool] = {}
_pools_lock = threading.Lock()


def pool(threads: int) -> Pool:
    """The process's pool of that many threads."""
    with _pools_lock:
        if threads not in _pools:
            _pools[threads] = Pool(threads)
        return _pools[threads]


def available_threads() -> int:
    """The CPUs that this process may use: its affinity, and a cgroup's quota rounded up."""
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    quota = _cgroup_quota()
    return max(1, min(count or 1, quota or MAX_THREADS, MAX_THREADS))


def _cgroup_quota() -> int | None:
    try:
        with open("/sys/fs/cgroup/cpu.max", encoding="ascii") as file:
            limit, period = file.read().split()
        return None if limit == "max" else max(1, -(-int(limit) // int(period)))
    except (OSError, ValueError):
        return None


@lru_cache(maxsize=1)
def ticks_per_second() -> float:
    """The rate of the counter that native code reads, measured over some milliseconds."""
    library = Library([assemble(_CYCLES, host_target())])
    read = ctypes.CFUNCTYPE(ctypes.c_uint64)(library.address("pool_cycles"))
    start, first = time.perf_counter(), read()
    time.sleep(0.01)
    end, last = time.perf_counter(), read()
    return max(1e6, float(last - first) / (end - start))


@lru_cache(maxsize=MAX_THREADS)
def _library(threads: int) -> Library:
    return Library([assemble(layout.pool_text(host_target(), threads), host_target())])


def _stop_all() -> None:
    for existing in list(_pools.values()):
        existing.stop()


def _forget_all() -> None:
    """In a forked child only the forking thread lives on."""
    for existing in list(_pools.values()):
        existing._start_lock = threading.Lock()
        existing._reset()


atexit.register(_stop_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_all)
