"""Checks and small sums that the shape and cost rules of many ops share."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rooftile.core.affine import Affine, Dim
from rooftile.core.dtype import DTYPES, DType, kind
from rooftile.core.errors import InvalidModel
from rooftile.core.symbolic import Sym, same
from rooftile.ir.graph import Value
from rooftile.ops.base import Index

Attrs = Mapping[str, Any]
ZERO = Affine()


def describe(value: Value) -> str:
    """A value as messages show it: `%x f32[2,3]`."""
    return f"%{value.name} {value.dtype}[{','.join(map(str, value.shape))}]"


def need(condition: bool, op: str, problem: str) -> None:
    """InvalidModel in words of the op unless the condition holds."""
    if not condition:
        raise InvalidModel(f"{op}: {problem}")


def arity(op: str, inputs: Sequence[Value], count: int) -> Sequence[Value]:
    """The inputs, which must be `count`."""
    need(len(inputs) == count, op, f"takes {count} inputs, not {len(inputs)}")
    return inputs


def same_dtype(op: str, inputs: Sequence[Value]) -> DType:
    """The one element type of all inputs."""
    need(
        all(value.dtype == inputs[0].dtype for value in inputs),
        op,
        f"inputs must have one element type, not {', '.join(map(describe, inputs))}; cast them",
    )
    return inputs[0].dtype


def of_kind(op: str, value: Value, *kinds: str) -> None:
    """The value's element type must be of one of the kinds: float, int, uint, bool."""
    need(
        kind(value.dtype) in kinds,
        op,
        f"{describe(value)} must be of kind {' or '.join(kinds)}; cast it",
    )


def broadcast_shape(op: str, inputs: Sequence[Value]) -> tuple[Dim, ...]:
    """The common shape of inputs of equal rank whose dims are equal or 1."""
    shown = ", ".join(map(describe, inputs))
    need(
        all(value.rank == inputs[0].rank for value in inputs),
        op,
        f"inputs must have equal rank, not {shown}; reshape them",
    )
    shape: list[Dim] = []
    for extents in zip(*(value.shape for value in inputs), strict=True):
        wide = [extent for extent in extents if extent != 1]
        equal = all(same(extent, wide[0]) for extent in wide[1:])
        need(equal, op, f"dims must be equal or 1: {shown}")
        shape.append(wide[0] if wide else 1)
    return tuple(shape)


def attribute(op: str, attrs: Attrs, name: str) -> Any:
    """A required attribute."""
    need(name in attrs, op, f"attribute {name} is missing")
    return attrs[name]


def integer(op: str, attrs: Attrs, name: str) -> int:
    """A required integer attribute."""
    value = attribute(op, attrs, name)
    need(_is_int(value), op, f"attribute {name} must be an integer, not {value!r}")
    return value  # type: ignore[no-any-return]


def integers(
    op: str, attrs: Attrs, name: str, count: int | None = None, least: int | None = None
) -> tuple[int, ...]:
    """A required tuple of integers; `count` of them and none below `least` where given."""
    value = attribute(op, attrs, name)
    need(
        isinstance(value, tuple) and all(map(_is_int, value)),
        op,
        f"attribute {name} must be a tuple of integers, not {value!r}",
    )
    if count is not None:
        need(len(value) == count, op, f"{name} {value} must have {count} entries")
    if least is not None:
        need(all(item >= least for item in value), op, f"{name} {value} must be at least {least}")
    return tuple(value)


def axis_of(op: str, attrs: Attrs, rank: int) -> int:
    """The attribute `axis`, a dim of a tensor of that rank, counted from the front."""
    axis = integer(op, attrs, "axis")
    need(0 <= axis < rank, op, f"axis {axis} is outside a tensor of {rank} dims")
    return axis


def dims_of(op: str, name: str, dims: Sequence[int], rank: int) -> None:
    """The dims must be different dims of a tensor of that rank, counted from the front."""
    need(
        len(set(dims)) == len(dims) and all(0 <= d < rank for d in dims),
        op,
        f"{name} {tuple(dims)} must be different dims of a tensor of {rank} dims",
    )


def element_type(op: str, attrs: Attrs) -> DType:
    """The attribute `dtype`, the name of an element type."""
    dtype = attribute(op, attrs, "dtype")
    need(dtype in DTYPES, op, f"dtype {dtype!r} is unknown; it is one of {', '.join(DTYPES)}")
    return str(dtype)


def window_extent(
    op: str, extent: int, window: int, stride: int, pads: tuple[int, int], dilation: int
) -> int:
    """How many windows fit along a dim of `extent` elements; of one element each, none in none."""
    reach = (window - 1) * dilation + 1
    padded = extent + sum(pads)
    need(
        padded >= reach or (padded, reach) == (0, 1),
        op,
        f"a window that reaches over {reach} elements does not fit {extent} padded by {pads}",
    )
    return (padded - reach) // stride + 1


def elements(value: Value) -> int:
    """How many elements a value has."""
    return math.prod(value.dims)


def per_element(count: int) -> Callable[[Attrs, Sequence[Value], Sequence[Value]], int]:
    """The cost rule of ops that do `count` operations for each element of their output."""

    def flops(attrs: Attrs, inputs: Sequence[Value], outputs: Sequence[Value]) -> int:
        return count * elements(outputs[0])

    return flops


def aligned(value: Value, index: Index) -> Index:
    """The index into an operand that broadcasts: 0 along its dims of size 1."""
    return tuple(
        ZERO if extent == 1 else part for extent, part in zip(value.shape, index, strict=True)
    )


def _is_int(value: Any) -> bool:
    return isinstance(value, (int, Sym)) and not isinstance(value, bool)
