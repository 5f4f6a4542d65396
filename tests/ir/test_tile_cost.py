"""Cost of a tile program: operations, bytes once a buffer, scratch; and which Lets are held."""

from __future__ import annotations

import kernels
import pytest

from rooftile.core.cost import Cost
from rooftile.ir.tile import Kernel
from rooftile.ir.tile.cost import cost
from rooftile.ir.tile.materialise import stored_lets
from rooftile.ir.tile.query import complete_scope
from rooftile.ir.tile.text import parse
from rooftile.ir.tile.verify import verify


def _kernel(body: str) -> Kernel:
    return verify(parse(f"kernel k\n{body}"))


def test_matmul_counts_once_at_any_tiles() -> None:
    m, k, n = 384, 768, 3072
    expected = 2 * m * n * k + 7 * m * n - m * n
    for tile in (16, 64, 384):
        found = cost(kernels.matmul_gelu(m, k, n, tile, tile, tile))
        assert found.flops == {"f32": expected}
        assert found.read == 4 * (m * k + k * n + n)
        assert found.written == 4 * m * n


def test_types_and_symbols() -> None:
    found = cost(kernels.attention_online(2, 8, 4, 4, "bf16"), {"S": 12})
    assert found.flops["bf16"] == 2 * 2 * 2 * 12 * 12 * 8
    assert found.read == 3 * 2 * (2 * 12 * 8)
    with pytest.raises(KeyError, match="S"):
        cost(kernels.attention_online(2, 8, 4, 4))


def test_recomputed_tiles_count_again() -> None:
    text = """
  memory X: f32[8]
  memory Y: f32[6,8]
  grid m<6 tile 2, n<8 tile 4
  e = exp(X[n])
  Y[m, n] := e
"""
    assert cost(_kernel(text)).flops == {"f32": 3 * 8}


def test_loops_refined_axes_and_scratch() -> None:
    text = """
  memory X: f32[8,6]
  memory Y: f32[8]
  scratch Z: f32[8,6]
  whole c<6, w<8 within mo
  grid mo<8 tile 4
  Z[w, c] := neg(X[w, c])
  for m<8 tile 2 within mo
    s = sum(Z[m, c] over c)
    Y[m] := mul(s, s)
"""
    found = cost(_kernel(text))
    assert found == Cost({"f32": 48 + 48 + 8}, 4 * 48, 4 * 8, 4 * 48)


def test_bytes_that_are_reached() -> None:
    text = """
  memory T: f32[1000,3]
  memory ids: i64[5]
  memory X: f32[100]
  memory Y: f32[5,3]
  whole i<5, j<3
  Y[i, j] := add(T[@ids[i], j], add(X[2*i], X[i+10]))
"""
    assert cost(_kernel(text)).read == 4 * 5 * 3 + 8 * 5 + 4 * (5 + 5)
    padded = """
  memory X: f32[6]
  memory Y: f32[6]
  whole i<6, k<3
  Y[i] := sum(X[i+k-1] pad 0.0 over k)
"""
    assert cost(_kernel(padded)).read == 4 * 6


def test_views_are_free() -> None:
    text = """
  memory X: f32[4]
  memory Y: f32[4]
  whole i<4, j<4
  Y[j] := rename(cast(cast(X[i], bf16), f32), i -> j)
"""
    assert cost(_kernel(text)).flops == {}


HEAD = """
  memory X: f32[8,8]
  memory W: f32[8,8]
  memory Y: f32[8,8]
  memory Z: f32[8,8]
  whole c<8, d<8
  grid m<8 tile 4
"""


def kept(kernel: Kernel) -> frozenset[str]:
    """The Lets that are kept in scratch memory."""
    return stored_lets(kernel, complete_scope(kernel).dims)


@pytest.mark.parametrize(
    ("body", "held"),
    [
        # expensive: kept where it is reduced, in wider dims, in an inner loop
        ("x = exp(X[m, c])\n  Y[m, c] := x", []),
        ("x = exp(X[m, c])\n  Y[m, c] := mul(x, x)", []),
        ("x = add(X[m, c], 1.0)\n  Y[m, c] := mul(x, x)", []),
        ("x = exp(X[m, c])\n  Y[m, d] := sum(x over c)", ["x"]),
        ("x = sum(X[m, c] over c)\n  Y[m, d] := x", []),
        ("x = sum(X[m, c] over c)\n  Y[m, d] := add(X[m, d], x)", ["x"]),
        ("x = exp(X[m, c])\n  for k<8 tile 2\n    Y[m, k] := sum(x over c)", ["x"]),
        ("x = exp(X[m, c])\n  y = add(x, 1.0)\n  Y[m, c] := mul(y, y)", []),
        # a buffer or a carry that changes in between
        ("x = Y[m, c]\n  Y[m, c] := 1.0\n  Z[m, c] := x", ["x"]),
        ("x = Y[m, c]\n  Z[m, c] := x\n  Y[m, c] := 1.0", ["x"]),
        (
            "x = Y[m, c]\n  for k<8 point\n    Z[m, c] := x\n    Y[m, c] := W[m, c]",
            ["x"],
        ),
        (
            "for k<8 tile 2 carry a = 0.0:[m]\n    x = add(a, 1.0)\n    next a = x\n  Y[m, d] := a",
            [],
        ),
        (
            "for k<8 point carry a = 0.0:[m]\n    x = add(a, 1.0)\n"
            "    for j<8 point carry b = a\n      next b = add(b, x)\n    next a = b\n"
            "  Y[m, d] := a",
            [],
        ),
        # in a Dot
        ("x = X[m, c]\n  Y[m, d] := dot(x, W[c, d], over c)", []),
        ("x = add(X[m, c], 1.0)\n  y = dot(x, W[c, d], over c)\n  Y[m, d] := y", ["x"]),
        ("x = add(X[m, d], 1.0)\n  Y[m, d] := dot(X[m, c], W[c, d], over c, acc x)", []),
    ],
)
def test_stored_lets(body: str, held: list[str]) -> None:
    assert sorted(kept(_kernel(f"{HEAD}  {body}\n"))) == held


def test_stored_lets_of_the_proof_kernels() -> None:
    assert kept(kernels.matmul_gelu(8, 8, 8, 4, 4, 4)) == frozenset()
    assert kept(kernels.softmax(8, 8, 4)) == {"top", "p", "total"}
    assert kept(kernels.attention(2, 8, 8, 4)) == {"s", "top", "p", "total"}
    online = kept(kernels.attention_online(2, 8, 4, 4))
    assert online == {"s", "higher", "p", "fade"}
