"""Each rewrite keeps what a kernel computes, and refuses what it cannot keep."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from llvm_host import filled, made

from rooftile.core.errors import InvalidIR
from rooftile.ir.tile import Dot, Kernel, Load, Map, Store, subtiles
from rooftile.ir.tile.interpret import run
from rooftile.ir.tile.text import to_text
from rooftile.ir.tile.verify import verify
from rooftile.schedule.rewrites import pack, reduced_axes, stage, to_grid, to_loop

quick = settings(max_examples=40, deadline=None, derandomize=True)
BODY = """
kernel body
  memory A: f32[7,9]
  memory B: f32[11,9]
  memory bias: f32[11]
  memory C: f32[7,11]
  memory T: f32[11,7]
  whole m<7, n<11, k<9
  s = dot(A[m, k], B[n, k], over k)
  C[m, n] := max(add(s, bias[n]), 0.0)
  T[n, m] := mul(s, s)
"""


def equal(before: Kernel, after: Kernel) -> None:
    """Both verify and give the same outputs."""
    verify(after)
    arrays = filled(before)
    want, found = run(before, arrays), run(after, arrays)
    for name, array in want.items():
        np.testing.assert_allclose(found[name], array, rtol=1e-12)


def load_of(kernel: Kernel, buf: str) -> Load:
    """The first load of a buffer."""
    for stmt in kernel.body:
        for part in subtiles(stmt.expr):
            if isinstance(part, Load) and part.buf == buf:
                return part
    raise AssertionError(buf)


EXTENTS = {"m": 7, "n": 11, "k": 9}


@quick
@given(
    st.permutations(["m", "n"]),
    st.lists(st.one_of(st.integers(1, 13), st.just("point")), min_size=2, max_size=2),
    st.integers(0, 2),
    st.sampled_from((None, 1, 2, 4, 8, 16)),
    st.sampled_from((None, ("n", "k"), ("k", "n"))),
)
def test_rewrites_together(
    axes: list[str],
    tiles: list[int | str],
    count: int,
    block: int | None,
    order: tuple[str, str] | None,
) -> None:
    kernel = before = made(BODY)
    if block:
        kernel = pack(kernel, "B", 0, block)
    staged = 0
    if order:
        kernel = stage(kernel, load_of(kernel, "B"), order, EXTENTS)
        staged = 1
    for name, tile in list(zip(axes, tiles, strict=True))[:count]:
        if name == "m" and isinstance(tile, int) and staged:
            kernel = to_loop(kernel, name, tile, after=staged)
            break
        kernel = to_grid(kernel, name, tile)
    equal(before, kernel)


def test_reduced_axes() -> None:
    assert reduced_axes(made(BODY)) == {"k"}


def test_grid_tiles_are_no_larger_than_the_axis() -> None:
    kernel = to_grid(made(BODY), "m", 100)
    assert [(axis.name, axis.tile) for axis in kernel.grid] == [("m", 7)]
    assert [axis.name for axis in kernel.whole] == ["n", "k"]


def test_packing_is_a_layout_of_panels() -> None:
    kernel = pack(made(BODY), "B", 0, 4)
    assert kernel.buf("B").layout == ((0, 4, "div"), (1, 1, "all"), (0, 4, "mod"))


def test_staging_takes_a_free_name_and_every_equal_load() -> None:
    text = """
kernel twice
  memory A: f32[5,6]
  memory s0: f32[5]
  memory Y: f32[5]
  whole m<5, n<6
  s1 = sum(A[m, n] over n)
  Y[m] := add(add(s1, s0[m]), max(A[m, n] over n))
"""
    before = made(text)
    after = stage(before, load_of(before, "A"), ("n", "m"), {"m": 5, "n": 6})
    assert "scratch s2: f32[6,5]" in to_text(after)
    assert to_text(after).count("A[m, n]") == 1
    equal(before, after)


def test_staging_changes_index_tiles_too() -> None:
    before = made("""
kernel indexed
  memory I: i64[5]
  memory X: f32[5]
  memory Y: f32[9]
  whole m<5
  Y[@I[m]] := X[m] combine add
