"""concat: tensors joined along one axis. No body: the planner lets each producer write its part."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rooftile.core.symbolic import same
from rooftile.ir.graph import Array, Value
from rooftile.ops.base import Op, Type, register
from rooftile.ops.rules import Attrs, axis_of, describe, need, per_element, same_dtype


def _infer(attrs: Attrs, inputs: Sequence[Value]) -> tuple[Type, ...]:
    need(bool(inputs), "concat", "takes at least one input")
    axis = axis_of("concat", attrs, inputs[0].rank)
    for value in inputs:
        fits = value.rank == inputs[0].rank and all(
            same(mine, theirs)
            for dim, (mine, theirs) in enumerate(zip(value.dims, inputs[0].dims, strict=True))
            if dim != axis
        )
        need(
            fits,
            "concat",
            f"{describe(value)} and {describe(inputs[0])} differ beside axis {axis}",
        )
    shape = list(inputs[0].shape)
    shape[axis] = sum(value.dims[axis] for value in inputs)
    return ((tuple(shape), same_dtype("concat", inputs)),)


def _reference(attrs: Attrs, arrays: Sequence[Array]) -> tuple[Array, ...]:
    return (np.concatenate(arrays, attrs["axis"]),)


register(Op("concat", "view", _infer, _reference, per_element(0), None))
