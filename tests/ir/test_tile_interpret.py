"""The tile interpreter against numpy in float64: five kernels, tails, gathers, native types."""

from __future__ import annotations

import math

import kernels
import numpy as np
import pytest

from rooftile.core.errors import InvalidInput
from rooftile.ir.tile.interpret import run
from rooftile.ir.tile.text import parse
from rooftile.ir.tile.verify import verify


def _normal(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).standard_normal(shape)


def _gelu(x: np.ndarray) -> np.ndarray:
    return 0.5 * x * (1 + np.vectorize(math.erf)(x * 0.5**0.5))


def _softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


@pytest.mark.parametrize(("m", "n", "k"), [(8, 16, 10), (64, 64, 64), (37, 1, 48)])
def test_matmul_with_tails(m: int, n: int, k: int) -> None:
    a, b, bias = _normal(37, 48), _normal(48, 40), _normal(40)
    kernel = kernels.matmul_gelu("M", 48, 40, m, n, k, layout="layout 1/16 0 1%16")
    found = run(kernel, {"A": a, "B": b, "bias": bias})["C"]
    np.testing.assert_allclose(found, _gelu(a @ b + bias), rtol=1e-12)


def test_softmax() -> None:
    x = _normal(5, 33)
    found = run(kernels.softmax(5, 33, 2, "bf16"), {"X": x})["Y"]
    np.testing.assert_allclose(found, _softmax(x), rtol=1e-12)


def test_depthwise() -> None:
    x, w, bias = _normal(7, 9, 6), _normal(3, 3, 6), _normal(6)
    padded = np.pad(x, ((1, 1), (1, 1), (0, 0)))
    taps = [padded[i : i + 7, j : j + 9] * w[i, j] for i in range(3) for j in range(3)]
    expected = np.clip(sum(taps) + bias, 0, 6)
    for halo in ("", "halo 1:1 1:1 0:0"):
        kernel = kernels.depthwise(7, 9, 6, 2, 4, 4, halo=halo)
        found = run(kernel, {"X": x, "W": w, "bias": bias})["Y"]
        np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("online", [False, True])
def test_attention(online: bool) -> None:
    q, k, v = np.random.default_rng(0).standard_normal((3, 2, 20, 8))
    expected = _softmax(q @ k.transpose(0, 2, 1) / 8**0.5) @ v
    kernel = kernels.attention_online(2, 8, 6, 7) if online else kernels.attention(2, 20, 8, 6)
    found = run(kernel, {"Q": q, "K": k, "V": v})["O"]
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_unscheduled_kernel_and_native_types() -> None:
    kernel = verify(
        parse("""
kernel scale
  memory X: f32[4,3]
  memory N: i32[4,3]
  memory Y: f32[3,4]
  whole i<4, j<3
  big = lt(cast(N[i, j], i64), add(iota(i), iota(j)))
  Y[j, i] := where(big, X[i, j], prod(X[i, j] over j))
""")
    )
    x = _normal(4, 3).astype(np.float32)
    n = np.ones((4, 3), np.int32)
    found = run(kernel, {"X": x, "N": n}, native=True)["Y"]
    assert found.dtype == np.float32
    i, j = np.indices((4, 3))
    expected = np.where(i + j > 1, x, x.prod(1, keepdims=True)).T
    np.testing.assert_array_equal(found, expected)


def test_rename_recurrence() -> None:
    kernel = verify(
        parse("""
kernel recurrence
  memory X: f32[5,4,3]
  memory W: f32[3,3]
  memory Y: f32[5,4,3]
  whole i<3, j<3
  grid b<4 tile 3
  for t<5 point carry h = 0.0:[b j]
    new = add(dot(rename(h, j -> i), W[i, j], over i), X[t, b, j])
    Y[t, b, j] := new
    next h = new
""")
    )
    x, w = _normal(5, 4, 3), _normal(3, 3)
    found = run(kernel, {"X": x, "W": w})["Y"]
    h = np.zeros((4, 3))
    for step in range(5):
        h = h @ w + x[step]
        np.testing.assert_allclose(found[step], h, rtol=1e-12)


def test_within_axes_stage_through_scratch() -> None:
    kernel = verify(
        parse("""
kernel staged
  memory X: f32[S,6]
  memory Y: f32[S]
  scratch Z: f32[S,6]
  whole c<6, w<S within mo
  grid mo<S tile 4
  Z[w, c] := exp(X[w, c])
  for m<S tile 2 within mo
    Y[m] := sum(Z[m, c] over c)
""")
    )
    x = _normal(7, 6)
    np.testing.assert_allclose(run(kernel, {"X": x})["Y"], np.exp(x).sum(1), rtol=1e-12)


GATHER = """
kernel gather
  memory T: f32[5,2]
  memory ids: i64[3]
  memory Y: f32[3,2]
  whole i<3, j<2
  Y[i, j] := T[@ids[i], j]
"""


def test_gather_is_checked() -> None:
    kernel, table = verify(parse(GATHER)), _normal(5, 2)
    ids = np.array([4, 0, 1])
    np.testing.assert_array_equal(run(kernel, {"T": table, "ids": ids})["Y"], table[ids])
    for wrong in (5, -1):
        with pytest.raises(InvalidInput, match=rf"index {wrong} into T is outside 0..4"):
            run(kernel, {"T": table, "ids": np.array([0, wrong, 0])})


def test_casts_truncate_and_bool() -> None:
    kernel = verify(
        parse("""
kernel casts
  memory X: f32[3]
  memory I: i32[3]
  memory B: bool[3]
  whole i<3
  I[i] := cast(X[i], i32)
  B[i] := cast(X[i], bool)
""")
    )
    found = run(kernel, {"X": np.array([-1.7, 0.0, 2.9])})
    assert found["I"].tolist() == [-1, 0, 2]
    assert found["B"].tolist() == [True, False, True]


def test_bad_arrays_are_named() -> None:
    kernel = kernels.softmax("S", 4, 2)
    with pytest.raises(InvalidInput, match=r"buffer X has shape \(2, 3\), not \(2, 4\)"):
        run(kernel, {"X": np.zeros((2, 3))})
    with pytest.raises(InvalidInput, match="symbol S has no value; pass symbols"):
        run(kernel, {})
    with pytest.raises(InvalidInput, match="buffer X has no array"):
        run(kernel, {}, {"S": 2})
