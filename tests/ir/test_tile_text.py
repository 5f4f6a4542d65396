"""Tile IR text: round trips, golden texts, and errors that name their line."""

from __future__ import annotations

import math
from collections.abc import Callable

import kernels
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rooftile.core.affine import Affine, affine, dim
from rooftile.core.dtype import DTYPES
from rooftile.core.errors import InvalidIR
from rooftile.ir.tile import (
    Axis,
    Buf,
    Carry,
    Cast,
    Const,
    Dot,
    For,
    Iota,
    Kernel,
    Let,
    Load,
    Map,
    Reduce,
    Ref,
    Rename,
    Store,
    Tile,
)
from rooftile.ir.tile.scalar import SCALARS
from rooftile.ir.tile.text import parse, to_text

names = st.sampled_from(["a", "m", "n", "acc", "x_1", "K", "tile", "dot", "exp", "pad"])
dtypes = st.sampled_from(sorted(DTYPES))
integers = st.integers(0, 2**40)
numbers = st.one_of(
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False),
)
affines = st.builds(
    lambda terms, const: sum((affine(n) * c for n, c in terms.items()), affine(const)),
    st.dictionaries(names, st.integers(-9, 9), max_size=3),
    st.integers(-99, 99),
)
extents = st.one_of(st.integers(1, 9999), affines.map(dim))
some_names = st.lists(names, max_size=3).map(tuple)


def _deeper(tiles: st.SearchStrategy[Tile]) -> st.SearchStrategy[Tile]:
    def arguments(op: str) -> st.SearchStrategy[Tile]:
        count = SCALARS[op].arity
        return st.builds(
            Map, st.just(op), st.lists(tiles, min_size=count, max_size=count).map(tuple)
        )

    index = st.lists(st.one_of(affines, tiles), max_size=3).map(tuple)
    return st.one_of(
        st.builds(Load, names, index, st.none() | st.floats(allow_nan=False)),
        st.sampled_from(sorted(SCALARS)).flatmap(arguments),
        st.builds(Cast, tiles, dtypes),
        st.builds(Reduce, st.sampled_from(["sum", "prod", "max", "min"]), tiles, names),
        st.builds(
            Dot,
            tiles,
            tiles,
            some_names,
            st.none() | tiles,
            dtypes,
            st.sampled_from(["ieee", "tf32"]),
        ),
        st.builds(Rename, tiles, names, names),
    )


tiles = st.recursive(
    st.builds(Ref, names) | st.builds(Iota, names) | st.builds(Const, numbers, dtypes, some_names),
    _deeper,
    max_leaves=8,
)
axes = st.builds(
    Axis, names, extents, st.sampled_from(["whole", "point"]) | integers, st.none() | names
)
parts = st.one_of(
    st.tuples(integers, st.just(1), st.just("all")),
    st.tuples(integers, integers, st.sampled_from(["div", "mod"])),
)
bufs = st.builds(
    Buf,
    names,
    st.lists(extents, max_size=3).map(tuple),
    dtypes,
    st.sampled_from(["memory", "scratch"]),
    st.none() | st.lists(parts, max_size=4).map(tuple),
    st.none() | st.lists(st.tuples(integers, integers), max_size=3).map(tuple),
)
plain = st.builds(Let, names, tiles) | st.builds(
    Store, names, st.lists(affines, max_size=3).map(tuple), tiles
)
carries = st.lists(st.builds(Carry, names, tiles, tiles), max_size=3, unique_by=lambda c: c.name)
statements = st.recursive(
    plain,
    lambda inner: st.builds(For, axes, st.lists(inner, max_size=3).map(tuple), carries.map(tuple)),
    max_leaves=6,
)
some_axes = st.lists(axes, max_size=3).map(tuple)
any_kernel = st.builds(
    Kernel,
    names,
    st.lists(bufs, max_size=3).map(tuple),
    some_axes,
    some_axes,
    st.lists(statements, max_size=4).map(tuple),
)


