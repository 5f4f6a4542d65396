"""Fused layers of onnxruntime's own domain, as its optimizer writes them, taken apart again."""

from __future__ import annotations

import math

from rooftile.frontends.onnx.call import Call
from rooftile.frontends.onnx.families.activation import gelu_of
from rooftile.frontends.onnx.families.linear import gemm_of, matrix_product
from rooftile.frontends.onnx.families.nn import channels_second, convolved
from rooftile.frontends.onnx.families.norm import normalized, root_mean_square, softmax_of
from rooftile.frontends.onnx.registry import reads
from rooftile.ir.graph import Value

MICROSOFT = "com.microsoft"


@reads("FusedMatMul", domain=MICROSOFT)
def fused_matmul(call: Call) -> Value:
    """alpha * A B, the last two dims of each transposed where asked."""
    a, b = call.input(0), call.input(1)
    if call.integer("transBatchA", 0) or call.integer("transBatchB", 0):
        call.unsupported("transBatchA or transBatchB")
    a = _turned(call, a) if call.integer("transA", 0) else a
    b = _turned(call, b) if call.integer("transB", 0) else b
    alpha = call.number("alpha", 1.0)
    result = matrix_product(call, a, b)
    return result if alpha == 1 else call.elementwise("mul", result, alpha)


def _turned(call: Call, x: Value) -> Value:
    if x.rank < 2:
        return x
    return call.transpose(x, (*range(x.rank - 2), x.rank - 1, x.rank - 2))


@reads("FusedGemm", domain=MICROSOFT)
def fused_gemm(call: Call) -> Value:
    """Gemm and an activation behind it."""
    names = ("activation_alpha", "activation_beta")
    given = [call.number(name) for name in names if call.has(name)]
    call.ignore("activation_gamma")
    return _activated(call, gemm_of(call), given)


@reads("FusedConv", domain=MICROSOFT)
def fused_conv(call: Call) -> Value:
    """Conv, a bias, a sum that is added, and an activation behind them."""
    result = convolved(call, call.input(0), call.input(1))
    if (bias := call.optional(2)) is not None:
        result = call.elementwise("add", result, bias)
    result = channels_second(call, result)
    if (other := call.optional(3)) is not None:
        result = call.elementwise("add", result, other)
    return _activated(call, result, list(call.floats("activation_params", ())))


def _activated(call: Call, x: Value, given: list[float]) -> Value:
    """The activation that the attributes name; `given` are its parameters."""
    word = call.text("activation", "")
    if word in ("", "Relu"):
        return call.elementwise("max", x, 0) if word else x
    if word in ("Tanh", "Sigmoid"):
        return call.emit({"Tanh": "tanh", "Sigmoid": "logistic"}[word], x)
    if word == "LeakyRelu":
        scaled = call.elementwise("mul", x, given[0] if given else 0.01)
        return call.elementwise("where", call.elementwise("lt", x, 0), scaled, x)
    if word in ("Clip", "HardSigmoid") and len(given) == 2:
        low, high = given if word == "Clip" else (0.0, 1.0)
        if word == "HardSigmoid":
            x = call.elementwise("add", call.elementwise("mul", x, given[0]), given[1])
        return call.elementwise("min", call.elementwise("max", x, low), high)
    return call.unsupported(f"activation {word!r} with {len(given)} parameters")


@reads("BiasGelu", domain=MICROSOFT)
def bias_gelu(call: Call) -> Value:
    """Gelu of a sum."""
    return gelu_of(call, call.elementwise("add", call.input(0), call.input(1)), "none")


@reads("FastGelu", domain=MICROSOFT)
def fast_gelu(call: Call) -> Value:
    """Gelu's tanh approximation, of a sum where a bias is given."""
    x, bias = call.input(0), call.optional(1)
    return gelu_of(call, x if bias is None else call.elementwise("add", x, bias), "tanh")


@reads("QuickGelu", domain=MICROSOFT)
def quick_gelu(call: Call) -> Value:
    """x * sigmoid(alpha * x)."""
    x, alpha = call.input(0), call.number("alpha", 1.702)
    return call.elementwise("mul", x, call.emit("logistic", call.elementwise("mul", x, alpha)))


