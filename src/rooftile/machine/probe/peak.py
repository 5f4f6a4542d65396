"""The multiply-add rate of one core."""

from __future__ import annotations

import ctypes
import time
from functools import lru_cache

import numpy as np

from rooftile.core.dtype import DType, to_numpy
from rooftile.machine.probe.kernels import accumulators, multiply_add, peak_text
from rooftile.machine.probe.timing import Effort, Kernels, best
from rooftile.native import Target, aligned, host_target

MEASURED: tuple[DType, ...] = ("f32", "f64", "f16", "bf16", "i8")


class PeakKernel:
    """A plain loop of independent multiply-adds; call it with a number of turns."""

    def __init__(self, dtype: DType, target: Target) -> None:
        text, self.operations = peak_text(dtype, target)
        self.dtype = dtype
        self._run = Kernels(text, target).call("peak", ctypes.c_int64, ctypes.c_void_p)
        self._operands = aligned((accumulators(target) + 2) * target.vector_bytes)
        pair = self._operands[: 2 * target.vector_bytes].view(to_numpy(dtype))
        pair[:] = np.ones(len(pair)).astype(pair.dtype)

    def __call__(self, turns: int) -> None:
        """Run `turns` turns of `operations` operations each, in this thread."""
        self._run(turns, self._operands.ctypes.data)


def peak_kernel(dtype: DType = "f32") -> PeakKernel:
    """The kernel of `dtype` for the host; InvalidOption where the ISA has no such instruction."""
    return _peak_kernel(dtype, host_target())


def peak_flops(dtype: DType = "f32", seconds: float = 0.05) -> float:
    """flop/s of one thread now, the best of rounds that take about `seconds` together."""
    kernel = peak_kernel(dtype)
    kernel(10_000)
    rounds = max(5, int(seconds / 0.005))
    return kernel.operations / best(kernel, Effort(seconds / rounds, rounds))


def measure_peaks(target: Target, effort: Effort) -> dict[DType, float]:
    """flop/s by dtype for each dtype that the target has instructions for."""
    found = {}
    for dtype in MEASURED:
        if multiply_add(dtype, target) is not None:
            kernel = _peak_kernel(dtype, target)
            _warm(kernel)
            found[dtype] = kernel.operations / best(kernel, effort)
    return found


def _warm(kernel: PeakKernel, seconds: float = 0.004) -> None:
    """Wide units take a while to power up."""
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        kernel(5_000)


@lru_cache(maxsize=16)
def _peak_kernel(dtype: DType, target: Target) -> PeakKernel:
    return PeakKernel(dtype, target)
