"""com.microsoft's quantized ops: each computes on real numbers, and rounds its result once."""

from __future__ import annotations

import math
from collections.abc import Callable

from rooftile.frontends.onnx.call import Call
from rooftile.frontends.onnx.families.linear import matrix_product
from rooftile.frontends.onnx.families.quantize import (
    columns_of,
    dequantize_linear,
    dequantized,
    dynamically,
    quantize_linear,
    rows_of,
    saturated,
    shifted,
)
from rooftile.frontends.onnx.registry import Reader, reads
from rooftile.ir.graph import Value

DOMAIN = "com.microsoft"
reads("QuantizeLinear", domain=DOMAIN)(quantize_linear)
reads("DequantizeLinear", domain=DOMAIN)(dequantize_linear)


def _real(call: Call, first: int) -> Value:
    """Inputs `first` on as real numbers: a tensor, its scale, and its zero point if it has one."""
    x = call.input(first)
    scale = _one(call, call.input(first + 1), x.rank)
    zero = call.optional(first + 2)
    return dequantized(call, x, scale, None if zero is None else _one(call, zero, x.rank))


def _one(call: Call, parameter: Value, rank: int) -> Value:
    if math.prod(parameter.dims) != 1:
        call.invalid(f"one scale or zero point is needed, not {list(parameter.shape)}")
    return call.reshape(parameter, (1,) * rank)


def _rounded(call: Call, x: Value, first: int) -> Value:
    """Real numbers in the scale and zero point that are inputs `first` and the next; without a
    zero point it is 0, of the type of the first input that is no scale."""
    scale, zero = call.input(first), call.optional(first + 1)
    if zero is None:
        return saturated(call, x, _one(call, scale, x.rank), None, call.input(0).dtype)
    aligned = _one(call, zero, x.rank)
    return saturated(call, x, _one(call, scale, x.rank), aligned, zero.dtype)


def _binary(op: str) -> Reader:
    def read(call: Call) -> Value:
        return _rounded(call, call.elementwise(op, _real(call, 0), _real(call, 3)), 6)

    return read


def _unary(compute: Callable[[Call, Value], Value]) -> Reader:
    return lambda call: _rounded(call, compute(call, _real(call, 0)), 3)


def _leaky(call: Call, x: Value) -> Value:
    low = call.elementwise("mul", x, call.number("alpha", 0.01))
    return call.elementwise("where", call.elementwise("lt", x, 0), low, x)


def _mean(call: Call, x: Value) -> Value:
    """The mean over all spatial dims, which stay with size 1."""
    last = bool(call.integer("channels_last", 0))
    dims = tuple(range(1, x.rank - 1) if last else range(2, x.rank))
    total = call.emit("reduce", x, op="sum", dims=dims)
    return call.elementwise("div", total, math.prod(x.dims[dim] for dim in dims))


reads("QLinearAdd", domain=DOMAIN)(_binary("add"))
reads("QLinearMul", domain=DOMAIN)(_binary("mul"))
reads("QLinearSigmoid", domain=DOMAIN)(_unary(lambda call, x: call.emit("logistic", x)))
reads("QLinearLeakyRelu", domain=DOMAIN)(_unary(_leaky))
reads("QLinearGlobalAveragePool", domain=DOMAIN)(_unary(_mean))


@reads("QLinearConcat", domain=DOMAIN)
def qlinear_concat(call: Call) -> Value:
    """Scale and zero point of the result, then tensors with theirs, joined along an axis."""
    count, rest = divmod(len(call.inputs) - 2, 3)
    if rest or count < 1:
        call.invalid(f"{len(call.inputs)} inputs are not two and three for each tensor")
    scale, zero = call.input(0), call.input(1)
    parts = []
    for number in range(count):
        x = _real(call, 2 + 3 * number)
        aligned = _one(call, scale, x.rank), _one(call, zero, x.rank)
        parts.append(saturated(call, x, *aligned, zero.dtype))
    axis = call.axis(call.integer("axis"), parts[0].rank)
    return parts[0] if count == 1 else call.emit("concat", *parts, axis=axis)


def _product(call: Call, a: Value, b: Value, scale: Value, bias: Value | None) -> Value:
    """An exact product of i32 matrices times a scale, plus a bias."""
    total = call.cast(matrix_product(call, a, b), scale.dtype)
    result = call.elementwise("mul", total, scale)
    return result if bias is None else call.elementwise("add", result, bias)


@reads("MatMulIntegerToFloat", domain=DOMAIN)
def matmul_integer_to_float(call: Call) -> Value:
    """The product of 8-bit matrices as floats: inputs A, B, their scales, zero points, a bias."""
    a, b = call.input(0), call.input(1)
    rows, columns = rows_of(call, call.input(2), a), columns_of(call, call.input(3), b)
    assert rows is not None and columns is not None
    return _product(
        call,
        shifted(call, a, rows_of(call, call.optional(4), a)),
        shifted(call, b, columns_of(call, call.optional(5), b)),
        call.elementwise("mul", rows, columns),
        call.optional(6),
    )


@reads("DynamicQuantizeMatMul", domain=DOMAIN)
def dynamic_quantize_matmul(call: Call) -> Value:
    """The same of a matrix of floats, quantized by its own range: A, B, B's scale and zero point,
    a bias."""
    a, b = call.input(0), call.input(1)
    quantized, own, zero = dynamically(call, a)
    columns = columns_of(call, call.input(2), b)
    assert columns is not None
    return _product(
        call,
        shifted(call, quantized, zero),
        shifted(call, b, columns_of(call, call.optional(3), b)),
        call.elementwise("mul", own, columns),
        call.optional(4),
    )
