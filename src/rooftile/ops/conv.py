"""conv: n-d convolution, channels last, with strides, padding, dilations and groups.

x [N, spatial..., C] and w [spatial..., C/groups, O] give [N, spatial..., O]. No bias.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from rooftile.core.affine import Affine
from rooftile.ir.graph import Array, Node, Value
from rooftile.ir.tile import Tile
from rooftile.ops.base import Body, Index, Op, Type, register
from rooftile.ops.dot import contraction
from rooftile.ops.rules import (
    ZERO,
    Attrs,
    arity,
    describe,
    elements,
    integer,
    integers,
    need,
    of_kind,
    same_dtype,
    window_extent,
)
from rooftile.ops.window import taps


def _infer(attrs: Attrs, inputs: Sequence[Value]) -> tuple[Type, ...]:
    x, w = arity("conv", inputs, 2)
    of_kind("conv", x, "float", "int", "uint")
    need(
        x.rank == w.rank and x.rank >= 3,
        "conv",
        f"{describe(x)} and weights {describe(w)} must have the same rank, at least 3",
    )
    spatial = x.rank - 2
    strides, dilations = (
        integers("conv", attrs, name, spatial, least=1) for name in ("strides", "dilations")
    )
    low, high = (
        integers("conv", attrs, name, spatial, least=0) for name in ("pads_low", "pads_high")
    )
    groups = integer("conv", attrs, "groups")
    channels, depth, features = x.dims[-1], w.dims[-2], w.dims[-1]
    need(
        groups >= 1 and depth * groups == channels and features % groups == 0,
        "conv",
        f"weights {describe(w)} in {groups} groups do not fit {channels} channels of {describe(x)}",
    )
    need(0 not in w.dims[:-2], "conv", f"weights {describe(w)} have an empty window")
    pads = zip(low, high, strict=True)
    places = tuple(
        window_extent("conv", *parts)
        for parts in zip(x.dims[1:-1], w.dims[:-2], strides, pads, dilations, strict=True)
    )
    return (((x.shape[0], *places, features), same_dtype("conv", inputs)),)


def _reference(attrs: Attrs, arrays: Sequence[Array]) -> tuple[Array, ...]:
    x, w = arrays
    groups, depth, features = attrs["groups"], w.shape[-2], w.shape[-1]
    pads = [(0, 0), *zip(attrs["pads_low"], attrs["pads_high"], strict=True), (0, 0)]
    window = (1, *w.shape[:-2])
    views = taps(np.pad(x, pads), window, (1, *attrs["strides"]), (1, *attrs["dilations"]))
    places = views[0][1].shape[:-1]
    total = np.zeros((math.prod(places), groups, features // groups), x.dtype)
    for tap, view in views:
        rows = view.reshape(-1, groups, depth)
        weights = w[tap[1:]].reshape(depth, groups, features // groups)
        if depth == 1:
            total += rows * weights
        else:
            product = np.matmul(rows.transpose(1, 0, 2), weights.transpose(1, 0, 2))
            total += product.transpose(1, 0, 2)
    return (total.reshape(*places, features),)


def _flops(attrs: Attrs, inputs: Sequence[Value], outputs: Sequence[Value]) -> int:
    return 2 * math.prod(inputs[1].dims[:-1]) * elements(outputs[0])


def _body(node: Node, index: Index, build: Body) -> Tile:
    w = build.inputs[1]
    window = w.dims[:-2]
    names = ("kd", "kh", "kw")[-len(window) :] if len(window) <= 3 else ("k",) * len(window)
    place: list[Affine] = []
    taken: list[Affine] = []
    over: list[str] = []
    for dim, extent in enumerate(window):
        tap = build.axis(names[dim], extent) if extent > 1 else ZERO
        over += tap.names
        taken.append(tap)
        reach = index[1 + dim] * node.attr("strides")[dim] + tap * node.attr("dilations")[dim]
        place.append(reach - node.attr("pads_low")[dim])
    channel, deep = _channels(node, index[-1], build)
    over += deep.names
    padded = any(node.attr("pads_low")) or any(node.attr("pads_high"))
    return contraction(
        build.arg(0, (index[0], *place, channel), pad=0.0 if padded else None),
        build.arg(1, (*taken, deep, index[-1])),
        over,
        node.output.dtype,
    )


def _channels(node: Node, feature: Affine, build: Body) -> tuple[Affine, Affine]:
    """The channel of x, and its place in the group's weights, for an output feature."""
    depth, features = build.inputs[1].dims[-2:]
    groups = node.attr("groups")
    deep = build.axis("c", depth) if depth > 1 else ZERO
    if groups == 1:
        return deep, deep
    group = feature if features == groups else build.split(feature, (groups, features // groups))[0]
    return group * depth + deep, deep


register(Op("conv", "conv", _infer, _reference, _flops, _body))
