"""bitcast: the same bits as another element type of equal size."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rooftile.core.dtype import itemsize, kind, to_numpy
from rooftile.ir.graph import Array, Node, Value
from rooftile.ir.tile import Cast, Tile
from rooftile.ops.base import Body, Index, Op, Type, register
from rooftile.ops.rules import Attrs, arity, attribute, describe, element_type, need, per_element


def _infer(attrs: Attrs, inputs: Sequence[Value]) -> tuple[Type, ...]:
    (x,) = arity("bitcast", inputs, 1)
    dtype = element_type("bitcast", attrs)
    source = attribute("bitcast", attrs, "source")
    need(source == x.dtype, "bitcast", f"{describe(x)} is not of the source type {source}")
    need(
        itemsize(x.dtype) == itemsize(dtype) and "bool" not in (x.dtype, dtype),
        "bitcast",
        f"{describe(x)} and {dtype} differ in size, or are bool; cast instead",
    )
    return ((x.shape, dtype),)


def _reference(attrs: Attrs, arrays: Sequence[Array]) -> tuple[Array, ...]:
    """Floats may come wider than they are: their own type is the attribute `source`."""
    held = np.ascontiguousarray(arrays[0]).astype(to_numpy(attrs["source"]))
    bits = held.view(to_numpy(attrs["dtype"]))
    return (bits.astype(np.float64) if kind(attrs["dtype"]) == "float" else bits,)


def _body(node: Node, index: Index, build: Body) -> Tile:
    return Cast(build.arg(0, index), node.output.dtype, bits=True)


register(Op("bitcast", "elementwise", _infer, _reference, per_element(0), _body))
