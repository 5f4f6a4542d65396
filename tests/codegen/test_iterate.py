"""Iterates as native code: lanes, rows and sums over them, and which indices are checked."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from llvm_host import agree

from rooftile.codegen import triton
from rooftile.codegen.llvm import emit
from rooftile.core.errors import NotLowered
from rooftile.ir.tile import Kernel
from rooftile.ir.tile.text import parse
from rooftile.ir.tile.verify import verify
from rooftile.native.target import Target, host_target

STEP = "T[@cast(last(u32), i64)]"
MORE = f"bitxor({STEP}, last(u32))"
quick = settings(max_examples=20, deadline=None, derandomize=True)


def kernel(rows: int, cols: int, most: int = 50, proof: str = " most 31") -> Kernel:
    """Where T leads from each S; what V holds there, summed along each row."""
    found = parse(f"""
kernel k
  memory T: u32[32]{proof}
  memory S: u32[{rows},{cols}] most 31
  memory V: f32[32]
  memory Y: u32[{rows},{cols}]
  memory Z: f32[{rows}]
  whole m<{rows}, n<{cols}
  Y[m, n] := iterate(S[m, n], {STEP}, {MORE}, {most})
  Z[m] := sum(V[@cast(iterate(S[m, n], {STEP}, {MORE}, {most}), i64)] over n)
""")
    verify(found)
    return found


def arrays(rows: int, cols: int, seed: int = 0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    steps = np.array([rng.integers(0, place + 1) for place in range(32)], np.uint32)
    start = rng.integers(0, 32, (rows, cols)).astype(np.uint32)
    return {"T": steps, "S": start, "V": rng.normal(size=32).astype(np.float32)}


@quick
@given(st.integers(1, 19), st.integers(1, 40), st.integers(0, 4))
def test_each_element_goes_its_own_way(rows: int, cols: int, most: int) -> None:
    agree(kernel(rows, cols, most), arrays(rows, cols, rows + cols))


@pytest.mark.parametrize("shape", [(1, 1), (1, 37), (9, 5), (17, 16), (3, 1)])
def test_every_target(shape: tuple[int, int], isa: Target) -> None:
    agree(kernel(*shape), arrays(*shape), target=isa)


def test_what_lies_inside_is_not_checked() -> None:
    assert "failed" not in emit(kernel(4, 8), host_target(), checked=False).text
    assert "failed" in emit(kernel(4, 8, proof=""), host_target(), checked=False).text
    assert "failed" in emit(kernel(4, 8, proof=" most 32"), host_target(), checked=False).text


def test_triton_has_no_form_of_it() -> None:
    with pytest.raises(NotLowered, match="no form of loops that end by their data"):
        triton.emit(kernel(4, 8))
