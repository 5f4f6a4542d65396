"""Activation functions, written out in canonical ops."""

from __future__ import annotations

import math

from rooftile.frontends.onnx.call import Call
from rooftile.frontends.onnx.registry import reads
from rooftile.ir.graph import Value


@reads("Relu")
def relu(call: Call) -> Value:
    """max(x, 0)."""
    call.ignore("consumed_inputs")
    return call.elementwise("max", call.input(0), 0)


@reads("LeakyRelu")
def leaky_relu(call: Call) -> Value:
    """x, times alpha where it is negative."""
    call.ignore("consumed_inputs")
    return leaky_relu_of(call, call.input(0), call.number("alpha", 0.01))


@reads("PRelu")
def prelu(call: Call) -> Value:
    """x, times a slope for each channel where it is negative."""
    call.ignore("consumed_inputs")
    x, slope = call.input(0), call.input(1)
    if call.opset < 7 and slope.rank == 1:
        slope = call.reshape(slope, slope.dims + (1,) * (x.rank - 2))
    return _choose(call, x, call.elementwise("mul", x, slope))


@reads("ThresholdedRelu")
def thresholded_relu(call: Call) -> Value:
    """x where it is above alpha, else 0."""
    return thresholded_relu_of(call, call.input(0), call.number("alpha", 1.0))


@reads("Elu")
def elu(call: Call) -> Value:
    """alpha * (exp(x) - 1) where x is negative; exp never sees a positive argument."""
    call.ignore("consumed_inputs")
    return elu_of(call, call.input(0), call.number("alpha", 1.0))


@reads("Celu")
def celu(call: Call) -> Value:
    """alpha * (exp(x / alpha) - 1) where x is negative."""
    x, alpha = call.input(0), call.number("alpha", 1.0)
    scaled = _exp_minus_one(call, call.elementwise("div", x, alpha))
    return _choose(call, x, call.elementwise("mul", scaled, alpha))


@reads("Selu")
def selu(call: Call) -> Value:
    """gamma * elu(x)."""
    call.ignore("consumed_inputs")
    alpha = call.number("alpha", 1.67326319217681884765625)
    gamma = call.number("gamma", 1.05070102214813232421875)
    return call.elementwise("mul", elu_of(call, call.input(0), alpha), gamma)


@reads("Softplus")
def softplus(call: Call) -> Value:
    """log(1 + exp(x)), written so that exp cannot overflow."""
    return soft_plus_of(call, call.input(0))


@reads("Softsign")
def softsign(call: Call) -> Value:
    """x / (1 + |x|)."""
    return soft_sign_of(call, call.input(0))


@reads("Mish")
def mish(call: Call) -> Value:
    """x * tanh(softplus(x)).

    tanh(log(1 + u)) is n / (n + 2) with n = u * (u + 2): nothing cancels for small u = exp(x), and
    with powers of exp(-x) for positive x nothing overflows.
    """
    x = call.input(0)
    small = call.emit("exp", call.emit("neg", call.emit("abs", x)))
    negative = call.elementwise("lt", x, 0)
    below = call.elementwise("mul", small, call.elementwise("add", small, 2))
    above = call.elementwise("add", call.elementwise("mul", small, 2), 1)
    over = call.elementwise("where", negative, below, above)
    twice = call.elementwise("mul", call.elementwise("mul", small, small), 2)
    rest = call.elementwise("where", negative, call.constant(2, x.dtype), twice)
    return call.elementwise("mul", x, call.emit("div", over, call.elementwise("add", over, rest)))


@reads("HardSigmoid")
def hard_sigmoid(call: Call) -> Value:
    """alpha * x + beta within 0 and 1."""
    call.ignore("consumed_inputs")
    return hard_sigmoid_of(call, call.input(0), call.number("alpha", 0.2), call.number("beta", 0.5))


@reads("HardSwish")
def hard_swish(call: Call) -> Value:
    """x * hardsigmoid(x) with alpha 1/6 and beta 1/2."""
    x = call.input(0)
    return call.elementwise("mul", x, hard_sigmoid_of(call, x, 1 / 6, 0.5))


@reads("Swish")
def swish(call: Call) -> Value:
    """x * sigmoid(alpha * x)."""
    x, alpha = call.input(0), call.number("alpha", 1.0)
    inner = x if alpha == 1 else call.elementwise("mul", x, alpha)
    return call.elementwise("mul", x, call.emit("logistic", inner))


@reads("Gelu")
@reads("Gelu", domain="com.microsoft")
def gelu(call: Call) -> Value:
    """x/2 * (1 + erf(x / sqrt 2)), or its tanh approximation where the model asks for it."""
    return gelu_of(call, call.input(0), call.text("approximate", "none"))


def gelu_of(call: Call, x: Value, form: str) -> Value:
    """Gelu of a value, in the exact form ("none") or the approximate one ("tanh")."""
    if form == "none":
        inner = call.emit("erf", call.elementwise("mul", x, 1 / math.sqrt(2)))
    elif form == "tanh":
        cube = call.elementwise("mul", x, call.elementwise("mul", x, x))
        inner = call.elementwise("add", x, call.elementwise("mul", cube, 0.044715))
        inner = call.emit("tanh", call.elementwise("mul", inner, math.sqrt(2 / math.pi)))
    else:
        call.invalid(f"approximate must be 'none' or 'tanh', not {form!r}")
    half = call.elementwise("mul", x, 0.5)
    return call.elementwise("mul", half, call.elementwise("add", inner, 1))


def _choose(call: Call, x: Value, negative: Value) -> Value:
    """`negative` where x is below zero, else x."""
    return call.elementwise("where", call.elementwise("lt", x, 0), negative, x)


def _exp_minus_one(call: Call, x: Value) -> Value:
    decay = call.emit("exp", call.elementwise("min", x, 0))
    return call.elementwise("sub", decay, 1)


def leaky_relu_of(call: Call, x: Value, alpha: float) -> Value:
    """x, times alpha where it is negative."""
    return _choose(call, x, call.elementwise("mul", x, alpha))


def thresholded_relu_of(call: Call, x: Value, alpha: float) -> Value:
    """x where it is above alpha, else 0."""
    return call.elementwise("where", call.elementwise("lt", alpha, x), x, 0)


def soft_sign_of(call: Call, x: Value) -> Value:
    """x / (1 + |x|)."""
    return call.elementwise("div", x, call.elementwise("add", call.emit("abs", x), 1))


def elu_of(call: Call, x: Value, alpha: float) -> Value:
    """x, or alpha * (exp(x) - 1) where it is negative."""
    negative = _exp_minus_one(call, x)
    if alpha != 1:
        negative = call.elementwise("mul", negative, alpha)
    return _choose(call, x, negative)


def soft_plus_of(call: Call, x: Value) -> Value:
    """log(1 + exp(x)), written so that exp cannot overflow."""
    decay = call.emit("exp", call.emit("neg", call.emit("abs", x)))
    tail = call.emit("log", call.elementwise("add", decay, 1))
    return call.elementwise("add", call.elementwise("max", x, 0), tail)


def hard_sigmoid_of(call: Call, x: Value, alpha: float, beta: float) -> Value:
    """alpha * x + beta within 0 and 1."""
    line = call.elementwise("add", call.elementwise("mul", x, alpha), beta)
    return call.elementwise("min", call.elementwise("max", line, 0), 1)