@reads("SkipLayerNormalization", domain=MICROSOFT)
def skip_layer_normalization(call: Call) -> tuple[Value, ...]:
    """LayerNormalization of a sum; also gives the mean, 1 / deviation and the sum."""
    total = _with_skip(call, call.optional(4))
    epsilon = call.number("epsilon", 1e-5)
    normal, mean, inverse = normalized(call, total, [total.rank - 1], epsilon)
    result = call.elementwise("mul", normal, call.input(2))
    if (beta := call.optional(3)) is not None:
        result = call.elementwise("add", result, beta)
    return result, mean, inverse, total


@reads("SkipSimplifiedLayerNormalization", domain=MICROSOFT)
def skip_rms_normalization(call: Call) -> tuple[Value, ...]:
    """RMSNormalization of a sum; the sum is the fourth output."""
    total = _with_skip(call, call.optional(3))
    normal = root_mean_square(call, total, [total.rank - 1])
    result = call.elementwise("mul", normal, call.input(2))
    wanted = call.node.output
    if any(wanted[1:3]):
        call.unsupported("the mean or the deviation as an output")
    return result, total, total, total


def _with_skip(call: Call, bias: Value | None) -> Value:
    total = call.elementwise("add", call.input(0), call.input(1))
    return total if bias is None else call.elementwise("add", total, bias)


@reads("MultiHeadAttention", domain=MICROSOFT)
def multi_head_attention(call: Call) -> tuple[Value, ...]:
    """Attention of queries, keys and values [batch, sequence, heads * size] of their own."""
    call.ignore("mask_filter_value")
    heads = call.integer("num_heads")
    query, key, value = call.input(0), call.optional(1), call.optional(2)
    if key is None or value is None or query.rank != 3:
        call.unsupported("a form with packed queries, keys or values")
    if call.optional(4) is not None:
        call.unsupported("a key padding mask")
    parts = [query, key, value]
    if (bias := call.optional(3)) is not None:
        parts = _biased(call, parts, bias)
    query, key, value = (_apart(call, part, heads) for part in parts)
    if (past := call.optional(6)) is not None:
        key = call.emit("concat", past, key, axis=2)
        value = call.emit("concat", call.input(7), value, axis=2)
    scale = call.number("scale", 0.0) or 1 / math.sqrt(query.dims[-1])
    scores = matrix_product(call, call.elementwise("mul", query, scale), _turned(call, key))
    if (added := call.optional(5)) is not None:
        scores = call.elementwise("add", scores, added)
    if call.integer("unidirectional", 0):
        scores = _causal(call, scores)
    weights = softmax_of(call, scores, [3])
    result = call.transpose(matrix_product(call, weights, value), (0, 2, 1, 3))
    batch, length, *rest = result.dims
    result = call.reshape(result, (batch, length, math.prod(rest)))
    return (result, key, value)[: max(1, len(call.node.output))]


def _biased(call: Call, parts: list[Value], bias: Value) -> list[Value]:
    found, start = [], 0
    for part in parts:
        width = part.dims[-1] if part.rank == 3 else part.dims[1] * part.dims[3]
        own = call.emit("slice", bias, starts=(start,), limits=(start + width,), strides=(1,))
        if part.rank == 4:
            own = call.reshape(own, (part.dims[1], 1, part.dims[3]))
        found.append(call.elementwise("add", part, own))
        start += width
    return found


def _apart(call: Call, x: Value, heads: int) -> Value:
    """[batch, heads, sequence, size]."""
    if x.rank == 4:
        return x
    if x.rank != 3 or heads < 1 or x.dims[2] % heads:
        call.invalid(f"{list(x.shape)} does not split into {heads} heads")
    batch, length, width = x.dims
    split = call.reshape(x, (batch, length, heads, width // heads))
    return call.transpose(split, (0, 2, 1, 3))


def _causal(call: Call, scores: Value) -> Value:
    """No query sees keys behind it, the last query being level with the last key."""
    queries, keys = scores.dims[2:]
    row = call.emit("iota", shape=(1, 1, queries, 1), axis=2, dtype="i64")
    column = call.emit("iota", shape=(1, 1, 1, keys), axis=3, dtype="i64")
    seen = call.elementwise("le", column, call.elementwise("add", row, keys - queries))
    least = call.constant(-math.inf, scores.dtype)
    return call.elementwise("where", seen, scores, least)
