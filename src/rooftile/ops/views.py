"""Ops that only move elements: transpose, broadcast, slice, pad. Reshape has a file of its own."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rooftile.core.symbolic import same
from rooftile.ir.graph import Array, Node, Value
from rooftile.ir.tile import Tile
from rooftile.ops.base import Body, Index, Op, Type, register
from rooftile.ops.rules import (
    Attrs,
    aligned,
    arity,
    attribute,
    describe,
    dims_of,
    integers,
    need,
    per_element,
)


def _transpose_infer(attrs: Attrs, inputs: Sequence[Value]) -> tuple[Type, ...]:
    (x,) = arity("transpose", inputs, 1)
    perm = integers("transpose", attrs, "perm", x.rank)
    dims_of("transpose", "perm", perm, x.rank)
    return ((tuple(x.shape[dim] for dim in perm), x.dtype),)


def _transpose_reference(attrs: Attrs, arrays: Sequence[Array]) -> tuple[Array, ...]:
    return (np.transpose(arrays[0], attrs["perm"]),)


def _transpose_body(node: Node, index: Index, build: Body) -> Tile:
    moved = dict(zip(node.attr("perm"), index, strict=True))
    return build.arg(0, tuple(moved[dim] for dim in range(len(index))))


register(
    Op("transpose", "view", _transpose_infer, _transpose_reference, per_element(0), _transpose_body)
)


def _broadcast_infer(attrs: Attrs, inputs: Sequence[Value]) -> tuple[Type, ...]:
    (x,) = arity("broadcast", inputs, 1)
    shape: tuple[int, ...] = attribute("broadcast", attrs, "shape")
    fits = len(shape) == x.rank and all(
        have == 1 or same(have, want) for have, want in zip(x.dims, shape, strict=True)
    )
    need(fits, "broadcast", f"{describe(x)} does not broadcast to {shape}; only dims of 1 grow")
    return ((tuple(shape), x.dtype),)


def _broadcast_reference(attrs: Attrs, arrays: Sequence[Array]) -> tuple[Array, ...]:
    return (np.broadcast_to(arrays[0], attrs["shape"]),)


def _broadcast_body(node: Node, index: Index, build: Body) -> Tile:
    return build.arg(0, aligned(build.inputs[0], index))


register(
    Op("broadcast", "view", _broadcast_infer, _broadcast_reference, per_element(0), _broadcast_body)
)


def _slice_infer(attrs: Attrs, inputs: Sequence[Value]) -> tuple[Type, ...]:
    (x,) = arity("slice", inputs, 1)
    parts = [integers("slice", attrs, name, x.rank) for name in ("starts", "limits", "strides")]
    shape: list[int] = []
    for dim, (extent, start, limit, stride) in enumerate(zip(x.dims, *parts, strict=True)):
        need(stride != 0, "slice", f"stride of dim {dim} is 0")
        count = _count(start, limit, stride)
        last = start + (count - 1) * stride
        inside = count == 0 or (0 <= start < extent and 0 <= last < extent)
        need(
            inside,
            "slice",
            f"{start}:{limit}:{stride} reaches outside dim {dim} of {describe(x)}",
        )
        shape.append(count)
    return ((tuple(shape), x.dtype),)


def _count(start: int, limit: int, stride: int) -> int:
    """How many of `start, start + stride, ...` come before `limit`."""
    return max(0, -((start - limit) // stride))


def _python_slice(start: int, limit: int, stride: int) -> slice:
    """The same for numpy, where a negative limit would count from the end."""
    if not _count(start, limit, stride):
        return slice(0, 0)
    return slice(start, None if limit < 0 else limit, stride)


def _slice_reference(attrs: Attrs, arrays: Sequence[Array]) -> tuple[Array, ...]:
    parts = zip(attrs["starts"], attrs["limits"], attrs["strides"], strict=True)
    return (arrays[0][tuple(_python_slice(*part) for part in parts)],)


def _slice_body(node: Node, index: Index, build: Body) -> Tile:
    moved = zip(index, node.attr("strides"), node.attr("starts"), strict=True)
    return build.arg(0, tuple(part * stride + start for part, stride, start in moved))


register(Op("slice", "view", _slice_infer, _slice_reference, per_element(0), _slice_body))


def _pad_infer(attrs: Attrs, inputs: Sequence[Value]) -> tuple[Type, ...]:
    (x,) = arity("pad", inputs, 1)
    low = integers("pad", attrs, "low", x.rank, least=0)
    high = integers("pad", attrs, "high", x.rank, least=0)
    attribute("pad", attrs, "value")
    shape = tuple(a + extent + b for a, extent, b in zip(low, x.dims, high, strict=True))
    return ((shape, x.dtype),)


def _pad_reference(attrs: Attrs, arrays: Sequence[Array]) -> tuple[Array, ...]:
    (x,) = arrays
    widths = list(zip(attrs["low"], attrs["high"], strict=True))
    if not widths:
        return (x,)
    return (np.pad(x, widths, constant_values=np.asarray(attrs["value"]).astype(x.dtype)),)


def _pad_body(node: Node, index: Index, build: Body) -> Tile:
    moved = tuple(part - low for part, low in zip(index, node.attr("low"), strict=True))
    padded = any(node.attr("low")) or any(node.attr("high"))
    return build.arg(0, moved, pad=node.attr("value") if padded else None)


register(Op("pad", "view", _pad_infer, _pad_reference, per_element(0), _pad_body))
