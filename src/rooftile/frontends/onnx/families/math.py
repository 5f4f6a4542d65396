"""Arithmetic, comparisons and logic, element by element."""

from __future__ import annotations

import math
from functools import reduce

import numpy as np

from rooftile.core.dtype import kind
from rooftile.frontends.onnx.call import Call
from rooftile.frontends.onnx.registry import Reader, reads
from rooftile.frontends.onnx.tensors import element_type
from rooftile.ir.graph import Array, Value

_UNARY = {
    "Neg": "neg",
    "Abs": "abs",
    "Sqrt": "sqrt",
    "Exp": "exp",
    "Log": "log",
    "Erf": "erf",
    "Tanh": "tanh",
    "Sigmoid": "logistic",
    "Not": "not",
    "IsNaN": "isnan",
    "Sin": "sin",
    "Cos": "cos",
    "Tan": "tan",
    "Asin": "asin",
    "Acos": "acos",
    "Atan": "atan",
    "Sinh": "sinh",
    "Cosh": "cosh",
    "Asinh": "asinh",
    "Acosh": "acosh",
    "Atanh": "atanh",
    "BitwiseNot": "bitnot",
}
_ROUNDING = {"Floor": "floor", "Ceil": "ceil", "Round": "round"}
_BINARY = {"Add": "add", "Sub": "sub", "Mul": "mul", "Div": "div"}
_LOGIC = {"Equal": "eq", "Less": "lt", "LessOrEqual": "le", "And": "and", "Or": "or"}
_BITWISE = {"BitwiseAnd": "bitand", "BitwiseOr": "bitor", "BitwiseXor": "bitxor"}
_REVERSED = {"Greater": "lt", "GreaterOrEqual": "le"}
_VARIADIC = {"Max": "max", "Min": "min", "Sum": "add"}


def _unary(op: str) -> Reader:
    def read(call: Call) -> Value:
        call.ignore("consumed_inputs")
        return call.emit(op, call.input(0))

    return read


def _binary(op: str, swap: bool = False) -> Reader:
    def read(call: Call) -> Value:
        a, b = call.input(0), call.input(1)
        if call.opset < 7:
            a, b = _old_broadcast(call, a, b)
        return call.elementwise(op, b, a) if swap else call.elementwise(op, a, b)

    return read


def _old_broadcast(call: Call, a: Value, b: Value) -> tuple[Value, Value]:
    """Before opset 7 the second operand broadcasts only where asked, from `axis` on."""
    call.ignore("consumed_inputs")
    if not call.integer("broadcast", 0):
        if a.shape != b.shape:
            call.invalid(f"shapes {list(a.shape)} and {list(b.shape)} differ without broadcast=1")
        call.ignore("axis")
        return a, b
    axis = call.integer("axis", a.rank - b.rank)
    axis += a.rank if axis < 0 else 0
    if not 0 <= axis <= a.rank - b.rank:  # a scalar may stand behind the last dim
        call.invalid(f"axis {axis} does not place {list(b.shape)} within {list(a.shape)}")
    return a, call.reshape(b, b.dims + (1,) * (a.rank - axis - b.rank))


def _all(call: Call, op: str) -> Value:
    call.ignore("consumed_inputs")
    return reduce(lambda a, b: call.elementwise(op, a, b), call.every())


def _variadic(op: str) -> Reader:
    return lambda call: _all(call, op)


for _name, _op in _UNARY.items():
    reads(_name)(_unary(_op))
for _name, _op in _ROUNDING.items():
    reads(_name)(_unary(_op))
for _name, _op in (_BINARY | _LOGIC | _BITWISE).items():
    reads(_name)(_binary(_op))
for _name, _op in _REVERSED.items():
    reads(_name)(_binary(_op, swap=True))
for _name, _op in _VARIADIC.items():
    reads(_name)(_variadic(_op))


@reads("Mean")
def mean(call: Call) -> Value:
    """The sum of all inputs divided by their number."""
    return call.elementwise("div", _all(call, "add"), len(call.inputs))


@reads("Xor")
def xor(call: Call) -> Value:
    """True where the inputs differ."""
    return call.emit("not", call.elementwise("eq", call.input(0), call.input(1)))


@reads("Reciprocal")
def reciprocal(call: Call) -> Value:
    """1 / x."""
    call.ignore("consumed_inputs")
    return call.elementwise("div", 1, call.input(0))


@reads("Sign")
def sign(call: Call) -> Value:
    """-1, 0 or 1; NaN stays NaN."""
    x = call.input(0)
    positive = call.cast(call.elementwise("lt", 0, x), x.dtype)
    if kind(x.dtype) == "uint":
        return positive
    found = call.elementwise("sub", positive, call.cast(call.elementwise("lt", x, 0), x.dtype))
    if kind(x.dtype) != "float":
        return found
    return call.elementwise("where", call.emit("isnan", x), x, found)


@reads("IsInf")
def is_inf(call: Call) -> Value:
    """Where x is infinite, of either sign or of the sign asked for."""
    x = call.input(0)
    negative, positive = call.integer("detect_negative", 1), call.integer("detect_positive", 1)
    if negative and positive:
        return call.elementwise("eq", call.emit("abs", x), math.inf)
    if negative or positive:
        return call.elementwise("eq", x, math.inf if positive else -math.inf)
    return call.broadcast(call.constant(np.zeros((1,) * x.rank), "bool"), x.dims)


