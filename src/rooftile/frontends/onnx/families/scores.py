"""What the models of ai.onnx.ml do to their scores at the end."""

from __future__ import annotations

import math

import numpy as np

from rooftile.frontends.onnx.call import Call
from rooftile.ir.graph import Value

TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")
_NEARLY_ZERO = 1e-7
_PROBIT_A = 0.147
"""The constant of Winitzki's formula for the inverse of erf, which onnxruntime uses too."""


def transformed(call: Call, scores: Value, transform: str) -> Value:
    """Scores [batch, classes] after one of TRANSFORMS."""
    if transform == "SOFTMAX":
        return _softmax(call, scores)
    if transform == "SOFTMAX_ZERO":
        return _softmax_zero(call, scores)
    if transform == "LOGISTIC":
        return call.emit("logistic", scores)
    if transform == "PROBIT":
        return _probit(call, scores)
    if transform != "NONE":
        call.invalid(f"post_transform must be one of {', '.join(TRANSFORMS)}, not {transform!r}")
    return scores


def labels(call: Call, name: str = "classlabels_int64s") -> Value:
    """The labels of the classes, integers."""
    if call.has("classlabels_strings") and call.texts("classlabels_strings"):
        call.on_host("its labels are strings")
    found = call.ints(name, ())
    if not found:
        call.invalid(f"attribute {name} holds no labels")
    return call.constant(np.array(found, np.int64), "i64")


def label_of(call: Call, names: Value, number: Value) -> Value:
    """The label of the class with each number: [batch]."""
    return call.emit("gather", names, number, axis=0)


def _softmax(call: Call, scores: Value) -> Value:
    top = call.emit("reduce", scores, op="max", dims=(1,))
    powers = call.emit("exp", call.elementwise("sub", scores, top))
    return call.elementwise("div", powers, call.emit("reduce", powers, op="sum", dims=(1,)))


def _softmax_zero(call: Call, scores: Value) -> Value:
    """Softmax over the scores that are not zero; zeros stay."""
    top = call.emit("reduce", scores, op="max", dims=(1,))
    powers = call.emit("exp", call.elementwise("sub", scores, top))
    zero = call.elementwise("le", call.emit("abs", scores), _NEARLY_ZERO)
    scaled = call.elementwise("mul", scores, call.emit("exp", call.emit("neg", top)))
    powers = call.elementwise("where", zero, scaled, powers)
    return call.elementwise("div", powers, call.emit("reduce", powers, op="sum", dims=(1,)))


def _probit(call: Call, scores: Value) -> Value:
    """sqrt(2) * erfinv(2 p - 1)."""
    x = call.elementwise("sub", call.elementwise("mul", scores, 2), 1)
    inside = call.elementwise("sub", 1, x)
    log = call.emit("log", call.elementwise("mul", inside, call.elementwise("add", x, 1)))
    middle = call.elementwise("add", call.elementwise("mul", log, 0.5), 2 / (math.pi * _PROBIT_A))
    square = call.elementwise("mul", middle, middle)
    under = call.elementwise("sub", square, call.elementwise("div", log, _PROBIT_A))
    root = call.elementwise("sub", call.emit("sqrt", under), middle)
    size = call.elementwise("mul", call.emit("sqrt", root), math.sqrt(2))
    return call.elementwise("where", call.elementwise("lt", x, 0), call.emit("neg", size), size)
