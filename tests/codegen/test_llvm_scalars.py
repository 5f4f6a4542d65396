"""Every scalar operation, cast and reduction on every element type, at the edges of the types."""

from __future__ import annotations

import numpy as np
import pytest
from llvm_host import agree, execute, filled, made

from rooftile.core.dtype import DTYPES, kind, to_numpy
from rooftile.ir.tile.scalar import FLOAT_ONLY, INTEGER_ONLY, SCALARS
from rooftile.native.target import Target
from rooftile.ops.cast import convert

BOOL_ONLY = ("and", "or", "not")
COMPARE = ("lt", "le", "eq")
NUMBERS = [name for name in DTYPES if name != "bool"]
EXACT = ("add", "sub", "mul", "max", "min", "neg", "abs", "floor", "ceil", "round", "where")
BOUNDS = {"f64": 4e-15, "f32": 4e-6, "f16": 2e-3, "bf16": 8e-3}
SPECIAL = (0.0, -0.0, 0.5, 1.5, 2.5, -0.5, -1.5, 1.0, -3.0, 7.25, 1e-40, 88.5, -104.5, 3e38, 1e20)


def edges(dtype: str) -> np.ndarray:
    """Values at which implementations differ."""
    if dtype == "bool":
        return np.array([False, True, True])
    if kind(dtype) == "float":
        with np.errstate(over="ignore"):
            values = [*SPECIAL, float("inf"), float("-inf"), float("nan")]
            return np.array(values).astype(to_numpy(dtype))
    info = np.iinfo(to_numpy(dtype))
    values = [0, 1, 2, 3, 7, 8, 31, 32, 63, 64, 100, info.max, info.max - 1, info.min, info.min + 1]
    signed = [-1, -2, -3, -7] if kind(dtype) == "int" else []
    return np.array(values + signed, to_numpy(dtype))


def operands(op: str, dtype: str) -> list[np.ndarray]:
    """All pairs of edge values."""
    one = edges(dtype)
    if SCALARS[op].arity == 1:
        return [one]
    first, second = (x.reshape(-1) for x in np.meshgrid(one, one))
    if op == "where":
        return [(np.arange(first.size) % 3 == 0), first, second]
    return [first, second]


def takes(op: str, dtype: str) -> bool:
    """Whether the verifier allows an operation on a type."""
    if op in FLOAT_ONLY:
        return kind(dtype) == "float" or (op == "pow" and dtype != "bool")
    if op in INTEGER_ONLY:
        return kind(dtype) in ("int", "uint")
    if op in BOOL_ONLY:
        return dtype == "bool"
    return dtype != "bool" or op in ("eq", "where")


CASES = [(op, dtype) for op in SCALARS for dtype in DTYPES if takes(op, dtype)]


@pytest.mark.parametrize(("op", "dtype"), CASES)
def test_operations(op: str, dtype: str, isa: Target) -> None:
    arrays = operands(op, dtype)
    size = arrays[0].size
    result = SCALARS[op].result([dtype] * len(arrays))
    names = [f"X{place}" for place in range(len(arrays))]
    types = ["bool" if op == "where" and not place else dtype for place in range(len(arrays))]
    bufs = "\n".join(
        f"  memory {name}: {one}[{size}]" for name, one in zip(names, types, strict=True)
    )
    kernel = made(f"""
kernel scalar
{bufs}
  memory Y: {result}[{size}]
  whole n<{size}
  Y[n] := {op}({", ".join(f"{name}[n]" for name in names)})
""")
    found = execute(kernel, dict(zip(names, arrays, strict=True)), target=isa).outputs["Y"]
    wide = [
        x.astype(np.float32) if DTYPES[dtype].itemsize == 2 and kind(dtype) == "float" else x
        for x in arrays
    ]
    if op == "where":
        wide[0] = arrays[0]
    with np.errstate(all="ignore"):
        want = np.asarray(SCALARS[op].meaning(*wide)).astype(to_numpy(result))
    same(found, want, 0.0 if kind(result) != "float" or op in EXACT else BOUNDS[dtype])


