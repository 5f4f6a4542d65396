"""Every rule of the tile verifier: a kernel that breaks it, and the message."""

from __future__ import annotations

from dataclasses import replace

import kernels
import pytest

from rooftile.core.affine import affine
from rooftile.core.errors import InvalidIR
from rooftile.ir.tile import Axis, Buf, Const, Kernel, Let, Map, Reduce, Store
from rooftile.ir.tile.text import parse
from rooftile.ir.tile.verify import verify

HEAD = """
kernel k
  memory A: f32[8,8]
  memory B: i8[8,8]
  memory I: i64[8]
  memory P: f32[S,8]
  memory Y: f32[8,8]
  memory Z: f32[8]
  scratch T: f32[8,8]
  whole c<8, d<8
  grid m<8 tile 4
"""


def _message(text: str) -> str:
    with pytest.raises(InvalidIR) as caught:
        verify(parse(text))
    return str(caught.value)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        # names and scope
        ("x = 1.0\n  x = 2.0", "x is named twice; every name is used once"),
        ("m = 1.0", "m is named twice"),
        ("for A<8 tile 2", "A is named twice"),
        ("S = 1.0", "S is named twice"),
        ("x = y", "let x: y is not defined here"),
        ("x = A[m, k]", "let x: axis k is not in scope"),
        ("x = iota(k)", "let x: iota: axis k is not in scope"),
        ("x = 0.0:[k]", "const: axis k is not in scope or a point"),
        ("for k<8 tile 2\n    x = A[m, k]\n  Y[m, c] := A[m, k]", "axis k is not in scope"),
        ("for k<8 tile 2\n    x = A[m, c]\n  Y[m, c] := x", "x is not defined here"),
        ("x = Q[m]", "load Q: no buffer of that name"),
        ("Q[m] := 1.0", "store Q: no buffer of that name"),
        # arity
        ("x = A[m]", "load A: 1 indices for rank 2"),
        ("Y[m] := 1.0", "store Y: 1 indices for rank 2"),
        ("x = add(1.0)", "add takes 2 tiles, not 1"),
        # index ranges
        (
            "x = A[m+1, c]",
            "load A: m+1 leaves dim 0 of extent 8 and its halo; give a pad or a halo",
        ),
        ("x = A[m, c-1]", "load A: c-1 leaves dim 1"),
        ("x = P[m, c]", "load P: m leaves dim 0 of extent S"),
        ("Y[m, c+1] := 1.0", "store Y: c+1 leaves dim 1 of extent 8"),
        ("x = A[@A[m, c], d]", "load A: an index tile of f32; cast it to i64"),
        # stores
        ("Y[m, c] := A[m, d]", "store Y: the tile spans d, which no index names"),
        ("Z[c] := 1.0", "store Z: no index names grid axis m: programs would overwrite it"),
        ("x = B[m, c]\n  Y[m, c] := x", "store Y: a tile of i8 for a buffer of f32; cast it"),
        ("Y[m, c] := sum(Y[d, c] over d)", "load Y: it reads at d what other programs store at m"),
        ("Y[m, c] := Y[@I[m], c]", "load Y: it reads at a tile of indices what other programs"),
        # reductions
        ("x = sum(A[m, c] over m)", "sum over grid axis m: other programs hold parts"),
        ("x = dot(A[m, c], A[m, d], over m)", "dot over grid axis m: other programs hold parts"),
        ("x = sum(A[m, c] over d)", "sum over d: a tile that does not span it"),
        ("x = dot(A[m, c], A[m, d], over c)", "dot over c: a tile that does not span it"),
        (
            "for k<8 tile 2\n    Y[m, c] := sum(A[m, k] over k)",
            "store Y: it holds a partial reduction over k; carry it, store behind the loop",
        ),
        (
            "for k<8 tile 2 carry a = 0.0:[m]\n    Y[m, c] := a\n"
            "    next a = add(a, sum(A[m, k] over k))",
            "store Y: it holds a partial reduction over k",
        ),
        (
            "for k<8 tile 2 carry a = 0.0:[m] carry b = 0.0:[m]\n    Y[m, c] := b\n"
            "    next a = add(a, sum(A[m, k] over k))\n    next b = a",
            "store Y: it holds a partial reduction over k",
        ),
        # carries
        (
            "for k<8 tile 2 carry a = 0.0\n    next a = A[m, c]",
            "carry a: init spans  but next spans",
        ),
        ("for k<8 tile 2 carry a = 0.0:[k]\n    next a = a", "axis k is not in scope"),
        (
            "for k<8 tile 2 carry a = 0.0:[m]\n    next a = cast(a, bf16)",
            "carry a: init is f32 but next is bf16; cast one",
        ),
        # axes
        ("for k<8 tile 3 within m", "axis k: tile 3 does not divide tile 4 of m"),
        ("for k<6 tile 2 within m", "axis k: its extent 6 differs from 8 of m"),
        ("for k<8 tile 2 within j", "axis k: it refines j, which is not in scope"),
        ("for k<8 point\n    for j<8 tile 2 within k", "axis j: it refines k, which is a point"),
        ("for k<0 tile 2", "axis k: extent 0 is below 1"),
        ("for k<8 tile 0", 'tile 0 is neither "whole", "point" nor at least 1'),
        # types
        ("x = add(A[m, c], B[m, c])", "add mixes f32 and i8; cast one"),
        ("x = exp(B[m, c])", "exp takes floats, not i8"),
        ("x = not(A[m, c])", "not takes bool, not f32"),
        ("x = add(lt(0.0, 1.0), lt(0.0, 1.0))", "add takes numbers, not bool; cast it"),
        ("x = where(1.0, 1.0, 1.0)", "where: its condition is f32, not bool"),
        ("x = where(lt(0.0, 1.0), 1.0, 1:i32)", "where mixes f32 and i32; cast one"),
        ("x = sum(lt(A[m, c], 0.0) over c)", "sum: reduces numbers, not bool"),
        ("x = 1.5:i32", "const: 1.5 is no i32"),
        ("x = inf:i32", "const: inf is no i32"),
        ("x = dot(A[m, c], B[c, d], over c)", "dot mixes f32 and i8; cast one"),
        ("x = dot(B[m, c], A[c, d], over c)", "dot mixes i8 and f32; cast one"),
        ("x = dot(A[m, c], A[c, d], over c, dtype f16)", "dot of f32 cannot accumulate in f16"),
        ("x = dot(B[m, c], B[c, d], over c)", "dot of i8 cannot accumulate in f32"),
        (
            "x = dot(B[m, c], B[c, d], over c, dtype i32, precision tf32)",
            "dot of i8: no precision tf32",
        ),
        (
            "x = dot(A[m, c], A[c, d], over c, acc 0.0:[m])",
            "dot: acc spans m but the product spans m d",
        ),
        (
            "x = dot(A[m, c], A[c, d], over c, acc 0.0:bf16[m d])",
            "dot: acc is bf16, not f32; cast it",
        ),
        # rename
        ("x = rename(A[m, c], d -> c)", "rename: the tile does not span d"),
        ("x = rename(A[m, c], c -> k)", "rename: axis k is not in scope"),
        ("x = rename(A[c, d], c -> d)", "rename: the tile spans d already"),
        ("x = rename(A[m, c], m -> d)", "rename: m and d differ in extent or tile"),
    ],
)
def test_bodies(body: str, message: str) -> None:
    found = _message(f"{HEAD}  {body}\n")
    assert found.startswith("kernel k:")
    assert message in found


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("memory A: f32[4,4] layout 0", "buffer A: layout is no bijection: dim 1 needs itself"),
        ("memory A: f32[4] layout 0/2", "layout is no bijection: dim 0"),
        ("memory A: f32[4] layout 0/2 0%4", "layout is no bijection: dim 0"),
        ("memory A: f32[4] layout 0 1", "layout names a dim outside rank 1"),
        ("memory A: f32[S] layout 0/2 0%2", "dim 0 is split: it takes no symbol and no halo"),
        ("memory A: f32[4] layout 0/2 0%2 halo 1:1", "dim 0 is split"),
        ("memory A: f32[4,4] halo 1:1", "halo needs a pair of counts for every dim"),
        ("memory A: f32[0]", "buffer A: an empty dim"),
        ("memory inf: f32[4]", "'inf' is no name"),
        ("whole m<4 tile 4", "axis m: an axis of `whole` has no tile size; use a For"),
        (
            "memory A: f32[4,4]\n  grid i<2 point, j<2 tile 2\n  A[i+j, j] := 1.0",
            "store A: i+j in dim 0 is not injective",
        ),
    ],
)
def test_headers(line: str, message: str) -> None:
    assert message in _message(f"kernel k\n  {line}\n")


