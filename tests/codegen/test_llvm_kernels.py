"""Whole kernels as native code: the five proofs at odd sizes, loops, scratch, in-place stores."""

from __future__ import annotations

import kernels
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from llvm_host import agree, filled, made

from rooftile.ir.tile import Hints, Kernel
from rooftile.native.target import Target

EDGES = st.sampled_from(("start", "end"))
sizes = st.integers(1, 40)
tiles = st.integers(1, 48)
quick = settings(max_examples=25, deadline=None, derandomize=True)


few = settings(quick, max_examples=8)


def right(kernel: Kernel, edge: str = "end", **symbols: int) -> None:
    agree(kernel, filled(kernel, 1, symbols), symbols, edge=edge)


@quick
@given(sizes, sizes, sizes, tiles, tiles, tiles, st.sampled_from((0, 4, 8, 16, 32)), EDGES)
def test_matmul(
    rows: int, inner: int, cols: int, m: int, n: int, k: int, block: int, edge: str
) -> None:
    layout = f"layout 1/{block} 0 1%{block}" if block else ""
    right(kernels.matmul_gelu(rows, inner, cols, m, n, k, layout=layout), edge)


@quick
@given(st.integers(1, 70), tiles, tiles)
def test_symbolic_rows(rows: int, m: int, n: int) -> None:
    right(kernels.matmul_gelu("M", 9, 21, m, n, 4), M=rows)


@quick
@given(sizes, st.integers(1, 70), tiles, EDGES)
def test_softmax(rows: int, cols: int, r: int, edge: str) -> None:
    right(kernels.softmax(rows, cols, r), edge)


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
def test_halves(dtype: str, isa: Target) -> None:
    for kernel in (
        kernels.matmul_gelu(7, 9, 21, 4, 16, 9, dtype),
        kernels.softmax(5, 33, 2, dtype),
        kernels.depthwise(5, 6, 19, 2, 4, 16, dtype),
        kernels.attention(2, 9, 8, 4, dtype),
    ):
        agree(kernel, filled(kernel), target=isa, bound={"f16": 4e-3, "bf16": 4e-2}[dtype])


@quick
@given(
    *[st.integers(1, 12)] * 2,
    st.integers(1, 40),
    *[st.integers(1, 9)] * 2,
    tiles,
    st.booleans(),
    EDGES,
)
def test_depthwise(
    height: int, width: int, channels: int, oh: int, ow: int, c: int, halo: bool, edge: str
) -> None:
    around = "halo 1:1 1:1 0:0" if halo else ""
    right(kernels.depthwise(height, width, channels, oh, ow, c, halo=around), edge)


@quick
@given(st.integers(1, 3), st.integers(1, 40), st.integers(1, 20), st.integers(1, 12), EDGES)
def test_attention(heads: int, length: int, head: int, m: int, edge: str) -> None:
    right(kernels.attention(heads, length, head, m), edge)


@few
@given(st.integers(1, 70), st.integers(1, 17), st.integers(1, 12), st.integers(1, 40))
def test_attention_of_any_length(length: int, head: int, m: int, n: int) -> None:
    right(kernels.attention_online(2, head, m, n), S=length)


def test_proofs_on_every_target(isa: Target) -> None:
    for kernel in (
        kernels.matmul_gelu(13, 17, 35, 13, 35, 17),
        kernels.matmul_gelu(13, 17, 40, 8, 32, 5, layout="layout 1/16 0 1%16"),
        kernels.softmax(3, 37, 2),
        kernels.depthwise(6, 7, 21, 3, 4, 16),
        kernels.attention(2, 21, 9, 5),
        kernels.attention_online(2, 9, 5, 8, length=21),
    ):
        agree(kernel, filled(kernel), target=isa)


@pytest.mark.parametrize("hints", [{"n": 48, "m": 3}, {"n": 16, "m": 14}, {"m": 1}, {"n": 5}])
def test_hints_change_no_value(hints: dict[str, int]) -> None:
    kernel = kernels.matmul_gelu(29, 18, 70, 29, 70, 18)
    for unroll in (1, 3, 8):
        chosen = Hints(register_tile=tuple(hints.items()), unroll=unroll)
        agree(kernel, filled(kernel), hints=chosen)


