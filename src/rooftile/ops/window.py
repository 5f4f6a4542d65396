"""reduce_window: max or sum over windows of a tensor. Padding holds the identity of the op."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np

from rooftile.core.dtype import from_numpy, identity
from rooftile.ir.graph import Array, Node, Value
from rooftile.ir.tile import Reduce, Tile
from rooftile.ops.base import Body, Index, Op, Type, register
from rooftile.ops.reduce import UFUNCS, operation
from rooftile.ops.rules import Attrs, arity, elements, integers, of_kind, window_extent


def _infer(attrs: Attrs, inputs: Sequence[Value]) -> tuple[Type, ...]:
    (x,) = arity("reduce_window", inputs, 1)
    of_kind("reduce_window", x, "float", "int", "uint")
    operation("reduce_window", attrs, ("max", "sum"))
    window, strides, dilations = (
        integers("reduce_window", attrs, name, x.rank, least=1)
        for name in ("window", "strides", "dilations")
    )
    low, high = (
        integers("reduce_window", attrs, name, x.rank, least=0)
        for name in ("pads_low", "pads_high")
    )
    pads = zip(low, high, strict=True)
    shape = tuple(
        window_extent("reduce_window", *parts)
        for parts in zip(x.dims, window, strides, pads, dilations, strict=True)
    )
    return ((shape, x.dtype),)


def taps(
    x: Array, window: Sequence[int], strides: Sequence[int], dilations: Sequence[int]
) -> list[tuple[tuple[int, ...], Array]]:
    """Each position inside the window, with the view of the elements there of all windows.

    `x` is padded already and the windows cover its first `len(window)` dims.
    """
    counts = [
        (extent - (size - 1) * dilation - 1) // stride + 1
        for extent, size, stride, dilation in zip(x.shape, window, strides, dilations, strict=False)
    ]
    found = []
    for tap in itertools.product(*(range(size) for size in window)):
        starts = [at * dilation for at, dilation in zip(tap, dilations, strict=True)]
        parts = tuple(
            slice(start, start + (count - 1) * stride + 1, stride)
            for start, count, stride in zip(starts, counts, strides, strict=True)
        )
        found.append((tap, x[parts]))
    return found


def _reference(attrs: Attrs, arrays: Sequence[Array]) -> tuple[Array, ...]:
    (x,) = arrays
    op = attrs["op"]
    pads = list(zip(attrs["pads_low"], attrs["pads_high"], strict=True))
    start = x.dtype.type(identity(op, from_numpy(x.dtype)))
    padded = np.pad(x, pads, constant_values=start) if pads else x
    views = taps(padded, attrs["window"], attrs["strides"], attrs["dilations"])
    result = views[0][1]
    for _, view in views[1:]:
        result = UFUNCS[op](result, view)
    return (np.asarray(result),)


def _flops(attrs: Attrs, inputs: Sequence[Value], outputs: Sequence[Value]) -> int:
    return elements(outputs[0]) * math.prod(attrs["window"])


def _body(node: Node, index: Index, build: Body) -> Tile:
    at, axes = [], []
    for dim, (part, window) in enumerate(zip(index, node.attr("window"), strict=True)):
        place = part * node.attr("strides")[dim] - node.attr("pads_low")[dim]
        if window > 1:
            axis = build.axis(f"k{dim}", window)
            axes.append(axis.names[0])
            place = place + axis * node.attr("dilations")[dim]
        at.append(place)
    padded = any(node.attr("pads_low")) or any(node.attr("pads_high"))
    pad = identity(node.attr("op"), node.output.dtype) if padded else None
    tile = build.arg(0, tuple(at), pad=pad)
    for axis_name in reversed(axes):
        tile = Reduce(node.attr("op"), tile, axis_name)
    return tile


register(Op("reduce_window", "window", _infer, _reference, _flops, _body))
