"""Loads and stores as native code: padding, gathers, strides, layouts; never outside a buffer."""

from __future__ import annotations

import ctypes

import llvm_host
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from llvm_host import agree, execute, filled, made

from rooftile.native.target import Target

quick = settings(max_examples=40, deadline=None, derandomize=True)
PADS = ("0.0", "-inf", "inf", "1.5", "nan")


def test_guarded_memory_notices() -> None:
    memory = llvm_host.Guarded(100)
    assert memory.intact()
    assert (memory.address + 100) % llvm_host.PAGE == 0
    ctypes.memset(memory.address - 1, 0, 1)
    assert not memory.intact()
    first = llvm_host.Guarded(100, "start")
    assert first.address % llvm_host.PAGE == 0
    ctypes.memset(first.address + 100, 0, 1)
    assert not first.intact()


@quick
@given(
    st.integers(1, 24),
    st.integers(1, 5),
    st.integers(1, 3),
    st.integers(1, 3),
    st.integers(0, 6),
    st.integers(0, 6),
    st.sampled_from(PADS),
    st.sampled_from(("sum", "max")),
    st.booleans(),
)
def test_windows_along_the_vectors(
    size: int,
    window: int,
    stride: int,
    dilation: int,
    low: int,
    high: int,
    pad: str,
    op: str,
    halo: bool,
) -> None:
    """Asymmetric, dilated, strided; larger than the input or wholly in the padding."""
    outputs = (size + low + high - dilation * (window - 1) - 1) // stride + 1
    assume(outputs >= 1)
    index = f"{stride}*o+{dilation}*k-{low}"
    around = f"halo {low}:{high}" if halo else ""
    kernel = made(f"""
kernel windows
  memory X: f32[{size}] {around}
  memory Y: f32[{outputs}]
  whole o<{outputs}, k<{window}
  Y[o] := {op}(X[{index}] pad {pad} over k)
""")
    for edge in ("start", "end"):
        agree(kernel, filled(kernel, size), edge=edge)


@quick
@given(
    st.integers(1, 9),
    st.integers(1, 9),
    st.integers(1, 20),
    st.integers(1, 4),
    st.integers(1, 4),
    st.integers(0, 4),
    st.integers(0, 4),
    st.sampled_from(PADS[:4]),
    st.sampled_from(("sum", "max", "min", "prod", "dot")),
)
def test_windows_beside_the_vectors(
    height: int, width: int, channels: int, kh: int, kw: int, top: int, left: int, pad: str, op: str
) -> None:
    load = f"X[oh+kh-{top}, ow+kw-{left}, c] pad {pad}"
    value = f"{op}({op}({load} over kw) over kh)"
    if op == "dot":
        value = f"dot({load}, W[kh, kw, c], over kh kw)"
        assume(pad != "-inf" and pad != "inf")
    kernel = made(f"""
kernel windows
  memory X: f32[{height},{width},{channels}]
  memory W: f32[{kh},{kw},{channels}]
  memory Y: f32[{height},{width},{channels}]
  whole oh<{height}, ow<{width}, c<{channels}, kh<{kh}, kw<{kw}
  Y[oh, ow, c] := {value}
""")
    agree(kernel, filled(kernel, channels), bound=1e-4)


@pytest.mark.parametrize("part", ["exp(V)", "add(V, 2.0)", "neg(V)", "abs(V)", "mul(V, V)"])
@pytest.mark.parametrize("op", ["sum", "max", "min"])
@pytest.mark.parametrize("pad", ["0.0", "-inf", "3.0"])
def test_padding_inside_an_expression_counts(part: str, op: str, pad: str) -> None:
    load = f"X[o+k-2, c] pad {pad}"
    kernel = made(f"""
kernel inside
  memory X: f32[6,5]
  memory Y: f32[6,5]
  whole o<6, c<5, k<5
  Y[o, c] := {op}({part.replace("V", load)} over k)
""")
    agree(kernel, filled(kernel))


def test_padding_inside_a_dot_counts() -> None:
    kernel = made("""
kernel inside
  memory X: f32[6,5]
  memory W: f32[5]
  memory Y: f32[6,5]
  whole o<6, c<5, k<5
  Y[o, c] := dot(exp(X[o+k-2, c] pad 0.0), W[k], over k)
""")
    agree(kernel, filled(kernel))


@pytest.mark.parametrize("dtype", ["i64", "i32", "i8", "u8", "bool", "f64", "f16", "bf16"])
@pytest.mark.parametrize("pad", [0, 1])
def test_padding_of_every_type(dtype: str, pad: int, isa: Target) -> None:
    kernel = made(f"""
kernel typed
  memory X: {dtype}[5,19]
  memory Y: {dtype}[7,23]
  whole m<7, n<23
  Y[m, n] := X[m-1, n-2] pad {pad}
""")
    for edge in ("start", "end"):
        agree(kernel, filled(kernel), target=isa, edge=edge)


