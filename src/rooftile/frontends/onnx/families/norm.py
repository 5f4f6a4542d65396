"""Softmax and the normalizations, written so that they neither overflow nor cancel."""

from __future__ import annotations

from collections.abc import Sequence

from rooftile.core.dtype import kind
from rooftile.frontends.onnx.call import Call
from rooftile.frontends.onnx.families.reduce import mean_of, total
from rooftile.frontends.onnx.registry import reads
from rooftile.ir.graph import Value


@reads("Softmax")
def softmax_flat(call: Call) -> Value:
    """Before opset 13 all dims from `axis` on are one."""
    x = call.input(0)
    return softmax_of(call, x, range(call.axis(call.integer("axis", 1), x.rank), x.rank))


@reads("Softmax", since=13)
def softmax(call: Call) -> Value:
    """Over one axis."""
    x = call.input(0)
    return softmax_of(call, x, [call.axis(call.integer("axis", -1), x.rank)])


@reads("LogSoftmax")
def log_softmax_flat(call: Call) -> Value:
    """Before opset 13 all dims from `axis` on are one."""
    x = call.input(0)
    return _log_softmax(call, x, range(call.axis(call.integer("axis", 1), x.rank), x.rank))


@reads("LogSoftmax", since=13)
def log_softmax(call: Call) -> Value:
    """Over one axis."""
    x = call.input(0)
    return _log_softmax(call, x, [call.axis(call.integer("axis", -1), x.rank)])


def _below_max(call: Call, x: Value, dims: Sequence[int]) -> Value:
    return call.emit("sub", x, call.emit("reduce", x, op="max", dims=tuple(dims)))


def softmax_of(call: Call, x: Value, dims: Sequence[int]) -> Value:
    """Softmax over dims together."""
    weights = call.emit("exp", _below_max(call, x, dims))
    return call.emit("div", weights, total(call, weights, dims))


def _log_softmax(call: Call, x: Value, dims: Sequence[int]) -> Value:
    below = _below_max(call, x, dims)
    sums = total(call, call.emit("exp", below), dims)
    return call.emit("sub", below, call.emit("log", sums))


@reads("BatchNormalization")
def batch_normalization(call: Call) -> tuple[Value, ...]:
    """A scale and a shift for each channel: the statistics are inputs.

    In training mode they are those of the batch, and the running ones are given as well.
    """
    call.ignore("is_test", "consumed_inputs")
    if call.integer("spatial", 1) != 1:
        call.unsupported("spatial=0")
    momentum = call.number("momentum", 0.9)
    x, scale, bias, mean, variance = (call.input(number) for number in range(5))
    epsilon = call.number("epsilon", 1e-5)
    if not call.integer("training_mode", 0):
        return (_scaled(call, x, scale, bias, mean, variance, epsilon),)
    dims = [0, *range(2, x.rank)]
    wide = call.cast(x, _wider(x.dtype))
    now = mean_of(call, wide, dims)
    centred = call.emit("sub", wide, now)
    spread = mean_of(call, call.emit("mul", centred, centred), dims)
    channels = (x.dims[1],)
    now, spread = (call.reshape(part, channels) for part in (now, spread))
    result = _scaled(call, x, scale, bias, now, spread, epsilon)
    running = []
    for old, new in ((mean, now), (variance, spread)):
        kept = call.elementwise("mul", old, momentum)
        added = call.elementwise("mul", call.cast(new, old.dtype), 1 - momentum)
        running.append(call.emit("add", kept, added))
    return (result, *running)


def _scaled(
    call: Call, x: Value, scale: Value, bias: Value, mean: Value, variance: Value, epsilon: float
) -> Value:
    """(x - mean) / sqrt(variance + epsilon) * scale + bias, as one scale and one shift."""
    wide = _wider(variance.dtype)
    scale, bias, mean, variance = (call.cast(part, wide) for part in (scale, bias, mean, variance))
    spread = call.emit("sqrt", call.elementwise("add", variance, epsilon))
    scale = call.elementwise("div", scale, spread)
    shift = call.elementwise("sub", bias, call.elementwise("mul", mean, scale))
    scale, shift = (_for_channels(call, part, x) for part in (scale, shift))
    return call.elementwise("add", call.elementwise("mul", x, scale), shift)


@reads("LpNormalization")
def lp_normalization(call: Call) -> Value:
    """x over its norm along one axis; a norm of 0 gives zeros."""
    x = call.input(0)
    dims, p = [call.axis(call.integer("axis", -1), x.rank)], call.integer("p", 2)
    if p not in (1, 2):
        call.invalid(f"p must be 1 or 2, not {p}")
    wide = call.cast(x, _wider(x.dtype))
    if p == 1:
        norm = total(call, call.emit("abs", wide), dims)
    else:
        norm = call.emit("sqrt", total(call, call.emit("mul", wide, wide), dims))
    empty = call.elementwise("eq", norm, 0)
    result = call.elementwise("where", empty, 0, call.emit("div", wide, norm))
    return call.cast(result, x.dtype)


