"""exp, log, erf and tanh of f32 as straight-line polynomials, any width; f64 calls the C library.

Errors are measured against float64 in tests/codegen/test_llvm_math.py and stated in
docs/numerics.md. NaN propagates; exp overflows to infinity and underflows gradually.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rooftile.codegen.llvm.arith import binary, compare, fma, intrinsic, select
from rooftile.codegen.llvm.values import Val, constant, llvm_type
from rooftile.codegen.llvm.writer import Writer

_LN2_HIGH, _LN2_LOW = 0.693359375, -2.12194440e-4
_EXP = (1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 0.5)
_LOG = (
    7.0376836292e-2,
    -1.1514610310e-1,
    1.1676998740e-1,
    -1.2420140846e-1,
    1.4249322787e-1,
    -1.6668057665e-1,
    2.0000714765e-1,
    -2.4999993993e-1,
    3.3333331174e-1,
)
_ERF_P = (
    -2.72614225801306e-10,
    2.77068142495902e-08,
    -2.10102402082508e-06,
    -5.69250639462346e-05,
    -7.34990630326855e-04,
    -2.95459980854025e-03,
    -1.60960333262415e-02,
)
_ERF_Q = (
    -1.45660718464996e-05,
    -2.13374055278905e-04,
    -1.68282697438203e-03,
    -7.37332916720468e-03,
    -1.42647390514189e-02,
)
_TANH_P = (
    -2.76076847742355e-16,
    2.00018790482477e-13,
    -8.60467152213735e-11,
    5.12229709037114e-08,
    1.48572235717979e-05,
    6.37261928875436e-04,
    4.89352455891786e-03,
)
_TANH_Q = (1.19825839466702e-06, 1.18534705686654e-04, 2.26843463243900e-03, 4.89352518554385e-03)


def exp(writer: Writer, x: Val) -> Val:
    """e**x."""
    if x.dtype != "f32":
        return intrinsic(writer, "exp", x)
    x = _clamp(writer, x, -104.0, 89.0)
    n = intrinsic(writer, "roundeven", _times(writer, x, 1.4426950408889634))
    r = fma(writer, n, _like(x, -_LN2_HIGH), x)
    r = fma(writer, n, _like(x, -_LN2_LOW), r)
    p = _polynomial(writer, _EXP, r)
    p = fma(writer, binary(writer, "fmul", r, r), p, binary(writer, "fadd", r, _like(x, 1.0)))
    if x.width in (4, 8, 16) and writer.target.has("avx512vl"):
        return _scaled(writer, p, n)
    # The power of two is applied in two halves: one alone would leave the exponent's range.
    whole = _convert(writer, "fptosi", n, "i32")
    half = binary(writer, "ashr", whole, constant(1, "i32", x.width))
    rest = binary(writer, "sub", whole, half)
    p = binary(writer, "fmul", p, _power_of_two(writer, half))
    return binary(writer, "fmul", p, _power_of_two(writer, rest))


def log(writer: Writer, x: Val) -> Val:
    """The natural logarithm: -inf at 0, NaN below."""
    if x.dtype != "f32":
        return intrinsic(writer, "log", x)
    width = x.width
    tiny = compare(writer, "fcmp olt", x, _like(x, 1.17549435e-38))
    scaled = select(writer, tiny, _times(writer, x, 33554432.0), x)
    bits = Val(writer.op(f"bitcast {scaled} to {constant(0, 'i32', width).type}"), "i32", width)
    biased = binary(writer, "lshr", bits, constant(23, "i32", width))
    exponent = binary(writer, "sub", biased, constant(126, "i32", width))
    fraction = binary(writer, "and", bits, constant(0x007FFFFF, "i32", width))
    fraction = binary(writer, "or", fraction, constant(0x3F000000, "i32", width))
    m = Val(writer.op(f"bitcast {fraction} to {x.type}"), "f32", width)
    e = Val(writer.op(f"sitofp {exponent} to {x.type}"), "f32", width)
    e = binary(writer, "fsub", e, select(writer, tiny, _like(x, 25.0), _like(x, 0.0)))
    low = compare(writer, "fcmp olt", m, _like(x, 0.707106781186547524))
    m = binary(writer, "fadd", m, select(writer, low, m, _like(x, 0.0)))
    m = binary(writer, "fsub", m, _like(x, 1.0))
    e = binary(writer, "fsub", e, select(writer, low, _like(x, 1.0), _like(x, 0.0)))
    square = binary(writer, "fmul", m, m)
    y = binary(writer, "fmul", _polynomial(writer, _LOG, m), binary(writer, "fmul", square, m))
    y = fma(writer, e, _like(x, _LN2_LOW), y)
    y = fma(writer, square, _like(x, -0.5), y)
    y = fma(writer, e, _like(x, _LN2_HIGH), binary(writer, "fadd", m, y))
    return _log_edges(writer, x, y)


def erf(writer: Writer, x: Val) -> Val:
    """The error function, a rational function of odd order on -4..4."""
    if x.dtype != "f32":
        return _per_lane(writer, "erf", x)
    z = _clamp(writer, x, -4.0, 4.0)
    square = binary(writer, "fmul", z, z)
    top = binary(writer, "fmul", _polynomial(writer, _ERF_P, square), z)
    return binary(writer, "fdiv", top, _polynomial(writer, _ERF_Q, square))


def tanh(writer: Writer, x: Val) -> Val:
    """The hyperbolic tangent, a rational function of odd order on -7.9..7.9."""
    if x.dtype != "f32":
        return intrinsic(writer, "tanh", x)
    z = _clamp(writer, x, -7.90531110763549805, 7.90531110763549805)
    square = binary(writer, "fmul", z, z)
    top = binary(writer, "fmul", _polynomial(writer, _TANH_P, square), z)
    ratio = binary(writer, "fdiv", top, _polynomial(writer, _TANH_Q, square))
    small = compare(writer, "fcmp olt", intrinsic(writer, "fabs", x), _like(x, 0.0004))
    return select(writer, small, x, ratio)


def _like(x: Val, value: float) -> Val:
    return constant(value, x.dtype, x.width)


def _times(writer: Writer, x: Val, factor: float) -> Val:
    return binary(writer, "fmul", x, _like(x, factor))


def _polynomial(writer: Writer, coefficients: Sequence[float], x: Val) -> Val:
    total = _like(x, coefficients[0])
    for coefficient in coefficients[1:]:
        total = fma(writer, total, x, _like(x, coefficient))
    return total


def _clamp(writer: Writer, x: Val, low: float, high: float) -> Val:
    """x within bounds; written so that NaN stays NaN."""
    below = compare(writer, "fcmp olt", x, _like(x, low))
    x = select(writer, below, _like(x, low), x)
    above = compare(writer, "fcmp ogt", x, _like(x, high))
    return select(writer, above, _like(x, high), x)


def _convert(writer: Writer, word: str, x: Val, dtype: str) -> Val:
    to = constant(0, dtype, x.width).type
    # freeze: a NaN has no integer, and an undefined one must not spread beyond its lane.
    raw = Val(writer.op(f"{word} {x} to {to}"), dtype, x.width)
    return Val(writer.op(f"freeze {raw}"), dtype, x.width)


def _scaled(writer: Writer, p: Val, n: Val) -> Val:
    """p * 2**n for vectors of AVX-512, in one instruction."""
    bits = 32 * p.width
    lanes = f"i{max(p.width, 8)} -1"
    rounding = ("i32 4",) if bits == 512 else ()  # as the program has it
    name = f"llvm.x86.avx512.mask.scalef.ps.{bits}"
    zero = f"{p.type} zeroinitializer"
    result = writer.call(p.type, name, str(p), str(n), zero, lanes, *rounding)
    return Val(result, "f32", p.width)


def _power_of_two(writer: Writer, n: Val) -> Val:
    biased = binary(writer, "add", n, constant(127, "i32", n.width))
    bits = binary(writer, "shl", biased, constant(23, "i32", n.width))
    to = constant(0, "f32", n.width).type
    return Val(writer.op(f"bitcast {bits} to {to}"), "f32", n.width)


def _log_edges(writer: Writer, x: Val, y: Val) -> Val:
    infinite = compare(writer, "fcmp oeq", x, _like(x, float("inf")))
    y = select(writer, infinite, x, y)
    zero = compare(writer, "fcmp oeq", x, _like(x, 0.0))
    y = select(writer, zero, _like(x, float("-inf")), y)
    invalid = compare(writer, "fcmp ult", x, _like(x, 0.0))
    return select(writer, invalid, _like(x, float("nan")), y)


def library(name: str) -> Callable[[Writer, Val], Val]:
    """A function of the C library, called lane by lane in the type of its argument."""
    return lambda writer, x: _per_lane(writer, f"{name}f" if x.dtype == "f32" else name, x)


def _per_lane(writer: Writer, function: str, x: Val) -> Val:
    scalar = llvm_type(x.dtype)
    if not x.width:
        return Val(writer.call(scalar, function, str(x)), x.dtype)
    result = f"{x.type} poison"
    name = "poison"
    for lane in range(x.width):
        item = Val(writer.op(f"extractelement {x}, i64 {lane}"), x.dtype)
        done = writer.call(scalar, function, str(item))
        name = writer.op(f"insertelement {result}, {scalar} {done}, i64 {lane}")
        result = f"{x.type} {name}"
    return Val(name, x.dtype, x.width)