""")
    load = Load("I", before.body[0].index[0].index)
    after = stage(before, load, ("m",), {"m": 5})
    assert isinstance(after.body[1], Store)
    assert after.body[1].index[0] != load


@pytest.mark.parametrize("cut", [to_grid, lambda k, name, tile: to_loop(k, name, tile)])
@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("Y[m, n] := div(X[m, n], sum(X[k, n] over k))", "k is not a whole|m is not|ok"),
        ("Y[m, n] := sub(X[m, n], sum(X[m, n] over m))", "something is reduced over it"),
        ("Z[n] := max(X[0, n], 1.0)\n  Y[m, n] := X[m, n]", "Z does not name it"),
        ("Y[m, n] := rename(X[k, n], k -> m)", "a tile is renamed along it"),
        ("Y[m, n] := Y[-1*m+4, n]", "Y is read elsewhere than it is stored"),
        ("Y[m, n] := X[m, n]\n  W[m, n] := Y[-1*m+4, n]", "Y is read elsewhere"),
    ],
)
def test_cuts_that_are_refused(cut: object, body: str, why: str) -> None:
    kernel = made(f"""
kernel refused
  memory X: f32[5,6]
  memory Y: f32[5,6]
  memory W: f32[5,6]
  memory Z: f32[6]
  whole m<5, n<6, k<5
  {body}
""")
    assert callable(cut)
    if "ok" in why:
        equal(kernel, cut(kernel, "m", 2))
        return
    with pytest.raises(InvalidIR, match=f"refused: m cannot be cut, {why}"):
        cut(kernel, "m", 2)


def test_other_refusals() -> None:
    kernel = made(BODY)
    with pytest.raises(InvalidIR, match="body: x is not a whole axis"):
        to_grid(kernel, "x", 2)
    with pytest.raises(InvalidIR, match="m cannot be cut, a statement before the loop uses it"):
        to_loop(kernel, "m", 2, after=1)
    with pytest.raises(InvalidIR, match="B has a layout already"):
        pack(pack(kernel, "B", 0, 4), "B", 1, 4)
    around = made(
        "kernel h\n  memory X: f32[4] halo 1:1\n  memory Y: f32[4]\n  whole i<4\n  Y[i] := X[i]\n"
    )
    with pytest.raises(InvalidIR, match="dim 0 of X has a symbol or a halo: it stays whole"):
        pack(around, "X", 0, 2)


@pytest.mark.parametrize(
    ("load", "order"),
    [
        ("X[m-1, n] pad 0.0", ("m", "n")),
        ("X[m, n]", ("m",)),
        ("X[m, n]", ("m", "n", "k")),
        ("X[@I[m], n]", ("n",)),
        ("Y[m, n]", ("m", "n")),
    ],
)
def test_loads_that_cannot_be_staged(load: str, order: tuple[str, ...]) -> None:
    kernel = made(f"""
kernel staged
  memory X: f32[5,6]
  memory I: i64[5]
  memory Y: f32[5,6]
  whole m<5, n<6, k<5
  Y[m, n] := add({load}, 1.0)
""")
    stmt = kernel.body[0]
    assert isinstance(stmt, Store) and isinstance(stmt.expr, Map)
    what = stmt.expr.args[0]
    assert isinstance(what, Load)
    with pytest.raises(InvalidIR, match=f"{what.buf} cannot be staged along {order[0]}"):
        stage(kernel, what, order, {"m": 5, "n": 6, "k": 5})


def test_a_loop_carries_no_load_to_the_front() -> None:
    kernel = made("""
kernel inner
  memory A: f32[4,8]
  memory B: f32[8,4]
  memory C: f32[4,4]
  whole m<4, n<4
  for k<8 tile 2 carry acc = 0.0:[m n]
    next acc = dot(A[m, k], B[k, n], over k, acc acc)
  C[m, n] := acc
""")
    dot = kernel.body[0].carry[0].next
    assert isinstance(dot, Dot) and isinstance(dot.b, Load)
    with pytest.raises(InvalidIR, match="B cannot be staged along k"):
        stage(kernel, dot.b, ("k", "n"), {"k": 8, "n": 4})
