"""The CPU's schedule on several machines: verifiable, equal in value, and as text."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from llvm_host import agree, filled, made

from rooftile.ir.tile import Kernel
from rooftile.ir.tile.interpret import run
from rooftile.ir.tile.text import to_text
from rooftile.ir.tile.verify import verify
from rooftile.machine import presets
from rooftile.schedule import schedule

quick = settings(max_examples=12, deadline=None, derandomize=True)
MACHINES = [name for name, machine in presets().items() if not name.startswith("nvidia")]


def matmul(rows: int, inner: int, cols: int, transposed: bool = False) -> Kernel:
    shape, index = (f"{cols},{inner}", "n, k") if transposed else (f"{inner},{cols}", "k, n")
    return made(f"""
kernel matmul
  memory A: f32[{rows},{inner}]
  memory B: f32[{shape}]
  memory bias: f32[{cols}]
  memory C: f32[{rows},{cols}]
  whole m<{rows}, n<{cols}, k<{inner}
  s = dot(A[m, k], B[{index}], over k)
  C[m, n] := max(add(s, bias[n]), 0.0)
""")


def conv(size: int, channels: int, filters: int, stride: int = 1) -> Kernel:
    out = (size - 1) // stride + 1
    return made(f"""
kernel conv
  memory X: f32[{size},{size},{channels}]
  memory W: f32[3,3,{channels},{filters}]
  memory Y: f32[{out},{out},{filters}]
  whole h<{out}, w<{out}, n<{filters}, kh<3, kw<3, c<{channels}
  s = dot(X[{stride}*h+kh-1, {stride}*w+kw-1, c] pad 0.0, W[kh, kw, c, n], over kh kw c)
  Y[h, w, n] := max(s, 0.0)
""")


def attention(heads: int, length: int, head: int) -> Kernel:
    return made(f"""
kernel attention
  memory Q: f32[{heads},{length},{head}]
  memory K: f32[{heads},{length},{head}]
  memory V: f32[{heads},{length},{head}]
  memory O: f32[{heads},{length},{head}]
  whole h<{heads}, m<{length}, n<{length}, d<{head}, e<{head}
  s = mul(dot(Q[h, m, d], K[h, n, d], over d), {head**-0.5})
  p = exp(sub(s, max(s over n)))
  O[h, m, e] := div(dot(p, V[h, n, e], over n), sum(p over n))
""")


def rows(count: int, length: int) -> Kernel:
    return made(f"""
kernel rows
  memory X: f32[{count},{length}]
  memory Y: f32[{count},{length}]
  whole m<{count}, n<{length}
  p = exp(sub(X[m, n], max(X[m, n] over n)))
  Y[m, n] := div(p, sum(p over n))
""")


def keeps(kernel: Kernel, constants: frozenset[str] = frozenset()) -> None:
    """On every machine: verifiable and equal; and right as native code of this host."""
    arrays = filled(kernel)
    want = run(kernel, arrays)
    for name in MACHINES:
        plan = schedule(kernel, presets()[name], constants)
        found = run(verify(plan.kernel), arrays)
        for output, array in want.items():
            np.testing.assert_allclose(found[output], array, rtol=1e-9, atol=1e-12, err_msg=name)
        agree(plan.kernel, arrays, hints=plan.hints)


@quick
@given(st.integers(1, 40), st.integers(1, 40), st.integers(1, 70), st.booleans(), st.booleans())
def test_matmul(rows: int, inner: int, cols: int, transposed: bool, constant: bool) -> None:
    keeps(matmul(rows, inner, cols, transposed), frozenset("B" if constant else ""))


@quick
@given(st.integers(1, 9), st.integers(1, 9), st.integers(1, 20), st.integers(1, 2))
def test_conv(size: int, channels: int, filters: int, stride: int) -> None:
    keeps(conv(size, channels, filters, stride), frozenset("W"))


@quick
@given(st.integers(1, 3), st.integers(1, 24), st.integers(1, 12))
def test_attention(heads: int, length: int, head: int) -> None:
    keeps(attention(heads, length, head))


@quick
@given(st.integers(1, 30), st.integers(1, 60))
def test_rows(count: int, length: int) -> None:
    keeps(rows(count, length))


def test_large_rows_are_cut() -> None:
    kernel = rows(400, 4096)
    plan = schedule(kernel, presets()["raspberry-pi-5"], frozenset())
    (axis,) = plan.kernel.grid
    assert axis.name == "m" and isinstance(axis.tile, int) and axis.tile < 400
    verify(plan.kernel)


ODD = {
    "in place": "Y[m, n] := add(Y[-1*m+63, n], exp(X[m, n]))",
    "renamed": "Y[m, n] := add(rename(exp(X[k, n]), k -> m), max(X[m, n] over n))",
    "one output a row": "p = exp(X[m, n])\n  Y[m, n] := p\n  Z[n] := sum(p over m)",
    "two dots": "a = dot(X[m, n], W[n, j], over n)\n  Y[m, j] := dot(exp(a), U[i, j], over j)",
}


@pytest.mark.parametrize("name", ["in place", "renamed", "one output a row"])
@pytest.mark.parametrize("machine", ["raspberry-pi-5", "zen4-server"])
def test_what_cannot_be_cut_stays_whole(name: str, machine: str) -> None:
    kernel = made(f"""
