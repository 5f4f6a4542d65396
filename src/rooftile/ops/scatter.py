"""scatter: updates written into a copy of the data at places that integers give, in their order.

The rows of `indices` [places..., n] name the first n dims of the data; `updates` is [places..., the
dims behind them]. `combine` (add, mul, max, min) joins an update with what is there, "" replaces.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rooftile.core.affine import Affine, affine
from rooftile.core.errors import InvalidInput
from rooftile.ir.graph import Array, Node, Value
from rooftile.ir.tile import Axis, Buf, Const, Kernel, Load, Store
from rooftile.ops.base import Op, Type, register
from rooftile.ops.gather_nd import wrapped
from rooftile.ops.rules import (
    Attrs,
    arity,
    attribute,
    axis_of,
    describe,
    elements,
    need,
    same_dtype,
)

UFUNCS = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}


def _common(op: str, attrs: Attrs, inputs: Sequence[Value]) -> tuple[Value, Value, Value]:
    data, indices, updates = arity(op, inputs, 3)
    same_dtype(op, [data, updates])
    combine = attribute(op, attrs, "combine")
    need(combine in ("", *UFUNCS), op, f"combine {combine!r} must be one of {', '.join(UFUNCS)}")
    need(not combine or data.dtype != "bool", op, f"{describe(data)} is bool: only replaced")
    need(indices.dtype in ("i32", "i64"), op, f"indices {describe(indices)} must be i32 or i64")
    return data, indices, updates


def _infer(attrs: Attrs, inputs: Sequence[Value]) -> tuple[Type, ...]:
    data, indices, updates = _common("scatter", attrs, inputs)
    fits = indices.rank >= 1 and indices.dims[-1] <= data.rank
    need(
        fits and updates.shape == indices.shape[:-1] + data.shape[indices.dims[-1] :],
        "scatter",
        f"indices {describe(indices)} and updates {describe(updates)} do not fit {describe(data)}",
    )
    return ((data.shape, data.dtype),)


def _infer_elements(attrs: Attrs, inputs: Sequence[Value]) -> tuple[Type, ...]:
    data, indices, updates = _common("scatter_elements", attrs, inputs)
    axis = axis_of("scatter_elements", attrs, data.rank)
    need(
        indices.shape == updates.shape and indices.rank == data.rank,
        "scatter_elements",
        f"indices {describe(indices)} and updates {describe(updates)} must have one shape, of the "
        f"rank of {describe(data)}",
    )
    for dim, (wanted, there) in enumerate(zip(indices.dims, data.dims, strict=True)):
        need(
            dim == axis or wanted <= there,
            "scatter_elements",
            f"indices {describe(indices)} reach outside dim {dim} of {describe(data)}",
        )
    return ((data.shape, data.dtype),)


def _write(combine: str, data: Array, where: tuple[Array, ...], updates: Array) -> Array:
    result: Array = data.copy()
    if combine:
        UFUNCS[combine].at(result, where, updates)
    else:
        result[where] = updates
    return result


def _inside(op: str, indices: Array, extent: int) -> Array:
    outside = (indices < -extent) | (indices >= extent)
    if outside.any():
        raise InvalidInput(f"{op}: index {indices[outside].flat[0]} is outside {extent} elements")
    return np.asarray(np.where(indices < 0, indices + extent, indices))


def _reference(attrs: Attrs, arrays: Sequence[Array]) -> tuple[Array, ...]:
    data, indices, updates = arrays
    where = tuple(
        _inside("scatter", indices[..., n], data.shape[n]) for n in range(indices.shape[-1])
    )
    if not where:
        rows = updates.reshape(-1, *data.shape)
        whole = data.copy()
        for row in rows:
            whole = UFUNCS[attrs["combine"]](whole, row) if attrs["combine"] else row
        return (np.asarray(whole),)
    return (_write(attrs["combine"], data, where, updates),)


def _reference_elements(attrs: Attrs, arrays: Sequence[Array]) -> tuple[Array, ...]:
    data, indices, updates = arrays
    axis = attrs["axis"]
    where: list[Array] = list(np.indices(indices.shape))
    where[axis] = _inside("scatter_elements", indices, data.shape[axis])
    return (_write(attrs["combine"], data, tuple(where), updates),)


def _flops(attrs: Attrs, inputs: Sequence[Value], outputs: Sequence[Value]) -> int:
    return elements(inputs[2]) if attrs["combine"] else 0


def _copied(inputs: Sequence[Value], updates: Store) -> Kernel:
    """The data copied, then the updates; axes c0, c1 ... of the data, u0, u1 ... of the updates."""
    data = inputs[0]
    copied = tuple(affine(f"c{dim}") for dim in range(data.rank))
    axes = [Axis(f"c{dim}", extent) for dim, extent in enumerate(data.dims)]
    axes += [Axis(f"u{dim}", extent) for dim, extent in enumerate(inputs[2].dims)]
    bufs = [Buf(f"x{number}", value.dims, value.dtype) for number, value in enumerate(inputs)]
    bufs.append(Buf("y0", data.dims, data.dtype))
    body = (Store("y0", copied, Load("x0", copied)), updates)
    return Kernel("kernel", tuple(bufs), (), tuple(axes), body)


def _program(node: Node, inputs: Sequence[Value]) -> Kernel:
    data, indices, updates = inputs
    place = tuple(affine(f"u{dim}") for dim in range(updates.rank))
    row, rest = place[: indices.rank - 1], place[indices.rank - 1 :]
    chosen = tuple(
        wrapped(Load("x1", (*row, Affine((), n))), indices.dtype, Const(data.dims[n], "i64"))
        for n in range(indices.dims[-1])
    )
    combine = node.attr("combine") or None
    return _copied(inputs, Store("y0", (*chosen, *rest), Load("x2", place), combine))


def _program_elements(node: Node, inputs: Sequence[Value]) -> Kernel:
    data, indices, updates = inputs
    axis, combine = node.attr("axis"), node.attr("combine") or None
    place = tuple(affine(f"u{dim}") for dim in range(updates.rank))
    chosen = wrapped(Load("x1", place), indices.dtype, Const(data.dims[axis], "i64"))
    index = (*place[:axis], chosen, *place[axis + 1 :])
    return _copied(inputs, Store("y0", index, Load("x2", place), combine))


register(Op("scatter", "program", _infer, _reference, _flops, None, _program))
register(
    Op(
        "scatter_elements",
        "program",
        _infer_elements,
        _reference_elements,
        _flops,
        None,
        _program_elements,
    )
)