@pytest.mark.parametrize("length", range(1, 34))
def test_tails_of_every_length(length: int) -> None:
    kernel = made(f"""
kernel tails
  memory X: f32[3,{length}]
  memory N: i8[3,{length}]
  memory B: bool[3,{length}]
  memory Y: f32[3,{length}]
  memory M: i8[3,{length}]
  memory T: f32[3]
  whole r<3, c<{length}
  Y[r, c] := where(B[r, c], exp(X[r, c]), 1.0)
  M[r, c] := cast(add(cast(N[r, c], i32), 100:i32), i8)
  T[r] := sum(mul(X[r, c], cast(N[r, c], f32)) over c)
""")
    for edge in ("start", "end"):
        right(kernel, edge)


LOOPS = {
    "products of the sum itself": """
  for k<5 point carry total = X[n]
    grown = mul(total, U[k])
    next total = add(total, mul(W[n], grown))
  Y[n] := total
""",
    "swap": """
  for t<7 point carry a = X[n] carry b = W[n]
    next a = b
    next b = a
  Y[n] := sub(a, b)
""",
    "fibonacci through a let": """
  for t<7 point carry a = X[n] carry b = W[n]
    s = add(a, b)
    next a = b
    next b = s
  Y[n] := add(mul(a, 2.0), b)
""",
    "ring of three": """
  for t<4 point carry a = X[n] carry b = W[n] carry c = 1.0:[n]
    next a = mul(b, 0.5)
    next b = sub(c, a)
    next c = add(a, b)
  Y[n] := add(a, add(b, c))
""",
    "reads the old sum": """
  for k<19 tile 4 carry most = -inf:[n] carry total = 0.0:[n]
    higher = max(most, max(V[n, k] over k))
    next most = higher
    next total = add(mul(total, exp(sub(most, higher))), sum(exp(sub(V[n, k], higher)) over k))
  Y[n] := add(most, log(total))
""",
    "products once for each tile": """
  for k<19 tile 4 carry total = 0.0:[n]
    next total = add(total, mul(X[n], W[n]))
  Y[n] := total
""",
    "dots once for each tile": """
  for k<19 tile 4 carry total = 0.0:[n]
    next total = dot(V[n, j], U[j], over j, acc total)
  Y[n] := total
""",
    "whole loop": """
  for k<19 carry total = 0.0:[n]
    next total = add(total, sum(V[n, k] over k))
  Y[n] := total
""",
    "nested loops over points": """
  for k<3 point carry outer = X[n]
    for l<5 point carry inner = outer
      next inner = add(inner, mul(V[n, 5*k+l], W[n]))
    next outer = inner
  Y[n] := outer
""",
    "products of fewer axes than the sum": """
  for k<19 point carry total = 0.0:[n]
    next total = add(total, mul(U[k], U[k]))
  Y[n] := total
""",
}


@pytest.mark.parametrize("name", LOOPS)
def test_loops(name: str) -> None:
    kernel = made(f"""
kernel loops
  memory X: f32[21]
  memory W: f32[21]
  memory V: f32[21,19]
  memory U: f32[19]
  memory Y: f32[21]
  whole j<19
  grid n<21 tile 8
{LOOPS[name]}""")
    right(kernel)


@pytest.mark.parametrize("dtype", ["f64", "i32", "i64", "u8", "f16"])
def test_sums_of_products_in_a_loop_keep_their_type(dtype: str) -> None:
    kernel = made(f"""
kernel typed
  memory X: {dtype}[9,11]
  memory W: {dtype}[9]
  memory Y: {dtype}[11]
  whole n<11
  for k<9 point carry total = 0:{dtype}[n]
    next total = add(total, mul(X[k, n], W[k]))
  Y[n] := total
""")
    right(kernel)