def same(found: np.ndarray, want: np.ndarray, bound: float) -> None:
    """Equal, or both NaN, or near each other relatively; numbers below the normals are as zero."""
    if bound == 0.0:
        if want.dtype.itemsize == 2 and want.dtype.kind not in "iu":
            found, want = found.astype(np.float32), want.astype(np.float32)
        np.testing.assert_array_equal(found, want)
        return
    got, expected = found.astype(np.float64), want.astype(np.float64)
    both = np.isnan(got) & np.isnan(expected)
    with np.errstate(all="ignore"):
        near = np.abs(got - expected) <= bound * np.abs(expected) + 1e-37
    wrong = ~(both | near | (got == expected))
    assert not wrong.any(), (got[wrong], expected[wrong])


@pytest.mark.parametrize("source", DTYPES)
@pytest.mark.parametrize("target", DTYPES)
def test_casts(source: str, target: str, isa: Target) -> None:
    x = edges(source)
    if kind(source) == "float":
        limits = [2.0**b for b in (7, 8, 15, 16, 31, 32, 63, 64)]
        more = [s * (v + d) for v in limits for s in (1, -1) for d in (-1, 0, 0.5, 1)]
        with np.errstate(over="ignore"):
            x = np.concatenate([x, np.array(more).astype(x.dtype)])
    kernel = made(f"""
kernel casts
  memory X: {source}[{x.size}]
  memory Y: {target}[{x.size}]
  whole n<{x.size}
  Y[n] := cast(X[n], {target})
""")
    found = execute(kernel, {"X": x}, target=isa).outputs["Y"]
    with np.errstate(all="ignore"):
        held = x.astype(np.float32) if source in ("f16", "bf16") else x
        wide = held if kind(target) != "float" else held.astype(to_numpy(target))
        want = convert(wide, to_numpy(target)) if kind(target) != "float" else wide
    same(found, want, 0.0)


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
def test_every_half_comes_back(dtype: str, isa: Target) -> None:
    """All 65536 patterns through f32, and what lies between two of them rounds to even."""
    halves = np.arange(65536, dtype=np.uint16).view(to_numpy(dtype))
    kernel = made(f"""
kernel halves
  memory X: {dtype}[65536]
  memory F: f32[65536]
  memory Y: {dtype}[65536]
  memory G: {dtype}[65536]
  whole n<65536
  Y[n] := add(X[n], 0:{dtype})
  G[n] := cast(F[n], {dtype})
""")
    with np.errstate(invalid="ignore"):
        wide = halves.astype(np.float32)
        near = np.nextafter(wide, np.float32(np.inf)) + (np.roll(wide, 1) - wide) / 2
        found = execute(kernel, {"X": halves, "F": near}, target=isa).outputs
        finite = np.isfinite(wide) & (wide != 0)
        assert (found["Y"].view(np.uint16) == halves.view(np.uint16))[finite].all()
        want = near.astype(to_numpy(dtype))
    same(found["G"], want, 0.0)


@pytest.mark.parametrize("dtype", NUMBERS)
@pytest.mark.parametrize("op", ["sum", "prod", "max", "min"])
def test_reductions_over_lanes_and_rows(dtype: str, op: str, isa: Target) -> None:
    kernel = made(f"""
kernel reductions
  memory X: {dtype}[5,37]
  memory R: {dtype}[5]
  memory C: {dtype}[37]
  memory A: {dtype}[]
  memory N: {dtype}[5,37]
  whole m<5, n<37, k<5, l<37
  R[m] := {op}(X[m, n] over n)
  C[n] := {op}(X[m, n] over m)
  A[] := {op}({op}(X[m, n] over n) over m)
  N[m, n] := sub({op}(X[k, n] over k), {op}(X[m, l] over l))
""")
    arrays = filled(kernel)
    if kind(dtype) == "float":
        # Values whose products stay within f16.
        arrays["X"] = np.where(arrays["X"].astype(np.float32) < 0, -1.25, 1).astype(to_numpy(dtype))
    else:
        arrays["X"] = np.random.default_rng(0).choice(edges(dtype), (5, 37))
    agree(kernel, arrays, target=isa)


