"""Bytes a second read from each level of memory, by one core and by all."""

from __future__ import annotations

import ctypes
import itertools
import threading
import time
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from rooftile.machine.probe.kernels import READERS, read_text
from rooftile.machine.probe.timing import Effort, Kernels, best
from rooftile.native import Target, aligned

_SHARES = (0.9, 0.75, 0.5)
_LARGEST = 512 << 20
_SMALLEST = 64 << 20


class Reader:
    """Reads working sets of chosen sizes out of one buffer that is really there."""

    def __init__(self, target: Target, nbytes: int) -> None:
        types = (ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p)
        self._run = Kernels(read_text(target), target).call("read", *types)
        self._step = READERS * target.vector_bytes
        self._data = aligned(nbytes, 4096)
        self._data.fill(1)  # pages that were never written all map to one page of zeros
        self._sink = aligned(self._step)

    def read(self, nbytes: int, repeats: int) -> int:
        """Read a working set `repeats` times; returns its size, `nbytes` rounded to whole turns.

        AssertionError for more than the buffer holds.
        """
        whole = max(self._step, nbytes // self._step * self._step)
        assert whole <= self._data.nbytes, f"{whole} bytes of a buffer of {self._data.nbytes}"
        self._run(self._data.ctypes.data, whole, repeats, self._sink.ctypes.data)
        return whole

    def rate(self, nbytes: int, effort: Effort) -> float:
        """bytes/s of reading `nbytes` again and again, the best of the rounds."""
        whole = self.read(nbytes, 1)
        return whole / best(lambda repeats: self.read(nbytes, repeats), effort)


def working_sets(cache: Mapping[str, int]) -> dict[str, int]:
    """Bytes to read for each level: well within it, well beyond the one before."""
    sets: dict[str, int] = {}
    below = 0
    for level, size in cache.items():
        share = 4 if level == "l3" else 2  # others on the host use the last level too
        sets[level] = max(size // share, min(2 * below, size * 3 // 4))
        below = size
    sets["dram"] = min(_LARGEST, max(_SMALLEST, 3 * below))
    return sets


def measure_bandwidth(
    target: Target, cache: Mapping[str, int], cores: int, effort: Effort
) -> tuple[dict[str, float], dict[str, float]]:
    """bytes/s by level, of one core and of all cores together."""
    sets = working_sets(cache)
    shared = [level for level in ("l3", "dram") if level in sets]
    largest = max(sets.values())
    alone_reader = Reader(target, largest)
    alone = {level: alone_reader.rate(size, effort) for level, size in sets.items()}
    if cores == 1:
        return alone, dict(alone)
    together = {level: rate * cores for level, rate in alone.items()}
    count = min(cores, 16)
    readers = [alone_reader, *(Reader(target, -(-largest // count)) for _ in range(count - 1))]
    for level in shared:
        nbytes = sets[level] // len(readers)
        rate = max(_together(readers, nbytes, effort) for _ in range(effort.rounds))
        together[level] = min(max(rate, alone[level]), together[level])
    return alone, together


def effective_sizes(
    target: Target, cache: Mapping[str, int], alone: Mapping[str, float], effort: Effort
) -> dict[str, int]:
    """The part of each cache that still reads at its level's rate, from a sweep up to its size.

    A cache that other machines on the host share is smaller than the system tells.
    """
    levels = [*cache, "dram"]
    reader = Reader(target, max(cache.values()))
    found = {}
    for level, below in itertools.pairwise(levels):
        middle = float(np.sqrt(alone[level] * alone[below]))
        shares = [s for s in _SHARES if reader.rate(int(cache[level] * s), effort) >= middle]
        whole = shares and shares[0] == _SHARES[0]
        found[level] = cache[level] if whole else int(cache[level] * (shares or [0.5])[0])
    return found


def _together(readers: Sequence[Reader], nbytes: int, effort: Effort) -> float:
    """bytes/s of all readers at once, one thread each; counts the time when all of them ran."""
    gate = threading.Barrier(len(readers))
    repeats = max(1, int(effort.round_s * 20e9 / nbytes))
    spans: npt.NDArray[np.float64] = np.zeros((len(readers), 2))
    done = np.zeros(len(readers))

    def run(index: int) -> None:
        readers[index].read(nbytes, 1)
        gate.wait()
        spans[index, 0] = time.perf_counter()
        done[index] = readers[index].read(nbytes, repeats) * repeats
        spans[index, 1] = time.perf_counter()

    threads = [threading.Thread(target=run, args=(index,)) for index in range(len(readers))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return float(done.sum() / (spans[:, 1].max() - spans[:, 0].min()))
