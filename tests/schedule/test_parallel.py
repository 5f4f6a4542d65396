"""Which axis threads share: cut in pieces that are equal, and what stays with one thread."""

from __future__ import annotations

import numpy as np
import pytest
from llvm_host import filled, made

from rooftile.ir.tile import Kernel
from rooftile.ir.tile.interpret import run
from rooftile.ir.tile.verify import verify
from rooftile.machine import preset
from rooftile.schedule import Scheduled, schedule

ZEN = preset("zen4-server")
LONG = 1e-3


def matmul(rows: int, inner: int, cols: int) -> Kernel:
    return made(f"""
kernel matmul
  memory A: f32[{rows},{inner}]
  memory B: f32[{inner},{cols}]
  memory C: f32[{rows},{cols}]
  whole m<{rows}, n<{cols}, k<{inner}
  C[m, n] := dot(A[m, k], B[k, n], over k)
""")


def planned(kernel: Kernel, threads: int = 2, seconds: float = LONG) -> Scheduled:
    return schedule(kernel, ZEN, frozenset("B"), threads=threads, seconds=seconds)


def tile_of(plan: Scheduled) -> object:
    [axis] = [axis for axis in plan.kernel.grid if axis.name == plan.split]
    return axis.tile


def test_one_thread_changes_nothing() -> None:
    kernel = matmul(512, 64, 64)
    serial = schedule(kernel, ZEN, frozenset("B"))
    assert planned(kernel, threads=1) == serial and serial.split is None
    assert planned(kernel, seconds=19e-6) == serial


@pytest.mark.parametrize("threads", [2, 3, 8])
def test_rows_are_cut_in_equal_pieces(threads: int) -> None:
    plan = planned(matmul(960, 64, 64), threads)
    assert plan.split == "m"
    tile = tile_of(plan)
    assert isinstance(tile, int)
    pieces = -(-960 // tile)
    assert threads <= pieces <= 4 * threads
    assert -(-pieces // threads) * threads * tile <= 1.15 * 960


def test_columns_are_cut_in_panels_where_rows_are_few() -> None:
    plan = planned(matmul(1, 512, 2048))
    assert plan.split == "n"
    tile = tile_of(plan)
    assert isinstance(tile, int) and tile % dict(plan.hints.register_tile)["n"] == 0


def test_large_weights_are_not_read_for_many_pieces() -> None:
    """Cut along its rows each piece would read 16 MB again."""
    assert planned(matmul(64, 1024, 4096), seconds=5e-3).split == "n"


def test_little_work_makes_few_pieces() -> None:
    plan = planned(matmul(960, 64, 64), threads=4, seconds=21e-6)
    tile = tile_of(plan)
    assert isinstance(tile, int) and -(-960 // tile) == 4


ALONE = {
    "a sum over all": "whole m<64, n<64\n  Y[0] := sum(sum(X[m, n] over n) over m)",
    "computed for each row": (
        "whole m<64, n<64, j<64, i<64\n"
        "  total = max(max(exp(X[i, j]) over j) over i)\n"
        "  Y[m] := add(total, X[m, 0])"
    ),
}


@pytest.mark.parametrize("name", ALONE)
def test_what_stays_with_one_thread(name: str) -> None:
    kernel = made(f"""
kernel alone
  memory X: f32[64,64]
  memory Y: f32[64]
  {ALONE[name]}
""")
    plan = planned(kernel)
    assert plan.split is None and plan.kernel == schedule(kernel, ZEN, frozenset()).kernel


def test_stores_that_combine_stay_with_one_thread() -> None:
    kernel = made("""
kernel histogram
  memory I: i64[512]
  memory X: f32[512]
  memory Y: f32[16]
  whole n<512
  Y[@I[n]] := X[n] combine add
""")
    assert planned(kernel).split is None


@pytest.mark.parametrize("sizes", [(7, 5, 40), (130, 9, 33), (1, 20, 300)])
def test_values_stay(sizes: tuple[int, int, int]) -> None:
    kernel = matmul(*sizes)
    arrays = filled(kernel)
    plan = planned(kernel, threads=3)
    found = run(verify(plan.kernel), arrays)
    np.testing.assert_allclose(found["C"], run(kernel, arrays)["C"], rtol=1e-9)