@reads("InstanceNormalization")
def instance_normalization(call: Call) -> Value:
    """Normalized over the spatial dims, for each sample and channel."""
    call.ignore("consumed_inputs")
    x, scale, bias = (call.input(number) for number in range(3))
    normal, _, _ = normalized(call, x, range(2, x.rank), call.number("epsilon", 1e-5))
    scaled = call.elementwise("mul", normal, _for_channels(call, scale, x))
    return call.elementwise("add", scaled, _for_channels(call, bias, x))


@reads("GroupNormalization", since=18)
def group_normalization(call: Call) -> Value:
    """Normalized over groups of channels with the spatial dims."""
    call.ignore("stash_type")
    x, scale, bias = (call.input(number) for number in range(3))
    groups = call.integer("num_groups")
    if x.rank < 2 or groups < 1 or x.dims[1] % groups:
        call.invalid(f"num_groups {groups} does not divide the channels of {list(x.shape)}")
    split = call.reshape(x, (x.dims[0], groups, x.dims[1] // groups, *x.dims[2:]))
    normal, _, _ = normalized(call, split, range(2, split.rank), call.number("epsilon", 1e-5))
    if call.opset < 21:  # one scale a group, not a channel
        tail = (1,) * (split.rank - 2)
        scale, bias = (call.reshape(part, (1, groups, *tail)) for part in (scale, bias))
        shifted = call.elementwise("add", call.elementwise("mul", normal, scale), bias)
        return call.reshape(shifted, x.dims)
    whole = call.reshape(normal, x.dims)
    scaled = call.elementwise("mul", whole, _for_channels(call, scale, x))
    return call.elementwise("add", scaled, _for_channels(call, bias, x))


@reads("LayerNormalization")
def layer_normalization(call: Call) -> tuple[Value, ...]:
    """Normalized over the dims from `axis` on; also gives the mean and 1 / deviation."""
    call.ignore("stash_type")
    x, scale, bias = call.input(0), call.input(1), call.optional(2)
    dims = range(call.axis(call.integer("axis", -1), x.rank), x.rank)
    normal, mean, inverse = normalized(call, x, dims, call.number("epsilon", 1e-5))
    result = call.elementwise("mul", normal, scale)
    if bias is not None:
        result = call.elementwise("add", result, bias)
    return (result, mean, inverse) if call.outputs > 1 else (result,)


@reads("MeanVarianceNormalization")
def mean_variance_normalization(call: Call) -> Value:
    """(x - mean) / (deviation + 1e-9) over axes; the body in the schema cancels, and is of f32."""
    x = call.input(0)
    dims = call.axes(call.ints("axes", (0, 2, 3)), x.rank)
    wide = call.cast(x, _wider(x.dtype))
    centred = call.emit("sub", wide, mean_of(call, wide, dims))
    variance = mean_of(call, call.emit("mul", centred, centred), dims)
    spread = call.elementwise("add", call.emit("sqrt", variance), 1e-9)
    return call.cast(call.emit("div", centred, spread), x.dtype)


@reads("RMSNormalization", since=23)
@reads("SimplifiedLayerNormalization")
def rms_normalization(call: Call) -> Value:
    """x divided by the root of its mean square over the dims from `axis` on, times a scale."""
    call.ignore("stash_type")
    x = call.input(0)
    dims = range(call.axis(call.integer("axis", -1), x.rank), x.rank)
    return call.elementwise("mul", root_mean_square(call, x, dims), call.input(1))


def root_mean_square(call: Call, x: Value, dims: Sequence[int]) -> Value:
    """x divided by the root of its mean square over dims; epsilon is an attribute."""
    wide = call.cast(x, _wider(x.dtype))
    square = mean_of(call, call.emit("mul", wide, wide), dims)
    root = call.emit("sqrt", call.elementwise("add", square, call.number("epsilon", 1e-5)))
    return call.cast(call.emit("div", wide, root), x.dtype)


def normalized(
    call: Call, x: Value, dims: Sequence[int], epsilon: float
) -> tuple[Value, Value, Value]:
    """(x - mean) / sqrt(variance + epsilon), the mean and 1 / sqrt(variance + epsilon)."""
    wide = call.cast(x, _wider(x.dtype))
    mean = mean_of(call, wide, dims)
    centred = call.emit("sub", wide, mean)
    variance = mean_of(call, call.emit("mul", centred, centred), dims)
    spread = call.emit("sqrt", call.elementwise("add", variance, epsilon))
    normal = call.cast(call.emit("div", centred, spread), x.dtype)
    inverse = call.elementwise("div", 1, spread) if call.outputs > 1 else spread
    return normal, mean, inverse


def _wider(dtype: str) -> str:
    """Sums of half-precision numbers are held in f32: a variance overflows f16 too easily."""
    return "f32" if kind(dtype) == "float" and dtype in ("f16", "bf16") else dtype


def _for_channels(call: Call, part: Value, x: Value) -> Value:
    """A vector over the channels (dim 1) of x, in x's type and rank."""
    if part.rank != 1 or x.rank < 2:
        call.invalid(f"a vector over the channels is needed, not {list(part.shape)}")
    return call.reshape(call.cast(part, x.dtype), part.dims + (1,) * (x.rank - 2))
