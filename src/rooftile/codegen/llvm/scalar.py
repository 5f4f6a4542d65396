"""Scalar operations of the tile IR as LLVM instructions, on scalars or vectors."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from rooftile.codegen.llvm import vmath
from rooftile.codegen.llvm.arith import binary, compare, intrinsic, select
from rooftile.codegen.llvm.convert import retag
from rooftile.codegen.llvm.power import power
from rooftile.codegen.llvm.values import HALVES, Val, constant, splat
from rooftile.codegen.llvm.writer import Writer
from rooftile.core.dtype import DTYPES, kind
from rooftile.core.errors import NotLowered
from rooftile.ir.tile.scalar import LIBRARY

_BINARY = {"add": ("fadd", "add"), "sub": ("fsub", "sub"), "mul": ("fmul", "mul")}
_COMPARE = {"lt": ("olt", "slt", "ult"), "le": ("ole", "sle", "ule"), "eq": ("oeq", "eq", "eq")}


_NAN = {constant(math.nan, dtype, width).name for dtype in ("f32", "f64") for width in (0, 4)}


def apply(writer: Writer, op: str, args: Sequence[Val]) -> Val:
    """The result of a Map's operation; scalars widen to the widest argument. f16 and bf16 are
    computed in f32."""
    half = args[-1].dtype
    if half in HALVES:
        wide = [retag(arg, "f32") if arg.dtype in HALVES else arg for arg in args]
        result = apply(writer, op, wide)
        return result if result.dtype == "bool" else retag(result, half)
    width = max(arg.width for arg in args)
    wide = [splat(writer, arg, width) for arg in args]
    floats = kind(wide[-1].dtype) == "float"
    if op in _BINARY:
        return binary(writer, _BINARY[op][0 if floats else 1], *wide)
    if op in _COMPARE:
        return _compare(writer, op, wide)
    if op in _SPECIAL:
        return _SPECIAL[op](writer, wide)
    if op in _FLOAT_UNARY and floats:
        return _FLOAT_UNARY[op](writer, wide[0])
    raise NotLowered(f"{op} on {wide[-1].dtype} has no LLVM form")


def _compare(writer: Writer, op: str, args: Sequence[Val]) -> Val:
    group = {"float": 0, "int": 1, "uint": 2, "bool": 2}[kind(args[0].dtype)]
    word = "fcmp" if group == 0 else "icmp"
    return compare(writer, f"{word} {_COMPARE[op][group]}", *args)


def _where(writer: Writer, args: Sequence[Val]) -> Val:
    return select(writer, *args)


def _is_number(value: Val) -> bool:
    """Whether it is a literal that is not NaN."""
    return not value.name.startswith("%") and value.name not in _NAN


def _extreme(less: bool) -> Callable[[Writer, Sequence[Val]], Val]:
    def choose(writer: Writer, args: Sequence[Val]) -> Val:
        a, b = args
        if kind(a.dtype) != "float":
            sign = "s" if kind(a.dtype) == "int" else "u"
            word = f"icmp {sign}{'lt' if less else 'gt'}"
            return select(writer, compare(writer, word, a, b), a, b)
        if _is_number(b):
            a, b = b, a
        # x86's max gives its second operand where either is NaN: with the literal first, one
        # instruction propagates NaN.
        word = f"fcmp {'olt' if less else 'ogt'}"
        best = select(writer, compare(writer, word, a, b), a, b)
        if _is_number(a):
            return best
        return select(writer, compare(writer, "fcmp uno", a, a), a, best)

    return choose


def _divide(writer: Writer, args: Sequence[Val]) -> Val:
    a, b = args
    if kind(b.dtype) == "float":
        return binary(writer, "fdiv", a, b)
    zero, one = constant(0, b.dtype, b.width), constant(1, b.dtype, b.width)
    empty = compare(writer, "icmp eq", b, zero)
    bad = minus_one = empty
    if kind(b.dtype) == "int":
        # The least integer divided by -1 traps: it is negated instead.
        minus_one = compare(writer, "icmp eq", b, constant(-1, b.dtype, b.width))
        bad = binary(writer, "or", empty, minus_one)
    safe = select(writer, bad, one, b)
    word = "sdiv" if kind(b.dtype) == "int" else "udiv"
    quotient = binary(writer, word, a, safe)
    if kind(b.dtype) == "int":
        quotient = select(writer, minus_one, binary(writer, "sub", zero, a), quotient)
    return select(writer, empty, zero, quotient)


def _negate(writer: Writer, args: Sequence[Val]) -> Val:
    (x,) = args
    if kind(x.dtype) == "float":
        return Val(writer.op(f"fneg {x}"), x.dtype, x.width)
    return binary(writer, "sub", constant(0, x.dtype, x.width), x)


def _absolute(writer: Writer, args: Sequence[Val]) -> Val:
    (x,) = args
    if kind(x.dtype) == "float":
        return intrinsic(writer, "fabs", x)
    if kind(x.dtype) != "int":
        return x
    negative = compare(writer, "icmp slt", x, constant(0, x.dtype, x.width))
    return select(writer, negative, _negate(writer, [x]), x)


def _logical(word: str) -> Callable[[Writer, Sequence[Val]], Val]:
    return lambda writer, args: binary(writer, word, *args)


def _not(writer: Writer, args: Sequence[Val]) -> Val:
    (x,) = args
    return binary(writer, "xor", x, constant(1, "bool", x.width))


def _remainder(writer: Writer, args: Sequence[Val]) -> Val:
    return binary(writer, "frem", *args)


def _bitnot(writer: Writer, args: Sequence[Val]) -> Val:
    (x,) = args
    return binary(writer, "xor", x, constant(-1, x.dtype, x.width))


def _shift(left: bool) -> Callable[[Writer, Sequence[Val]], Val]:
    def shift(writer: Writer, args: Sequence[Val]) -> Val:
        a, b = args
        width = 8 * DTYPES[a.dtype].itemsize
        fits = compare(writer, "icmp ult", b, constant(width, b.dtype, b.width))
        if not left and kind(a.dtype) == "int":
            most = constant(width - 1, b.dtype, b.width)
            return binary(writer, "ashr", a, select(writer, fits, b, most))
        zero = constant(0, b.dtype, b.width)
        moved = binary(writer, "shl" if left else "lshr", a, select(writer, fits, b, zero))
        return select(writer, fits, moved, zero)

    return shift


def _through(name: str) -> Callable[[Writer, Val], Val]:
    return lambda writer, x: intrinsic(writer, name, x)


_SPECIAL: dict[str, Callable[[Writer, Sequence[Val]], Val]] = {
    "div": _divide,
    "max": _extreme(less=False),
    "min": _extreme(less=True),
    "neg": _negate,
    "abs": _absolute,
    "where": _where,
    "and": _logical("and"),
    "or": _logical("or"),
    "not": _not,
    "pow": power,
    "fmod": _remainder,
    "bitand": _logical("and"),
    "bitor": _logical("or"),
    "bitxor": _logical("xor"),
    "bitnot": _bitnot,
    "shl": _shift(left=True),
    "shr": _shift(left=False),
}
_FLOAT_UNARY: dict[str, Callable[[Writer, Val], Val]] = {
    "sqrt": _through("sqrt"),
    "floor": _through("floor"),
    "ceil": _through("ceil"),
    "round": _through("roundeven"),
    "exp": vmath.exp,
    "log": vmath.log,
    "erf": vmath.erf,
    "tanh": vmath.tanh,
    **{name: vmath.library(name) for name in LIBRARY},
}
