"""reshape: the same elements in row-major order under other dims."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from rooftile.core.errors import NotLowered
from rooftile.core.symbolic import same
from rooftile.ir.graph import Array, Node, Value
from rooftile.ir.tile import Tile
from rooftile.ops.base import Body, Index, Op, Type, register
from rooftile.ops.rules import ZERO, Attrs, arity, describe, elements, integers, need, per_element


def _infer(attrs: Attrs, inputs: Sequence[Value]) -> tuple[Type, ...]:
    (x,) = arity("reshape", inputs, 1)
    shape = integers("reshape", attrs, "shape", least=0)
    need(
        same(math.prod(shape), elements(x)),
        "reshape",
        f"{describe(x)} has {elements(x)} elements, shape {shape} has {math.prod(shape)}",
    )
    return ((shape, x.dtype),)


def _reference(attrs: Attrs, arrays: Sequence[Array]) -> tuple[Array, ...]:
    return (np.reshape(arrays[0], attrs["shape"]),)


def groups(old: Sequence[int], new: Sequence[int]) -> list[tuple[list[int], list[int]]]:
    """Smallest runs of dims of both shapes with equal products: (dims of old, dims of new).

    Dims of size 1 belong to no run. Both shapes must have the same, positive, number of elements;
    where that is an assumption on symbols, the last run may hold what does not match.
    """
    left = [dim for dim, extent in enumerate(old) if extent != 1]
    right = [dim for dim, extent in enumerate(new) if extent != 1]
    found: list[tuple[list[int], list[int]]] = []
    while left and right:
        run, other = [left.pop(0)], [right.pop(0)]
        a, b = old[run[0]], new[other[0]]
        while a != b and (left or right):  # extents that are assumed to be equal may never be
            if left and (a < b or not right):
                run.append(left.pop(0))
                a *= old[run[-1]]
            else:
                other.append(right.pop(0))
                b *= new[other[-1]]
        found.append((run, other))
    if found and (left or right):
        run, other = found.pop()
        found.append((run + left, other + right))
    return found


def nested(old: Sequence[int], new: Sequence[int]) -> bool:
    """Whether dims are only joined and split: 4x6 to 24 or 2x2x6, but not to 8x3."""
    for run, other in groups(old, new):
        cuts = {math.prod(old[dim] for dim in run[at:]) for at in range(len(run))}
        cuts |= {math.prod(new[dim] for dim in other[at:]) for at in range(len(other))}
        if any(large % small for small, large in pairwise(sorted(cuts))):
            return False
    return True


def _body(node: Node, index: Index, build: Body) -> Tile:
    old, new = build.inputs[0].dims, node.output.dims
    if 0 in old:
        raise NotLowered(f"%{node.name}: a reshape of no elements needs no kernel")
    moved = [ZERO] * len(old)
    for run, other in groups(old, new):
        position = ZERO
        for dim in other:
            position = position * new[dim] + index[dim]
        sizes = [old[dim] for dim in run]
        parts = (position,) if len(run) == 1 else build.split(position, sizes)
        for dim, part in zip(run, parts, strict=True):
            moved[dim] = part
    return build.arg(0, tuple(moved))


register(Op("reshape", "view", _infer, _reference, per_element(0), _body))
