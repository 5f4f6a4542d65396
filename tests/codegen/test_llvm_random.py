"""Random kernels: native code against the interpreter, between guard pages, on every target."""

from __future__ import annotations

from collections.abc import Mapping

import llvm_host
import numpy as np
import pytest
import tile_fuzz

from rooftile.core.dtype import to_numpy
from rooftile.ir.tile.interpret import run as interpret
from rooftile.native.target import Target

SEEDS_A_TEST = 20
QUICK, SLOW = 100, 2000
"""Seeds for each instruction set."""


def check(seed: int, target: Target) -> None:
    """Exact samples must be equal to the last bit, smooth ones as good as numpy is in f32."""
    sample = tile_fuzz.sample(seed)
    edge = "end" if seed % 2 else "start"
    exact = interpret(sample.kernel, sample.arrays, sample.symbols)
    rounded = interpret(sample.kernel, sample.arrays, sample.symbols, native=True)
    outcome = llvm_host.execute(sample.kernel, sample.arrays, sample.symbols, target, edge=edge)
    assert outcome.code == 0
    if not comparable(sample.kernel.outputs, exact, rounded):
        return  # the numbers outgrew f32: only its accesses are checked
    for name, want in exact.items():
        dtype = sample.kernel.buf(name).dtype
        bound = 0.0 if sample.exact else {"f32": 2e-4}.get(dtype, 1e-9)
        llvm_host.close(name, outcome.outputs[name], want, dtype, bound)


def comparable(
    names: tuple[str, ...],
    exact: Mapping[str, llvm_host.Array],
    rounded: Mapping[str, llvm_host.Array],
) -> bool:
    """Whether numpy's own rounding leaves the values alone, nearly."""
    for name in names:
        held = exact[name].astype(rounded[name].dtype)
        if not np.allclose(
            held.astype(np.float64), rounded[name].astype(np.float64), 1e-5, 1e-5, equal_nan=True
        ):
            return False
    return True


@pytest.mark.parametrize("start", range(0, QUICK, SEEDS_A_TEST))
def test_random_kernels(start: int, isa: Target) -> None:
    for seed in range(start, start + SEEDS_A_TEST):
        try:
            check(seed, isa)
        except Exception as error:
            raise AssertionError(f"tile_fuzz.sample({seed}) on {isa.isa}: {error}") from error


@pytest.mark.slow
@pytest.mark.parametrize("start", range(QUICK, SLOW, 20 * SEEDS_A_TEST))
def test_more_random_kernels(start: int, isa: Target) -> None:
    for first in range(start, min(start + 20 * SEEDS_A_TEST, SLOW), SEEDS_A_TEST):
        test_random_kernels(first, isa)


def test_samples_are_reproducible() -> None:
    first, second = tile_fuzz.sample(7), tile_fuzz.sample(7)
    assert first.kernel == second.kernel
    for name, array in first.arrays.items():
        assert array.dtype == to_numpy(first.kernel.buf(name).dtype)
        np.testing.assert_array_equal(array, second.arrays[name])