def test_records_that_no_text_holds() -> None:
    buf, axis = Buf("A", (4,)), Axis("i", 4)
    for tile, message in [
        (Map("gelu", (Const(1.0),)), "map: no operation gelu"),
        (Reduce("mean", Const(1.0, dims=("i",)), "i"), "reduce: no operation mean"),
        (Const(1.0, "f31"), "const: no element type f31"),
    ]:
        kernel = Kernel("k", (buf,), (), (axis,), (Let("x", tile),))
        with pytest.raises(InvalidIR, match=message):
            verify(kernel)
    for wrong, message in [
        (replace(buf, dtype="f31"), "buffer A: no element type f31"),
        (replace(buf, name="a b"), "'a b' is no name; use letters"),
    ]:
        with pytest.raises(InvalidIR, match=message):
            verify(Kernel("k", (wrong,), (), (), ()))


@pytest.mark.parametrize(
    "body",
    [
        # what must pass: strides, halos, pads, in-place, partial sums in a carry, prefix scans
        "Y[m, c] := add(Y[m, c], A[m, c])",
        "T[c, d] := A[c, d]\n  Y[m, c] := T[c, m]",
        "for k<8 tile 2 within m\n    Y[k, c] := A[k, c]",
        "for k<8 point carry h = 0.0:[m]\n    Y[m, k] := h\n    next h = add(h, A[m, k])",
        "x = A[m-1, c] pad 0.0",
        "x = A[@I[m], c]",
        "x = rename(A[m, c], c -> d)\n  Y[m, d] := x",
        "for k<4 tile 2\n    x = A[m, 2*k]\n    y = A[m, 2*k+1]",
        "for k<S tile 4 carry s = 0.0:[c]\n    next s = add(s, sum(P[k, c] over k))\n"
        "  Y[m, c] := s",
    ],
)
def test_accepted(body: str) -> None:
    kernel = parse(f"{HEAD}  {body}\n")
    assert verify(kernel) is kernel


