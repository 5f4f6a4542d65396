"""Conversions between element types, also to and from those that are held in wider ones."""

from __future__ import annotations

import numpy as np

from rooftile.core.dtype import kind
from rooftile.frontends.onnx.call import Call
from rooftile.frontends.onnx.narrow import NARROW, Narrow
from rooftile.frontends.onnx.registry import reads
from rooftile.frontends.onnx.tensors import element_type
from rooftile.ir.graph import Value

_E8M0 = 24


@reads("Cast")
def cast(call: Call) -> Value:
    """Conversion to another element type."""
    return _cast(call, call.integer("to"))


@reads("CastLike")
def cast_like(call: Call) -> Value:
    """Conversion to the element type of the second input."""
    return _cast(call, call.code(1))


def _cast(call: Call, code: int) -> Value:
    saturates, mode = bool(call.integer("saturate", 1)), call.text("round_mode", "up")
    x = call.input(0)
    if code not in NARROW:
        dtype = element_type(code, call.where)
        return call.cast(call.held(x), dtype)
    if code == call.code(0):
        return x
    return call.narrowed(narrow_cast(call, call.held(x), code, saturates, mode), code)


def narrow_cast(call: Call, x: Value, code: int, saturates: bool = True, mode: str = "up") -> Value:
    """The values that `x` has in a narrow type, held in its wider one."""
    narrow = NARROW[code]
    if not narrow.is_float:
        return _integer(call, x, narrow)
    x = call.cast(x, "f32")
    if code == _E8M0:
        return _power_of_two(call, x, saturates, mode)
    return rounded(call, x, narrow, saturates)


def _integer(call: Call, x: Value, narrow: Narrow) -> Value:
    """Truncated to an integer, of which the lowest bits remain."""
    whole = call.cast(x, "i32" if kind(x.dtype) in ("float", "bool") else x.dtype)
    low = call.elementwise("bitand", whole, (1 << narrow.bits) - 1)
    if narrow.wide == "u8":
        return call.cast(low, "u8")
    top = 1 << (narrow.bits - 1)
    low = call.cast(low, "i8")
    return call.elementwise("sub", call.elementwise("bitxor", low, top), top)


def rounded(call: Call, x: Value, narrow: Narrow, saturates: bool) -> Value:
    """An f32 rounded to the nearest number of a narrow float type, ties to even."""
    largest = narrow.largest
    if saturates:
        x = call.elementwise("min", call.elementwise("max", x, -largest), largest)
    # The distance of neighbours at x: its power of two less the mantissa, or that of subnormals.
    power = _power(call, x)
    power = call.elementwise("max", power, 2.0**narrow.least)
    step = call.elementwise("mul", power, 2.0**-narrow.mantissa)
    found = call.elementwise("mul", call.emit("round", call.elementwise("div", x, step)), step)
    if not saturates:
        over = call.elementwise("le", call.elementwise("abs", found), largest)
        beyond = call.elementwise("mul", x, np.inf if narrow.infinite else np.nan)
        found = call.elementwise("where", over, found, beyond)
    if not narrow.zero:
        found = call.elementwise("where", call.elementwise("eq", found, 0), 0.0, found)
    return found


def _power(call: Call, x: Value) -> Value:
    """The largest power of two that is not above |x|; 0 for subnormal numbers."""
    bits = call.emit("bitcast", x, dtype="i32", source="f32")
    exponent = call.elementwise("bitand", bits, 0x7F800000)
    return call.emit("bitcast", exponent, dtype="f32", source="i32")


def _power_of_two(call: Call, x: Value, saturates: bool, mode: str) -> Value:
    """float8e8m0: powers of two, by the exponent of |x|; what is not finite becomes NaN."""
    if mode not in ("up", "down", "nearest"):
        call.invalid(f"round_mode {mode!r} is not up, down or nearest")
    bits = call.emit("bitcast", x, dtype="i32", source="f32")
    exponent = call.elementwise("bitand", call.elementwise("shr", bits, 23), 0xFF)
    rest = call.elementwise("bitand", bits, 0x7FFFFF)
    if mode != "down":
        above = call.elementwise("lt", 0 if mode == "up" else 0x3FFFFF, rest)
        if mode == "nearest":  # ties go up, except from the least exponent
            tie = call.elementwise("eq", rest, 0x400000)
            least = call.elementwise("eq", exponent, 0)
            above = call.elementwise("and", above, call.emit("not", _and(call, tie, least)))
        grown = call.elementwise("add", exponent, call.cast(above, "i32"))
        exponent = call.elementwise(
            "where", call.elementwise("lt", exponent, 0xFF), grown, exponent
        )
        if saturates:
            finite = call.elementwise(
                "eq", call.elementwise("bitand", call.elementwise("shr", bits, 23), 0xFF), 0xFE
            )
            exponent = call.elementwise("where", finite, 0xFE, exponent)
    smallest = call.elementwise("eq", exponent, 0)
    number = call.emit("bitcast", call.elementwise("shl", exponent, 23), dtype="f32", source="i32")
    number = call.elementwise("where", smallest, 2.0**-127, number)
    return call.elementwise("where", call.elementwise("lt", exponent, 0xFF), number, np.nan)


def _and(call: Call, a: Value, b: Value) -> Value:
    return call.elementwise("and", a, b)