@pytest.mark.parametrize("op", ["max", "min"])
@pytest.mark.parametrize("place", [0, 3, 15, 16, 35, 36])
@pytest.mark.parametrize("rows", [1, 9])
def test_extremes_propagate_nan(op: str, place: int, rows: int, isa: Target) -> None:
    kernel = made(f"""
kernel extremes
  memory X: f32[{rows},37]
  memory R: f32[{rows}]
  memory C: f32[37]
  memory L: f32[{rows},37]
  whole m<{rows}, n<37
  R[m] := {op}(X[m, n] over n)
  C[n] := {op}(X[m, n] over m)
  L[m, n] := {op}(nan, {op}({op}(X[m, n], 0.5), {op}(1.0, X[m, n])))
""")
    arrays = filled(kernel)
    arrays["X"][rows - 1, place] = np.nan
    found = agree(kernel, arrays, target=isa)
    assert np.isnan(found["R"][rows - 1]) and np.isnan(found["C"][place])


def test_sums_of_nothing_but_specials() -> None:
    kernel = made("""
kernel specials
  memory X: f32[4,20]
  memory R: f32[4]
  memory M: f32[4]
  whole m<4, n<20
  R[m] := sum(X[m, n] over n)
  M[m] := max(X[m, n] over n)
""")
    x = np.zeros((4, 20), np.float32)
    x[0, 5], x[1, 5], x[1, 9] = np.inf, np.inf, -np.inf
    x[2] = -np.inf
    x[3] = np.float32(3e38)
    found = execute(kernel, {"X": x}).outputs
    np.testing.assert_array_equal(found["R"], [np.inf, np.nan, -np.inf, np.inf])
    np.testing.assert_array_equal(found["M"], [np.inf, np.inf, -np.inf, np.float32(3e38)])


@pytest.mark.parametrize(
    ("a", "b", "into"),
    [
        ("i8", "i8", "i32"),
        ("u8", "i8", "i32"),
        ("i32", "i32", "i32"),
        ("i8", "u8", "i64"),
        ("u32", "i32", "i64"),
        ("i64", "i64", "i64"),
        ("f16", "f16", "f32"),
        ("bf16", "bf16", "f32"),
        ("f32", "f32", "f64"),
        ("f64", "f64", "f64"),
    ],
)
def test_dots(a: str, b: str, into: str, isa: Target) -> None:
    kernel = made(f"""
kernel dots
  memory A: {a}[6,19]
  memory B: {b}[19,33]
  memory T: {b}[33,19]
  memory Z: {into}[33]
  memory C: {into}[6,33]
  memory D: {into}[6,33]
  memory E: {into}[6]
  whole m<6, n<33, k<19
  C[m, n] := dot(A[m, k], B[k, n], over k, acc add(Z[n], cast(A[m, 0], {into})), dtype {into})
  D[m, n] := dot(A[m, k], T[n, k], over k, dtype {into})
  E[m] := dot(A[m, k], B[k, m], over k, dtype {into})
""")
    arrays = filled(kernel)
    for name in "ABT":
        if kind(kernel.buf(name).dtype) != "float":
            shape = arrays[name].shape
            arrays[name] = np.random.default_rng(1).choice(edges(kernel.buf(name).dtype), shape)
    agree(kernel, arrays, target=isa)


@pytest.mark.parametrize("operand", ["exp(A[m, k])", "log(abs(A[m, k]))", "add(A[m, k], 1.0)"])
@pytest.mark.parametrize("length", [1, 3, 4, 7, 15, 17, 31, 33])
def test_lanes_behind_a_tail_count_nothing(operand: str, length: int, isa: Target) -> None:
    kernel = made(f"""
kernel tails
  memory A: f32[3,{length}]
  memory B: f32[3,{length}]
  memory Y: f32[3]
  memory Z: f32[3]
  whole m<3, k<{length}
  Y[m] := dot({operand}, exp(B[m, k]), over k)
  Z[m] := sum({operand} over k)
""")
    agree(kernel, filled(kernel), target=isa, bound=1e-5)


def test_nested_reductions() -> None:
    kernel = made("""
kernel nested
  memory X: f32[4,9,17]
  memory W: f32[17,9]
  memory Y: f32[4,9]
  memory Z: f32[4]
  whole m<4, n<9, k<17, j<9, l<17
  Y[m, n] := sum(dot(sub(X[m, j, k], max(X[m, j, l] over l)), W[k, n], over k) over j)
  mean = mul(sum(sum(X[m, n, k] over k) over n), 0.0065)
  d = sub(X[m, n, k], mean)
  Z[m] := sum(max(mul(d, d) over k) over n)
""")
    agree(kernel, filled(kernel))