@reads("BitShift")
def bit_shift(call: Call) -> Value:
    """Bits moved LEFT or RIGHT; by the width of the type or more, none remains."""
    direction = call.text("direction")
    if direction not in ("LEFT", "RIGHT"):
        call.invalid(f"direction must be LEFT or RIGHT, not {direction!r}")
    op = "shl" if direction == "LEFT" else "shr"
    return call.elementwise(op, call.input(0), call.input(1))


@reads("BitCast")
def bit_cast(call: Call) -> Value:
    """The same bits as another type of equal size."""
    x, dtype = call.input(0), element_type(call.integer("to"), call.where)
    if "bool" in (x.dtype, dtype) and {x.dtype, dtype} <= {"bool", "u8", "i8"}:
        return call.cast(x, dtype)
    return x if x.dtype == dtype else call.emit("bitcast", x, dtype=dtype, source=x.dtype)


@reads("Mod")
def mod(call: Call) -> Value:
    """The rest of the division, with the sign of the divisor, or of the dividend for fmod=1."""
    a, b = call.input(0), call.input(1)
    fmod = call.integer("fmod", 0)
    if kind(a.dtype) == "float":
        rest = call.elementwise("fmod", a, b)
        return rest if fmod else _floor_mod(call, rest, b)
    rest = call.elementwise("sub", a, call.elementwise("mul", call.elementwise("div", a, b), b))
    if fmod or kind(a.dtype) == "uint":
        return rest
    below = call.elementwise("lt", rest, 0), call.elementwise("lt", b, 0)
    differ = call.emit("not", call.elementwise("eq", *below))
    other = call.elementwise("and", differ, call.emit("not", call.elementwise("eq", rest, 0)))
    return call.elementwise("where", other, call.elementwise("add", rest, b), rest)


def _floor_mod(call: Call, rest: Value, b: Value) -> Value:
    """C's remainder made that of a floored division: zero, too, has the sign of the divisor."""
    negative = call.elementwise("lt", b, 0)
    differ = call.emit("not", call.elementwise("eq", call.elementwise("lt", rest, 0), negative))
    moved = call.elementwise("where", differ, call.elementwise("add", rest, b), rest)
    zero = call.elementwise("where", negative, call.constant(-0.0, b.dtype), 0.0)
    return call.elementwise("where", call.elementwise("eq", rest, 0), zero, moved)


@reads("Pow")
def power(call: Call) -> Value:
    """Constant exponents of a few common values become products, roots and quotients."""
    x, exponent = call.input(0), call.input(1)
    known = call.builder.array(exponent)
    if known is not None and known.size == 1 and exponent.rank <= x.rank:
        short = _known_power(call, x, float(known.ravel()[0]))
        if short is not None:
            return short
    # What the base cannot hold is computed in f64: a fraction as the exponent of an integer.
    wide = x.dtype if kind(exponent.dtype) != "float" or exponent.dtype == x.dtype else "f64"
    result = call.elementwise("pow", call.cast(x, wide), call.cast(exponent, wide))
    return call.cast(result, x.dtype)


def _known_power(call: Call, x: Value, exponent: float) -> Value | None:
    if exponent in (1, 2, 3, 4):
        square = call.emit("mul", x, x) if exponent > 1 else x
        return {1: x, 2: square}.get(int(exponent)) or call.emit(
            "mul", square, x if exponent == 3 else square
        )
    if kind(x.dtype) != "float":
        return None
    if exponent == 0.5:
        return call.emit("sqrt", x)
    if exponent in (-1, -2, -0.5):
        below = _known_power(call, x, -exponent)
        return None if below is None else call.elementwise("div", 1, below)
    return None


@reads("Clip")
def clip(call: Call) -> Value:
    """Bounds as attributes."""
    call.ignore("consumed_inputs")
    x = call.input(0)
    if call.has("min"):
        x = call.elementwise("max", x, call.number("min"))
    return call.elementwise("min", x, call.number("max")) if call.has("max") else x


@reads("Clip", since=11)
def clip_by_inputs(call: Call) -> Value:
    """Bounds as inputs, each optional; bounds that bound nothing are left out.

    The specification is silent on NaN as a bound: as in onnxruntime it bounds nothing.
    """
    x = call.input(0)
    for number, op, free in ((1, "max", -math.inf), (2, "min", math.inf)):
        bound = call.optional(number)
        if bound is None:
            continue
        if kind(bound.dtype) == "float":
            bound = call.elementwise("where", call.emit("isnan", bound), free, bound)
        known = call.builder.array(bound)
        if known is None or not np.all(_no_bound(known, free)):
            x = call.elementwise(op, x, bound)
    return x


def _no_bound(bound: Array, free: float) -> bool:
    if bound.dtype.kind in "iu":
        limits = np.iinfo(bound.dtype)
        return bool(np.all(bound == (limits.min if free < 0 else limits.max)))
    return bool(np.all(bound.astype(np.float64) == free))


@reads("Where")
def where(call: Call) -> Value:
    """The second input where the first is true, else the third."""
    return call.elementwise("where", call.input(0), call.input(1), call.input(2))