kernel odd
  memory X: f32[64,2048]
  memory Y: f32[64,2048]
  memory Z: f32[2048]
  whole m<64, n<2048, k<64
  {ODD[name]}
""")
    plan = schedule(kernel, presets()[machine], frozenset())
    arrays = filled(kernel)
    want, found = run(kernel, arrays), run(verify(plan.kernel), arrays)
    for output, array in want.items():
        np.testing.assert_allclose(found[output], array, rtol=1e-9)


def test_a_scheduled_kernel_is_left_alone() -> None:
    machine = presets()["zen4-server"]
    first = schedule(matmul(200, 300, 400), machine, frozenset("B"))
    kernel = made("""
kernel loops
  memory Y: f32[8]
  for i<8 tile 4
    Y[i] := 1.0:[i]
""")
    assert schedule(kernel, machine, frozenset()).kernel == kernel
    if first.kernel.grid:
        assert schedule(first.kernel, machine, frozenset("B")).kernel == first.kernel


def test_schedules_as_text(golden: Callable[[str, str], None]) -> None:
    text = []
    for kernel, constants in (
        (matmul(384, 768, 3072), "B"),
        (matmul(1, 768, 1000), "B"),
        (matmul(64, 64, 64, transposed=True), ""),
        (conv(56, 64, 64), "W"),
        (attention(12, 128, 64), ""),
        (rows(4096, 1024), ""),
    ):
        for name in ("zen4-server", "apple-m1", "raspberry-pi-5"):
            plan = schedule(kernel, presets()[name], frozenset(constants))
            hints = " ".join(f"{axis}={size}" for axis, size in plan.hints.register_tile)
            text.append(f"# {name}, register tile: {hints or 'none'}\n{to_text(plan.kernel)}")
    golden("cpu_schedules.txt", "\n".join(text))


def scored(rows: int, columns: int, inner: int) -> Kernel:
    """A dot whose right operand is computed and lies across its vectors; columns in two axes."""
    return made(f"""
kernel scored
  memory Q: f32[{rows},{inner}]
  memory K: f32[{columns},4,{inner}]
  memory bias: f32[{inner}]
  memory Y: f32[{rows},{columns},4]
  whole m<{rows}, n<{columns}, p<4, d<{inner}
  k = mul(add(K[n, p, d], bias[d]), 0.5)
  Y[m, n, p] := dot(Q[m, d], k, over d)
""")


@quick
@given(st.integers(1, 9), st.integers(1, 9), st.integers(1, 40))
def test_computed_operands_across_vectors(rows: int, columns: int, inner: int) -> None:
    keeps(scored(rows, columns, inner))


def test_a_computed_operand_is_staged_in_panels() -> None:
    plan = schedule(scored(8, 8, 16), presets()["zen4-server"], frozenset())
    text = to_text(plan.kernel)
    assert "scratch s0: f32[8,16,4]" in text
    assert "s0[n, d, p] := mul(add(K[n, p, d], bias[d]), 0.5)" in text
    assert "dot(Q[m, d], s0[n, d, p], over d)" in text


def test_staged_rows_a_page_apart_get_a_line_more() -> None:
    text = to_text(schedule(attention(1, 1024, 64), presets()["zen4-server"], frozenset()).kernel)
    assert "scratch s0: f32[64,1040]" in text


@pytest.mark.parametrize(
    ("inner", "width", "rows"), [(1000, 32, None), (1024, 64, 6), (4096, 32, 8), (3072, 32, 8)]
)
def test_rows_a_page_apart_make_low_tiles(inner: int, width: int, rows: int | None) -> None:
    plan = schedule(matmul(40, inner, 128), presets()["zen4-server"], frozenset("B"))
    tile = dict(plan.hints.register_tile)
    assert (tile["n"], tile.get("m")) == (width, rows)


def test_tiles_of_few_registers_fit_a_set() -> None:
    plan = schedule(matmul(40, 1024, 128), presets()["intel-n100"], frozenset("B"))
    assert list(dict(plan.hints.register_tile)) == ["n"]


def test_values_of_low_tiles() -> None:
    keeps(matmul(7, 1024, 70), frozenset("B"))


def test_inner_rows_count_for_the_register_tile() -> None:
    kernel = made("""
kernel rows
  memory A: f32[64,32,64]
  memory W: f32[64,4096]
  memory Y: f32[64,32]
  whole m<64, r<32, n<4096, k<64
  s = dot(A[m, r, k], W[k, n], over k)
  Y[m, r] := sum(exp(sub(s, max(s over n))) over n)
""")
    plan = schedule(kernel, presets()["zen4-server"], frozenset("W"))
    assert [axis.tile for axis in plan.kernel.grid if axis.name == "m"] == [1]