@pytest.mark.parametrize("rows", [1, 2, 5, 9, 17])
def test_padding_of_a_symbolic_dim(rows: int) -> None:
    kernel = made("""
kernel symbolic
  memory X: f32[S,7]
  memory Y: f32[S,7]
  memory Z: f32[S,7]
  whole n<7, k<3
  grid m<S tile 4
  Y[m, n] := sum(X[m+k-1, n] pad 0.0 over k)
  Z[m, n] := X[m-2, n+1] pad 1.0
""")
    for edge in ("start", "end"):
        agree(kernel, filled(kernel, 0, {"S": rows}), {"S": rows}, edge=edge)


def test_symbols_in_inner_dims() -> None:
    kernel = made("""
kernel inner
  memory X: f32[3,S,T]
  memory Y: f32[T,S,3]
  whole c<3
  grid s<S tile 4, t<T tile 5
  Y[t, s, c] := add(X[c, s, t], 1.0)
""")
    for s, t in ((1, 1), (4, 5), (6, 9), (3, 16)):
        agree(kernel, filled(kernel, 0, {"S": s, "T": t}), {"S": s, "T": t})


@pytest.mark.parametrize(
    "layout", ["1/4 0 1%4", "0/3 1 0%3", "1 0", "1%8 0 1/8", "0%2 1%16 0/2 1/16"]
)
@pytest.mark.parametrize("index", ["m, n", "m+1, n+3", "m, -1*n+36", "2*m, n", "m, 2*n"])
def test_layouts(layout: str, index: str, isa: Target) -> None:
    kernel = made(f"""
kernel layouts
  memory X: f32[12,70] layout {layout}
  memory Y: f32[12,70] layout {layout}
  memory T: f32[6]
  whole n<34
  grid m<6 tile 4
  Y[{index}] := add(X[m, n], X[{index}])
  T[m] := sum(X[m+2, n+5] over n)
""")
    agree(kernel, filled(kernel), target=isa)


def test_padded_blocks() -> None:
    kernel = made("""
kernel blocks
  memory X: f32[5,19] layout 1/8 0 1%8
  memory Y: f32[7,25]
  whole m<7, n<25
  Y[m, n] := X[m-1, n-4] pad 2.0
""")
    for edge in ("start", "end"):
        agree(kernel, filled(kernel), edge=edge)


def test_a_pad_other_than_zero_is_not_read_from_the_halo() -> None:
    for pad in ("-inf", "1.0", "0.0"):
        kernel = made(f"""
kernel around
  memory X: f32[5,9] halo 1:1 2:2
  memory Y: f32[5,9]
  whole m<5, n<9, k<3
  Y[m, n] := max(X[m+k-1, n] pad {pad} over k)
""")
        agree(kernel, filled(kernel))


STRIDES = ["X[2*m, 3*n]", "X[n, m]", "X[-1*m+8, -1*n+26]", "X[m, 0]", "X[m+n, n]", "X[0, m]"]


@pytest.mark.parametrize("load", STRIDES)
@pytest.mark.parametrize("store", ["m, n", "n, m", "2*m, n", "m, 2*n", "-1*m+20, n"])
def test_strides(load: str, store: str) -> None:
    kernel = made(f"""
kernel strides
  memory X: f32[40,40]
  memory Y: f32[21,21]
  whole m<9, n<9
  Y[{store}] := {load}
""")
    agree(kernel, filled(kernel))


# -- gathers


GATHERS = {
    "rows": "Y[m, n] := T[@I[m], n]",
    "elements": "Y[m, n] := T[@I[m], @J[n]]",
    "transposed": "Y[m, n] := U[n, @I[m]]",
    "padded elsewhere": "Y[m, n] := T[@I[m], n-2] pad 4.0",
    "along the vectors": "Y[m, n] := V[@J[n]]",
    "an index of many axes": "Y[m, n] := V[@K[m, n]]",
    "an index computed": "Y[m, n] := V[@cast(mul(cast(J[n], f32), 0.5), i32)]",
    "inside a dot": "Y[m, n] := dot(T[@I[m], k], W[k, n], over k)",
    "reduced along": "Y[m, n] := sum(T[@I[k], n] over k)",
    "blocked": "Y[m, n] := P[@I[m], n]",
}


def gather(name: str, dtype: str = "i64", grid: str = "m<5 tile 2") -> str:
    return f"""
kernel gather
  memory T: f32[6,19]
  memory P: f32[6,19] layout 0/4 1 0%4
  memory U: f32[19,6]
  memory V: f32[11]
  memory W: f32[5,19]
  memory I: {dtype}[5]
  memory J: {dtype}[19]
  memory K: {dtype}[5,19]
  memory Y: f32[5,19]
  whole n<19, k<5
  grid {grid}
  {GATHERS[name]}
"""