def test_proof_kernels_at_many_tiles() -> None:
    for tile in (1, 7, 64):
        kernels.matmul_gelu("M", 40, 48, tile, tile, tile)
        kernels.attention_online(2, 8, tile, tile)


def test_symbolic_extents() -> None:
    text = "kernel k\n  memory X: f32[{}]\n  memory Y: f32[S]\n  grid i<S tile 4\n  Y[i] := X[{}]\n"
    for extent, index in [("2*S", "2*i+1"), ("S+2", "i+2"), ("S", "i")]:
        verify(parse(text.format(extent, index)))
    for extent, index in [("2*S", "2*i+2"), ("S+2", "i+3"), ("S", "2*i"), ("T", "i")]:
        assert "leaves dim 0" in _message(text.format(extent, index))


def test_store_index_is_affine_and_injective() -> None:
    buf = Buf("A", (16,))
    axes = (Axis("i", 4, 2), Axis("j", 4, "point"))
    good = Store("A", (affine("i") * 4 + "j",), Const(1.0))
    verify(Kernel("k", (buf,), axes, (), (good,)))
    bad = Store("A", (affine("i") * 3 + "j",), Const(1.0))
    with pytest.raises(InvalidIR, match=r"3\*i\+j in dim 0 is not injective"):
        verify(Kernel("k", (buf,), axes, (), (bad,)))