def test_recurrence_through_a_rename() -> None:
    for size in (3, 8, 19):
        right(
            made(f"""
kernel recurrence
  memory X: f32[5,4,{size}]
  memory W: f32[{size},{size}]
  memory Y: f32[5,4,{size}]
  whole i<{size}, j<{size}
  grid b<4 tile 3
  for t<5 point carry h = 0.5:[b j]
    new = tanh(add(dot(rename(h, j -> i), W[i, j], over i), X[t, b, j]))
    Y[t, b, j] := new
    next h = new
""")
        )


def test_a_carry_that_reads_itself_renamed_is_copied() -> None:
    right(
        made("""
kernel turned
  memory X: f32[6,6]
  memory Y: f32[6,6]
  whole i<6, j<6, k<6
  for t<3 point carry h = X[i, j]
    next h = add(rename(rename(rename(h, i -> k), j -> i), k -> j), 1.0)
  Y[i, j] := h
""")
    )


@pytest.mark.parametrize("rows", [1, 2, 4, 5, 7, 8, 11])
@pytest.mark.parametrize("extent", ["S", 11])
def test_axes_within_a_tile(rows: int, extent: str | int) -> None:
    if extent == 11 and rows != 11:
        return
    kernel = made(f"""
kernel staged
  memory X: f32[{extent},6]
  memory Y: f32[{extent}]
  memory U: f32[{extent},6]
  whole c<6, w<{extent} within mo
  grid mo<{extent} tile 4
  e = exp(X[w, c])
  for m<{extent} tile 2 within mo
    Y[m] := sum(mul(X[m, c], 0.5) over c)
  U[w, c] := div(e, sum(e over c))
""")
    right(kernel, **({"S": rows} if extent == "S" else {}))


def test_scratch_that_is_written_again() -> None:
    right(
        made("""
kernel reused
  memory X: f32[4,9]
  memory Y: f32[4,9]
  scratch Z: f32[9]
  whole n<9
  for r<4 point
    Z[n] := X[r, n]
    before = mul(Z[n], 3.0)
    Z[n] := add(Z[n], 1.0)
    Y[r, n] := sub(before, Z[n])
""")
    )


IN_PLACE = {
    "reversed": "Y[n] := Y[-1*n+22]",
    "shifted": "Y[n] := add(Y[n], Y[-1*n+22])",
    "normalised": "Y[n] := div(Y[n], sum(mul(Y[k], Y[k]) over k))",
    "gathered": "Y[n] := Y[@min(abs(cast(mul(Y[n], 9.0), i32)), 22:i32)]",
    "through a let": "old = Y[-1*n+22]\n  Y[n] := mul(Y[n], 2.0)\n  Z[n] := add(old, Y[n])",
    "same place": "Y[n] := add(mul(Y[n], Y[n]), 1.0)",
}


@pytest.mark.parametrize("name", IN_PLACE)
def test_stores_over_what_they_read(name: str) -> None:
    kernel = made(f"""
kernel in_place
  memory Y: f32[23]
  memory Z: f32[23]
  whole n<23, k<23
  {IN_PLACE[name]}
""")
    right(kernel)


def test_scalars_and_points() -> None:
    right(
        made("""
kernel scalars
  memory X: f32[]
  memory V: f32[5,7]
  memory Y: f32[]
  memory Z: f32[7,5]
  whole m<5, n<7
  Y[] := add(X[], sum(sum(V[m, n] over n) over m))
  for i<5 point
    for j<7 point
      Z[j, i] := add(V[i, j], cast(iota(i), f32))
""")
    )


def test_values_at_every_iota(isa: Target) -> None:
    kernel = made("""
kernel places
  memory Y: i64[6,21]
  memory F: f32[21,6]
  whole n<21
  grid m<6 tile 4
  Y[m, n] := add(mul(iota(m), 100:i64), iota(n))
  F[n, m] := cast(sub(iota(m), iota(n)), f32)
""")
    found = agree(kernel, {}, target=isa)
    assert np.asarray(found["Y"])[5, 20] == 520
