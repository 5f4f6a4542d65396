"""`python -m rooftile.bench.worker FD`: one engine in a process of its own, told what to do."""

from __future__ import annotations

import sys
import time
from multiprocessing.connection import Connection
from typing import Any

from rooftile.bench.engines import Call, open_engine

BLOCK_S, BLOCK_CALLS, IDLE_S, DISCARDED = 0.05, 10, 0.1, 2


def serve(pipe: Any) -> None:
    """Open the engine that the first message names; then answer `values`, `block`, `rss`, `facts`.

    Each answer is a dict; `{"failed": why}` is the last one.
    """
    try:
        request = pipe.recv()
        began = time.perf_counter()
        call, session = open_engine(**request)
        opened = time.perf_counter()
        call()
        ran = time.perf_counter()
        pipe.send({"load_ms": (opened - began) * 1e3, "first_run_ms": (ran - opened) * 1e3})
        while (order := pipe.recv()) != "end":
            pipe.send(_answer(order, call, session))
    except EOFError:  # the parent is gone
        return
    except Exception as error:  # engines raise what they like: the parent is told
        pipe.send({"failed": _words(error)})


def _answer(order: str, call: Call, session: Any) -> dict[str, Any]:
    if order == "facts":
        from rooftile.bench.facts import facts_of

        return facts_of(session)
    if order == "values":
        return {"values": call()}
    if order == "rss":
        return {"rss_mb": peak_rss_mb()}
    return {"seconds": block(call)}


def block(call: Call) -> list[float]:
    """Seconds of each call: at least BLOCK_S and BLOCK_CALLS, after a pause and discarded calls.

    The pause lets thread pools of other engines stop spinning.
    """
    time.sleep(IDLE_S)
    for _ in range(DISCARDED):
        call()
    times: list[float] = []
    while sum(times) < BLOCK_S or len(times) < BLOCK_CALLS:
        began = time.perf_counter()
        call()
        times.append(time.perf_counter() - began)
    return times


def peak_rss_mb() -> float:
    """The most memory that this process has held, in MB of 10^6 bytes."""
    try:
        # What getrusage tells includes the parent from before the exec.
        with open("/proc/self/status", encoding="ascii") as file:
            line = next(line for line in file if line.startswith("VmHWM"))
        return int(line.split()[1]) * 1024 / 1e6
    except (OSError, StopIteration):
        import resource

        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak * (1 if sys.platform == "darwin" else 1024) / 1e6


def _words(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[-1] if lines else ''}"[:200]


if __name__ == "__main__":
    serve(Connection(int(sys.argv[1])))
