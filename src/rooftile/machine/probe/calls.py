"""What it costs to call a kernel, to meet another thread, and to wake one."""

from __future__ import annotations

import ctypes
import os
import statistics
import threading
import time
from collections.abc import Callable

from rooftile.machine.probe.kernels import call_text, meet_text
from rooftile.machine.probe.timing import Effort, Kernels, best
from rooftile.native import Target, aligned

ASSUMED_BARRIER_S = 1e-7
ASSUMED_WAKE_S = 2e-5

_ROUNDS = 2_000
_PATIENCE = 20_000_000
"""Looks at the counter before a side gives up: about 10 milliseconds."""


def measure_calls(target: Target, effort: Effort) -> tuple[float, float]:
    """Seconds of calling an empty kernel, and a microkernel that does nothing but its tile."""
    kernels = Kernels(call_text(target), target)
    table = aligned(64)
    data = aligned(4096)
    kernels.call("functions", ctypes.c_void_p)(table.ctypes.data)
    calls = kernels.call("calls", ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p)
    first, where = table.ctypes.data, data.ctypes.data
    second = first + ctypes.sizeof(ctypes.c_void_p)
    empty = best(lambda turns: calls(turns, first, where), effort)
    tile = best(lambda turns: calls(turns, second, where), effort)
    return empty, tile


def measure_barrier(target: Target, rounds: int = 5) -> float:
    """Seconds for two threads to meet once; the assumed figure where they never ran at once."""
    types = (ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)
    meet = Kernels(meet_text(), target).call("meet", *types, result=ctypes.c_int64)
    times = [_meet(meet) for _ in range(rounds)]
    return min((taken for taken in times if taken is not None), default=ASSUMED_BARRIER_S)


def _meet(meet: Callable[..., int]) -> float | None:
    counter = aligned(64)
    where = counter.ctypes.data
    other = threading.Thread(target=meet, args=(where, 1, _ROUNDS + 1, _PATIENCE))
    other.start()
    # The first round waits for the thread to start; the counter then stands at two.
    ready = meet(where, 0, 1, _PATIENCE) == 1
    start = time.perf_counter()
    done = meet(where, 2, _ROUNDS, _PATIENCE) if ready else 0
    taken = time.perf_counter() - start
    other.join()
    return taken / _ROUNDS if done == _ROUNDS else None


def measure_wake(times: int = 25) -> float:
    """Seconds from a write to the moment when a thread that slept on it runs: half a round trip."""
    there, back = os.pipe(), os.pipe()

    def answer() -> None:
        for _ in range(times):
            os.write(back[1], os.read(there[0], 1))

    thread = threading.Thread(target=answer)
    thread.start()
    trips = []
    for _ in range(times):
        start = time.perf_counter()
        os.write(there[1], b"x")
        os.read(back[0], 1)
        trips.append(time.perf_counter() - start)
    thread.join()
    for end in (*there, *back):
        os.close(end)
    return statistics.median(trips) / 2
