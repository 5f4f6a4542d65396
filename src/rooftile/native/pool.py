"""The process's pool of threads, shared by all sessions: `shared_pool()`."""

from __future__ import annotations

import atexit
import ctypes
import os
import threading
import time
from functools import lru_cache

import numpy as np

from rooftile.core.errors import InvalidOption
from rooftile.native import pool_text as layout
from rooftile.native.aligned import aligned
from rooftile.native.cache import build
from rooftile.native.library import Library
from rooftile.native.locks import new_lock
from rooftile.native.target import host_target

MAX_THREADS = layout.MAX_THREADS
SPIN_S = 50e-6
"""How long a helper looks for the next call before it parks: no CPU is used between runs."""
HOT_S, COLD_S = 20e-6, 150e-6
"""Least expected work of a call that is shared, and least work ahead that parked helpers are woken
for."""
GRAIN_S = 5e-6
"""Expected work of one ticket."""


class Pool:
    """Helpers for native code. Its memory stays where it is for the life of the process, so code
    may keep the address; helpers start when they are first needed, after a fork anew.
    """

    def __init__(self) -> None:
        self.library = Library(build([layout.pool_text(host_target())], host_target()))
        self._native_run = ctypes.CFUNCTYPE(
            ctypes.c_int32, *[ctypes.c_void_p] * 3, *[ctypes.c_int64] * 4
        )(self.library.address("pool_run"))
        self._helper = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)(
            self.library.address("pool_helper")
        )
        self._stop = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(self.library.address("pool_stop"))
        self.memory = aligned(layout.POOL_BYTES)
        self.address = int(self.memory.ctypes.data)
        self._lock = new_lock()
        self.helpers: list[threading.Thread] = []
        self.reset()

    def reset(self) -> None:
        """No helpers and nothing in progress, as it is in a process after a fork."""
        self.helpers = []
        self.threads = 1
        """How many threads take part now, the caller's included."""
        self.memory[:] = 0
        words = self.memory.view(np.uint64)
        words[layout.RUN // 8] = self.library.address("pool_run")
        words[layout.SPIN // 8] = int(SPIN_S * _ticks_per_second(self.library))
        for place, seconds in ((layout.HOT, HOT_S), (layout.COLD, COLD_S), (layout.GRAIN, GRAIN_S)):
            words[place // 8] = round(seconds * 1e9)

    def need(self, threads: int) -> None:
        """See to it that so many threads can take part, the caller's included."""
        with self._lock:
            for number in range(self.threads, min(threads, MAX_THREADS)):
                helper = threading.Thread(
                    target=self._helper,
                    args=(self.address, number),
                    name=f"rooftile-{number}",
                    daemon=True,
                )
                helper.start()
                self.helpers.append(helper)
                self.threads = number + 1

    def run(self, function: int, context: int, tiles: int, seconds: float, threads: int) -> int:
        """Call native code on all tiles, as compiled programs do: see `pool_text`."""
        cost = round(seconds * 1e9)
        code: int = self._native_run(
            self.address, function, context, tiles, cost, max(cost, round(COLD_S * 1e9)), threads
        )
        return code

    def stop(self) -> None:
        """End the helpers and wait until they are gone; `need` starts new ones."""
        with self._lock:
            if not self.helpers:
                return
            self._stop(self.address)
            for helper in self.helpers:
                helper.join()
            self.helpers = []
            self.threads = 1
            self.memory.view(np.uint32)[layout.STOP // 4] = 0


_shared: Pool | None = None
_making = new_lock()


def shared_pool() -> Pool:
    """The pool of this process; InvalidOption where this platform has none."""
    global _shared
    with _making:
        if _shared is None:
            if not has_pool():
                raise InvalidOption("several threads are there on Linux alone, use 1")
            _shared = Pool()
        return _shared


def has_pool() -> bool:
    """Whether kernels can run on several threads here."""
    return layout.supported(host_target())


@lru_cache(maxsize=1)
def _ticks_per_second(library: Library) -> float:
    """The rate of the counter that native code reads."""
    read = ctypes.CFUNCTYPE(ctypes.c_uint64)(library.address("pool_ticks"))
    start, first = time.perf_counter(), read()
    time.sleep(0.002)
    end, last = time.perf_counter(), read()
    return max(1e6, float(last - first) / (end - start))


def _stop_shared() -> None:
    if _shared is not None:
        _shared.stop()


def _without_helpers() -> None:
    """In a forked child only the forking thread lives on."""
    if _shared is not None:
        _shared.reset()


atexit.register(_stop_shared)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_without_helpers)
