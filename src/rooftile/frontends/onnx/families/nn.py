"""Convolution, and the geometry of windows. ONNX has channels second, canonical ops last."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rooftile.core.symbolic import same
from rooftile.frontends.onnx.call import Call
from rooftile.frontends.onnx.registry import reads
from rooftile.ir.graph import Value


@dataclass(frozen=True)
class Window:
    """A window's geometry, a number for each spatial dim. `high` makes the last window fit."""

    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    low: tuple[int, ...]
    high: tuple[int, ...]
    asked: tuple[int, ...]
    """The high padding that the model asks for: beyond it an average counts nothing."""


def window_of(call: Call, extents: Sequence[int], kernel: Sequence[int]) -> Window:
    """The geometry from the attributes of the node."""
    rank = len(extents)
    strides, dilations = call.ints("strides", [1] * rank), call.ints("dilations", [1] * rank)
    ceil_mode = bool(call.integer("ceil_mode", 0))
    for name, values in (("kernel_shape", kernel), ("strides", strides), ("dilations", dilations)):
        if len(values) != rank or any(value < 1 for value in values):
            call.invalid(f"{name} {list(values)} must be {rank} positive numbers")
    spans = [dilation * (size - 1) + 1 for size, dilation in zip(kernel, dilations, strict=True)]
    low, asked = _pads(call, extents, spans, strides)
    high: list[int] = []
    for dim, span in enumerate(spans):
        room = extents[dim] + low[dim] + asked[dim] - span
        if room < 0 and (room, span) != (-1, 1):  # windows of one element: none of none
            call.invalid(
                f"a window of {span} does not fit dim {dim} of {extents[dim]} with its pads"
            )
        count = room // strides[dim] + 1
        if ceil_mode and room % strides[dim] and count * strides[dim] < extents[dim] + low[dim]:
            count += 1  # the last window starts inside the input
        high.append(max(0, (count - 1) * strides[dim] + span - extents[dim] - low[dim]))
    parts = (kernel, strides, dilations, low, high, asked)
    return Window(*(tuple(part) for part in parts))


def _pads(
    call: Call, extents: Sequence[int], spans: Sequence[int], strides: Sequence[int]
) -> tuple[list[int], list[int]]:
    rank = len(extents)
    auto = call.text("auto_pad", "NOTSET")
    pads = call.ints("pads", [0] * (2 * rank))
    if auto == "NOTSET":
        if len(pads) != 2 * rank or any(pad < 0 for pad in pads):
            call.invalid(f"pads {list(pads)} must be {2 * rank} numbers, none negative")
        return list(pads[:rank]), list(pads[rank:])
    if auto == "VALID":
        return [0] * rank, [0] * rank
    if auto not in ("SAME_UPPER", "SAME_LOWER"):
        call.invalid(f"auto_pad {auto!r} must be NOTSET, VALID, SAME_UPPER or SAME_LOWER")
    low, high = [], []
    for extent, span, stride in zip(extents, spans, strides, strict=True):
        need = max(0, (-(-extent // stride) - 1) * stride + span - extent)
        small, large = need // 2, need - need // 2
        low.append(small if auto == "SAME_UPPER" else large)
        high.append(large if auto == "SAME_UPPER" else small)
    return low, high


def channels_last(call: Call, x: Value) -> Value:
    """N, C, spatial... -> N, spatial..., C."""
    return call.transpose(x, (0, *range(2, x.rank), 1))


def channels_second(call: Call, x: Value) -> Value:
    """N, spatial..., C -> N, C, spatial..."""
    return call.transpose(x, (0, x.rank - 1, *range(1, x.rank - 1)))


@reads("Conv")
def conv(call: Call) -> Value:
    """n-d convolution with an optional bias."""
    result = convolved(call, call.input(0), call.input(1))
    bias = call.optional(2)
    if bias is not None:
        result = call.elementwise("add", result, bias)
    return channels_second(call, result)


def convolved(call: Call, x: Value, w: Value) -> Value:
    """The convolution of x [N, C, ...] with w [O, C/groups, ...] by the node's attributes, its
    channels last."""
    if x.rank != w.rank or x.rank < 3:
        call.invalid(f"input {list(x.shape)} and weights {list(w.shape)} must have one rank, >= 3")
    kernel = call.ints("kernel_shape", w.dims[2:])
    if kernel != w.dims[2:]:
        call.invalid(f"kernel_shape {list(kernel)} is not that of the weights {list(w.shape)}")
    window, groups = window_of(call, x.dims[2:], kernel), call.integer("group", 1)
    if groups < 1 or not same(w.dims[1] * groups, x.dims[1]) or w.dims[0] % groups:
        call.invalid(f"weights {list(w.shape)} in {groups} groups do not fit input {list(x.shape)}")
    return call.emit(
        "conv",
        channels_last(call, x),
        call.transpose(w, (*range(2, w.rank), 1, 0)),
        strides=window.strides,
        pads_low=window.low,
        pads_high=window.high,
        dilations=window.dilations,
        groups=groups,
    )
