"""The activation functions that recurrent nodes name in attributes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from rooftile.frontends.onnx.call import Call
from rooftile.frontends.onnx.families import activation
from rooftile.ir.graph import Value

Activation = Callable[[Call, Value], Value]
_Form = Callable[[Call, Value, float, float], Value]


@dataclass(frozen=True)
class _Function:
    """How a function is computed, and the defaults of the parameters that it takes."""

    form: _Form
    alpha: float | None = None
    beta: float | None = None


def activations(
    call: Call, defaults: Sequence[str], directions: int
) -> list[tuple[Activation, ...]]:
    """The functions of each direction; alphas and betas go to those that take one, in order."""
    count = len(defaults)
    names = list(call.texts("activations", list(defaults) * directions))
    if len(names) != count * directions:
        call.invalid(f"{len(names)} activations are given, {count * directions} are needed")
    alphas = iter(call.floats("activation_alpha", ()))
    betas = iter(call.floats("activation_beta", ()))
    found = [_chosen(call, name, alphas, betas) for name in names]
    return [tuple(found[start : start + count]) for start in range(0, len(found), count)]


def _chosen(call: Call, name: str, alphas: Iterator[float], betas: Iterator[float]) -> Activation:
    function = _FUNCTIONS.get(name.lower())
    if function is None:
        call.unsupported(f"activation {name!r}")
    alpha = 0.0 if function.alpha is None else next(alphas, function.alpha)
    beta = 0.0 if function.beta is None else next(betas, function.beta)
    return lambda call, value: function.form(call, value, alpha, beta)


def _plain(op: str) -> _Form:
    return lambda call, x, alpha, beta: call.emit(op, x)


def _affine(call: Call, x: Value, alpha: float, beta: float) -> Value:
    return call.elementwise("add", call.elementwise("mul", x, alpha), beta)


def _scaled_tanh(call: Call, x: Value, alpha: float, beta: float) -> Value:
    inner = call.emit("tanh", call.elementwise("mul", x, beta))
    return call.elementwise("mul", inner, alpha)


_FUNCTIONS = {
    "relu": _Function(lambda call, x, alpha, beta: call.elementwise("max", x, 0)),
    "tanh": _Function(_plain("tanh")),
    "sigmoid": _Function(_plain("logistic")),
    "softsign": _Function(lambda call, x, alpha, beta: activation.soft_sign_of(call, x)),
    "softplus": _Function(lambda call, x, alpha, beta: activation.soft_plus_of(call, x)),
    "elu": _Function(lambda call, x, alpha, beta: activation.elu_of(call, x, alpha), 1.0),
    "leakyrelu": _Function(
        lambda call, x, alpha, beta: activation.leaky_relu_of(call, x, alpha), 0.01
    ),
    "thresholdedrelu": _Function(
        lambda call, x, alpha, beta: activation.thresholded_relu_of(call, x, alpha), 1.0
    ),
    "hardsigmoid": _Function(activation.hard_sigmoid_of, 0.2, 0.5),
    "affine": _Function(_affine, 1.0, 0.0),
    "scaledtanh": _Function(_scaled_tanh, 1.0, 1.0),
}
