"""Quantized tensors: scales and zero points applied, integer products with exact i32 sums.

A real number is (q - zero point) * scale. Rounding is to the nearest, ties to even; what does not
fit the integer type saturates.
"""

from __future__ import annotations

import math

import numpy as np

from rooftile.core.dtype import kind, to_numpy
from rooftile.frontends.onnx.call import Call
from rooftile.frontends.onnx.families.casts import narrow_cast
from rooftile.frontends.onnx.families.linear import matrix_product
from rooftile.frontends.onnx.families.nn import channels_second, convolved
from rooftile.frontends.onnx.narrow import NARROW
from rooftile.frontends.onnx.registry import reads
from rooftile.frontends.onnx.tensors import CODES, element_type, held_type
from rooftile.ir.graph import Value


def limits(call: Call, dtype: str) -> tuple[int, int]:
    """The least and the greatest value of an integer type."""
    if kind(dtype) not in ("int", "uint"):
        call.unsupported(f"quantization to {dtype}")
    info = np.iinfo(to_numpy(dtype))  # type: ignore[type-var]
    return int(info.min), int(info.max)


def spread(call: Call, parameter: Value, x: Value, axis: int, block: int = 0) -> Value:
    """A scale or zero point so that it broadcasts against x: one for all, one for each place along
    the axis, or one for each block of `block` places."""
    if math.prod(parameter.dims) == 1 and not (block and parameter.rank == x.rank):
        return call.reshape(parameter, (1,) * x.rank)
    axis = call.axis(axis, x.rank)
    if not block:
        if parameter.dims != (x.dims[axis],):
            call.invalid(
                f"scales {list(parameter.shape)} do not fit axis {axis} of {list(x.shape)}"
            )
        return call.reshape(parameter, [n if d == axis else 1 for d, n in enumerate(x.dims)])
    blocks = [-(-n // block) if d == axis else n for d, n in enumerate(x.dims)]
    if list(parameter.dims) != blocks:
        call.invalid(
            f"scales {list(parameter.shape)} do not fit blocks of {block} in {list(x.shape)}"
        )
    place = call.constant(np.arange(x.dims[axis]) // block, "i64")
    return call.emit("gather", parameter, place, axis=axis)


def saturated(
    call: Call,
    x: Value,
    scale: Value,
    zero: Value | None,
    dtype: str,
    bounds: tuple[int, int] | None = None,
) -> Value:
    """round(x / scale) + zero point in an integer type, or within bounds; all are aligned."""
    low, high = bounds or limits(call, dtype)
    rounded = call.emit("round", call.elementwise("div", x, scale))
    if zero is not None:
        rounded = call.elementwise("add", rounded, call.cast(zero, rounded.dtype))
    bounded = call.elementwise("min", call.elementwise("max", rounded, low), high)
    return call.cast(bounded, dtype)


def _wide(call: Call, x: Value) -> Value:
    return call.cast(x, "f32") if x.dtype in ("f16", "bf16") else x


@reads("QuantizeLinear")
def quantize_linear(call: Call) -> Value:
    """Floats to integers, for the whole tensor, an axis, or blocks along it."""
    x, scale, zero = call.input(0), call.input(1), call.optional(2)
    axis, block = call.integer("axis", 1), call.integer("block_size", 0)
    saturates = bool(call.integer("saturate", 1))
    code = call.integer("output_dtype", 0) or (call.code(2) if zero is not None else CODES["u8"])
    dtype = held_type(code, call.where)
    if zero is not None and zero.dtype != dtype:
        call.invalid(f"the zero point is {zero.dtype}, not {dtype}")
    precision = call.integer("precision", 0)
    divided = element_type(precision, call.where) if precision else scale.dtype
    x, scale = call.cast(x, divided), call.cast(scale, divided)
    scale = spread(call, scale, x, axis, block)
    zero = None if zero is None else spread(call, zero, x, axis, block)
    if code in NARROW:
        return _narrowed(call, _wide(call, x), _wide(call, scale), zero, code, saturates)
    return saturated(call, _wide(call, x), _wide(call, scale), zero, dtype)


def _narrowed(
    call: Call, x: Value, scale: Value, zero: Value | None, code: int, saturates: bool
) -> Value:
    """x / scale + zero point in a type that is held in a wider one."""
    narrow = NARROW[code]
    if narrow.is_float:
        divided = call.elementwise("div", x, scale)
        if zero is not None:
            divided = call.elementwise("add", divided, call.cast(zero, divided.dtype))
        return call.narrowed(narrow_cast(call, divided, code, saturates), code)
    low = -(1 << narrow.bits - 1) if narrow.wide == "i8" else 0
    found = saturated(call, x, scale, zero, narrow.wide, (low, low + (1 << narrow.bits) - 1))
    return call.narrowed(found, code)


@reads("DequantizeLinear")
def dequantize_linear(call: Call) -> Value:
    """Integers to floats: (x - zero point) * scale."""
    x, scale, zero = call.input(0), call.input(1), call.optional(2)
    axis, block = call.integer("axis", 1), call.integer("block_size", 0)
    dtype = scale.dtype
    if call.integer("output_dtype", 0):
        dtype = element_type(call.integer("output_dtype"), call.where)
    if zero is not None and zero.dtype != x.dtype:
        call.invalid(f"the zero point is {zero.dtype}, the input {x.dtype}")
    scale = spread(call, scale, x, axis, block)
    zero = None if zero is None else spread(call, zero, x, axis, block)
    return call.cast(dequantized(call, x, _wide(call, scale), zero), dtype)


def dequantized(call: Call, x: Value, scale: Value, zero: Value | None) -> Value:
    """(x - zero point) * scale in the scale's type; the parameters are aligned with x."""
    difference = shifted(call, x, zero)
    return call.elementwise("mul", call.cast(difference, scale.dtype), scale)


def shifted(call: Call, x: Value, zero: Value | None) -> Value:
    """x - zero point, exact, as i32; in f32 where x stands for a type of floats."""
    if kind(x.dtype) == "float":
        return x if zero is None else call.elementwise("sub", x, zero)
    whole = call.cast(x, "i32")
    known = None if zero is None else call.builder.array(zero)
    if zero is None or (known is not None and not known.any()):
        return whole
    return call.elementwise("sub", whole, call.cast(zero, "i32"))


@reads("DynamicQuantizeLinear")
def dynamic_quantize_linear(call: Call) -> tuple[Value, ...]:
    """u8 with the scale and zero point that the range of x, made to hold 0, gives."""
    x = call.input(0)
    quantized, scale, zero = dynamically(call, x)
    return quantized, call.reshape(scale, ()), call.reshape(zero, ())


def dynamically(call: Call, x: Value) -> tuple[Value, Value, Value]:
    """x as u8, its scale and zero point, both with all dims of 1. As in onnxruntime the scale is 1
    where all of x is 0."""
    low, high = (
        call.elementwise(op, call.emit("reduce", x, op=op, dims=tuple(range(x.rank))), 0)
        for op in ("min", "max")
    )
    scale = call.elementwise("div", call.emit("sub", high, low), 255)
    scale = call.elementwise("where", call.emit("eq", high, low), call.constant(1, x.dtype), scale)
    start = call.elementwise("sub", 0, call.emit("div", low, scale))
    bounded = call.elementwise("min", call.elementwise("max", start, 0), 255)
    zero = call.cast(call.emit("round", bounded), "u8")
    return saturated(call, x, scale, zero, "u8"), scale, zero


def rows_of(call: Call, zero: Value | None, x: Value) -> Value | None:
    """A zero point for each row of x, so that it broadcasts against x."""
    if zero is None or math.prod(zero.dims) == 1:
        return None if zero is None else call.reshape(zero, (1,) * x.rank)
    return call.reshape(zero, (*zero.dims, 1)) if zero.rank == 1 else zero


def columns_of(call: Call, zero: Value | None, x: Value) -> Value | None:
    """A zero point for each column of x, so that it broadcasts against x."""
    if zero is None or math.prod(zero.dims) == 1:
        return None if zero is None else call.reshape(zero, (1,) * x.rank)
    return zero


@reads("MatMulInteger")
def matmul_integer(call: Call) -> Value:
    """The product of 8-bit matrices less their zero points, in i32."""
    a, b = call.input(0), call.input(1)
    a = shifted(call, a, rows_of(call, call.optional(2), a))
    return matrix_product(call, a, shifted(call, b, columns_of(call, call.optional(3), b)))


@reads("ConvInteger")
def conv_integer(call: Call) -> Value:
    """The convolution of 8-bit tensors less their zero points, in i32; padding counts as zero."""
    x, w = call.input(0), call.input(1)
    x = shifted(call, x, _scalar(call, call.optional(2), x))
    return channels_second(call, convolved(call, x, shifted(call, w, _features(call, 3, w))))


def _scalar(call: Call, parameter: Value | None, x: Value) -> Value | None:
    if parameter is None:
        return None
    if math.prod(parameter.dims) != 1:
        call.invalid(f"one zero point or scale is needed, not {list(parameter.shape)}")
    return call.reshape(parameter, (1,) * x.rank)


def _features(call: Call, number: int, w: Value) -> Value | None:
    """Zero points of weights [O, ...]: one, or one for each feature."""
    zero = call.optional(number)
    return None if zero is None else spread(call, zero, w, 0)


def _requantized(call: Call, total: Value, factor: Value, zero: Value) -> Value:
    """An i32 sum times a factor, rounded and saturated into the zero point's type."""
    low, high = limits(call, zero.dtype)
    product = call.elementwise("mul", call.cast(total, "f32"), factor)
    shifted_up = call.elementwise("add", call.emit("round", product), call.cast(zero, "f32"))
    bounded = call.elementwise("min", call.elementwise("max", shifted_up, low), high)
    return call.cast(bounded, zero.dtype)


def _factor(call: Call, a: Value, b: Value, y: Value) -> Value:
    """The scale of a product over the scale of the result."""
    a, b, y = (call.cast(scale, "f32") for scale in (a, b, y))
    return call.elementwise("div", call.elementwise("mul", a, b), y)


@reads("QLinearMatMul")
def qlinear_matmul(call: Call) -> Value:
    """a [rows] times b [columns], each with scale and zero point, into those of y."""
    a, b = call.input(0), call.input(3)
    total = matrix_product(
        call,
        shifted(call, a, rows_of(call, call.input(2), a)),
        shifted(call, b, columns_of(call, call.input(5), b)),
    )
    rows, columns = rows_of(call, call.input(1), a), columns_of(call, call.input(4), b)
    assert rows is not None and columns is not None
    scale, zero = (_scalar(call, call.input(n), total) for n in (6, 7))
    assert scale is not None and zero is not None
    return _requantized(call, total, _factor(call, rows, columns, scale), zero)


@reads("QLinearConv")
def qlinear_conv(call: Call) -> Value:
    """Convolution of quantized tensors with an i32 bias, into the scale and zero point of y."""
    x, w, bias = call.input(0), call.input(3), call.optional(8)
    inner = shifted(call, x, _scalar(call, call.input(2), x))
    total = convolved(call, inner, shifted(call, w, _features(call, 5, w)))
    if bias is not None:
        total = call.elementwise("add", total, bias)
    weights = call.input(4)
    if math.prod(weights.dims) == 1:
        weights = call.reshape(weights, (1,))
    one = call.reshape(call.input(1), (1,))
    factor = _factor(call, one, weights, call.reshape(call.input(6), (1,)))
    zero = call.reshape(call.input(7), (1,))
    return channels_second(call, _requantized(call, total, factor, zero))