@given(any_kernel)
def test_round_trip(kernel: Kernel) -> None:
    text = to_text(kernel)
    assert parse(text) == kernel
    assert to_text(parse(text)) == text


def test_nan_and_comments() -> None:
    kernel = parse("# a kernel\nkernel k\n\n  x = nan:[m]  # not a number\n")
    (let,) = kernel.body
    assert isinstance(let, Let) and isinstance(let.expr, Const) and math.isnan(let.expr.value)
    assert to_text(kernel) == "kernel k\n  x = nan:[m]\n"


def test_index_is_affine() -> None:
    (let,) = parse("kernel k\n  x = A[2*i-j+3, @ids[i]]\n").body
    assert isinstance(let, Let)
    index = Affine((("i", 2), ("j", -1)), 3)
    assert let.expr == Load("A", (index, Load("ids", (affine("i"),))))


def test_golden(golden: Callable[[str, str], None]) -> None:
    five = [
        kernels.matmul_gelu(384, 768, 3072, 64, 32, 768, layout="layout 1/32 0 1%32"),
        kernels.softmax("S", 1024, 4),
        kernels.depthwise(56, 56, 128, 1, 8, 64, halo="halo 1:1 1:1 0:0"),
        kernels.attention(12, 512, 64, 32, "bf16"),
        kernels.attention_online(12, 64, 64, 64, "bf16"),
    ]
    golden("tile_kernels.txt", "\n".join(map(to_text, five)))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1: the text is empty; a kernel starts with `kernel NAME`"),
        ("colonel k", "line 1: expected 'kernel', found 'colonel'"),
        ("kernel k k", "line 1: unexpected 'k' at the end"),
        ("kernel k\n  memory A: f31[3]", "line 2: no element type f31; one of f64, f32"),
        ("kernel k\n  memory A: f32[3", "line 2: expected ']', found 'the end'"),
        ("kernel k\n  memory A: f32[3] layout x", "line 2: expected an integer, found 'x'"),
        ("kernel k\n  grid m=3", "line 2: expected '<', found '='"),
        ("kernel k\n  x = add(1.0 2.0)", "line 2: expected ')', found '2.0'"),
        ("kernel k\n  x = gelu(y)", "line 2: no operation gelu; one of add, sub"),
        ("kernel k\n  x = 1.0 $", "line 2: unexpected character '$'"),
        ("kernel k\n  x = -y", "line 2: expected a number, found 'y'"),
        ("kernel k\n  x = A[i]\n    y = 1.0", "line 3: this line is indented more than the one"),
        ("kernel k\n    x = 1.0\n  y = 1.0", "line 3: this line is indented less than the kernel"),
        ("kernel k\n  A[i] := 1.0 combine", "line 2: expected add, mul, max or min"),
        ("kernel k\n  next a = 1.0", "line 2: `next` belongs at the end of a loop with that carry"),
        (
            "kernel k\n  for i<3 carry a = 1.0\n    x = 1.0",
            "line 2: carry a has no `next a = ...` in the loop",
        ),
        (
            "kernel k\n  for i<3 carry a = 1.0\n    next b = 1.0",
            "line 3: carry b is unknown or has two `next`",
        ),
        (
            "kernel k\n  for i<3 carry a = 1.0\n    next a = 1.0\n    next a = 1.0",
            "line 3: carry a is unknown or has two `next`",
        ),
        (
            "kernel k\n  for i<3 carry a = 1.0\n    next a = 1.0\n    x = 2.0",
            "line 4: no statement may follow `next` in a loop",
        ),
        ("kernel k\n  x = dot(a, b, above k)", "line 2: dot takes over, acc, dtype, precision"),
    ],
)
def test_errors_name_the_line(text: str, message: str) -> None:
    with pytest.raises(InvalidIR) as caught:
        parse(text)
    assert message in str(caught.value)
