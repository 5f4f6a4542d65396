"""Optimiser steps: Adagrad, Adam, Momentum. Inputs are the rate, the count of past steps, then each
kind of tensor for all parameters; outputs likewise."""

from __future__ import annotations

from collections.abc import Callable

from rooftile.frontends.onnx.call import Call
from rooftile.frontends.onnx.registry import reads
from rooftile.ir.graph import Value

DOMAIN = "ai.onnx.preview.training"
Step = Callable[[Value, Value, tuple[Value, ...]], tuple[Value, ...]]


def _for_each(call: Call, kinds: int, step: Step) -> tuple[Value, ...]:
    """`step(rate, count, tensors)` for each parameter; its results sorted by kind."""
    rate, count, *tensors = call.every()
    total, rest = divmod(len(tensors), kinds)
    if rest or not total:
        call.invalid(f"{len(tensors)} tensors are not {kinds} for each parameter")
    rate, count = call.reshape(rate, ()), call.reshape(count, ())
    results = []
    for number in range(total):
        mine = tuple(tensors[number + total * kind] for kind in range(kinds))
        dtype = mine[0].dtype
        results.append(step(call.cast(rate, dtype), call.cast(count, dtype), mine))
    return tuple(value for kind in zip(*results, strict=True) for value in kind)


def _scaled_sum(call: Call, a: Value, factor: float, b: Value) -> Value:
    """a * factor + b."""
    return b if factor == 0 else call.elementwise("add", call.elementwise("mul", a, factor), b)


def _mixed(call: Call, a: Value, share: float, b: Value) -> Value:
    """a * share + b * (1 - share)."""
    return _scaled_sum(call, a, share, call.elementwise("mul", b, 1 - share))


@reads("Adagrad", domain=DOMAIN)
def adagrad(call: Call) -> tuple[Value, ...]:
    """The rate falls with the count and with the squares of past gradients."""
    decay, epsilon = call.number("decay_factor", 0.0), call.number("epsilon", 1e-6)
    norm = call.number("norm_coefficient", 0.0)

    def step(rate: Value, count: Value, tensors: tuple[Value, ...]) -> tuple[Value, ...]:
        x, gradient, squares = tensors
        slower = _scaled_sum(call, count, decay, call.constant(1, x.dtype))
        rate = call.elementwise("div", rate, slower)
        gradient = _scaled_sum(call, x, norm, gradient)
        squares = call.emit("add", squares, call.emit("mul", gradient, gradient))
        scale = call.elementwise("add", call.emit("sqrt", squares), epsilon)
        move = call.elementwise("div", call.elementwise("mul", rate, gradient), scale)
        return call.emit("sub", x, move), squares

    return _for_each(call, 3, step)


@reads("Adam", domain=DOMAIN)
def adam(call: Call) -> tuple[Value, ...]:
    """Means of gradients and of their squares, corrected for the first steps."""
    alpha, beta = call.number("alpha", 0.9), call.number("beta", 0.999)
    epsilon = call.number("epsilon", 1e-6)
    norm, after = call.number("norm_coefficient", 0.0), call.number("norm_coefficient_post", 0.0)

    def step(rate: Value, count: Value, tensors: tuple[Value, ...]) -> tuple[Value, ...]:
        x, gradient, mean, square = tensors
        gradient = _scaled_sum(call, x, norm, gradient)
        mean = _mixed(call, mean, alpha, gradient)
        square = _mixed(call, square, beta, call.emit("mul", gradient, gradient))
        scale = call.elementwise("add", call.emit("sqrt", square), epsilon)
        left = [
            call.elementwise("sub", 1, call.elementwise("pow", share, count))
            for share in (beta, alpha)
        ]
        later = call.emit("div", call.emit("mul", rate, call.emit("sqrt", left[0])), left[1])
        begun = call.elementwise("lt", 0, count)
        rate = call.elementwise("where", begun, later, rate)
        moved = call.emit("sub", x, call.elementwise("mul", rate, call.emit("div", mean, scale)))
        if after:
            moved = call.elementwise("mul", moved, 1 - after)
        return moved, mean, square

    return _for_each(call, 4, step)


@reads("Momentum", domain=DOMAIN)
def momentum(call: Call) -> tuple[Value, ...]:
    """A running mean of gradients, as it stands or with Nesterov's look ahead."""
    alpha, beta, mode = call.number("alpha"), call.number("beta"), call.text("mode")
    norm = call.number("norm_coefficient")
    if mode not in ("standard", "nesterov"):
        call.invalid(f"mode must be standard or nesterov, not {mode!r}")

    def step(rate: Value, count: Value, tensors: tuple[Value, ...]) -> tuple[Value, ...]:
        x, gradient, mean = tensors
        gradient = _scaled_sum(call, x, norm, gradient)
        share = call.elementwise(
            "where", call.elementwise("lt", 0, count), call.constant(beta, x.dtype), 1.0
        )
        mean = _scaled_sum(call, mean, alpha, call.elementwise("mul", gradient, share))
        move = _scaled_sum(call, mean, alpha, gradient) if mode == "nesterov" else mean
        return call.emit("sub", x, call.elementwise("mul", rate, move)), mean

    return _for_each(call, 3, step)