def gathered(dtype: str) -> dict[str, np.ndarray]:
    arrays = filled(made(gather("rows", dtype)))
    rng = np.random.default_rng(3)
    for name, least in (("I", 6), ("J", 6), ("K", 11)):
        shape = arrays[name].shape
        arrays[name] = rng.integers(0, least, shape).astype(arrays[name].dtype)
    return arrays


@pytest.mark.parametrize("name", GATHERS)
@pytest.mark.parametrize("dtype", ["i64", "i32", "u8"])
def test_gathers(name: str, dtype: str) -> None:
    arrays = gathered(dtype)
    for edge in ("start", "end"):
        agree(made(gather(name, dtype)), arrays, edge=edge)


@pytest.mark.parametrize("name", [n for n in GATHERS if n != "an index computed"])
@pytest.mark.parametrize("dtype", ["i64", "i32"])
@pytest.mark.parametrize("wrong", [-1, 19, 2**31 - 1, -(2**31), 2**62])
def test_an_index_outside_fails_without_an_access(name: str, dtype: str, wrong: int) -> None:
    if dtype == "i32" and abs(wrong) > 2**31:
        return
    arrays = gathered(dtype)
    for index, place in (("I", 3), ("J", 18), ("K", 57)):
        arrays[index].reshape(-1)[place] = wrong
    for edge in ("start", "end"):
        assert execute(made(gather(name, dtype)), arrays, edge=edge).code == 1


def test_negative_indices_are_the_bodys_matter() -> None:
    kernel = made("""
kernel wrapped
  memory T: f32[6]
  memory I: i64[9]
  memory Y: f32[9]
  whole n<9
  i = I[n]
  Y[n] := T[@where(lt(i, 0:i64), add(i, 6:i64), i)]
""")
    table = np.arange(6, dtype=np.float32)
    index = np.array([0, -1, 5, -6, 2, -3, 1, 1, -2])
    assert agree(kernel, {"T": table, "I": index})["Y"].tolist() == table[index].tolist()


def test_gather_from_a_symbolic_dim() -> None:
    kernel = made("""
kernel symbolic
  memory T: f32[S,3]
  memory I: i32[S]
  memory Y: f32[S,3]
  whole n<3
  grid m<S tile 4
  Y[m, n] := T[@I[m], n]
""")
    for rows in (1, 5, 9):
        arrays = filled(kernel, 0, {"S": rows})
        arrays["I"] = np.arange(rows, dtype=np.int32)[::-1].copy()
        agree(kernel, arrays, {"S": rows})
        arrays["I"][0] = rows
        assert execute(kernel, arrays, {"S": rows}).code == 1


@pytest.mark.parametrize("source", ["i32", "i64", "i16", "f32"])
@pytest.mark.parametrize("target", ["i8", "u8", "i16", "f16", "i32"])
def test_one_lane_left_over_writes_one_element(source: str, target: str, isa: Target) -> None:
    """LLVM turns a masked store of one truncated lane into a store of the wide element."""
    kernel = made(f"""
kernel one_left
  memory X: {source}[3,17]
  memory Y: {target}[3,19]
  whole m<3, n<17
  Y[m, n] := cast(X[m, n], {target})
""")
    for edge in ("start", "end"):
        agree(kernel, filled(kernel), target=isa, edge=edge)


@pytest.mark.parametrize(("rows", "columns"), [(16, 16), (32, 48), (33, 17), (5, 40), (19, 64)])
@pytest.mark.parametrize("dtype", ["f32", "i64", "f64", "u32", "bf16"])
def test_copies_that_turn_the_order_of_dims(
    rows: int, columns: int, dtype: str, isa: Target
) -> None:
    kernel = made(f"""
kernel turned
  memory X: {dtype}[3,{rows},{columns}]
  memory Y: {dtype}[{columns},3,{rows}]
  memory Z: {dtype}[3,{columns},{rows + 1}]
  whole b<3, m<{rows}, n<{columns}
  x = X[b, m, n]
  Y[n, b, m] := x
  Z[b, n, m+1] := X[b, m, n]
""")
    for edge in ("start", "end"):
        agree(kernel, filled(kernel), target=isa, edge=edge)


@pytest.mark.parametrize("m", ["M", 37])
def test_turned_tiles_through_scratch(m: str | int, isa: Target) -> None:
    kernel = made(f"""
kernel staged
  memory X: f32[{m},40]
  memory W: f32[40,33]
  memory Y: f32[{m},33]
  memory T: f32[33,{m}]
  whole n<33, k<40
  grid m<{m} tile 24
  s = dot(exp(X[m, k]), W[k, n], over k)
  Y[m, n] := mul(s, max(s over n))
  T[n, m] := s
""")
    symbols = {"M": 37} if m == "M" else {}
    agree(kernel, filled(kernel, 0, symbols), symbols, target=isa)
