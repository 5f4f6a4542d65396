"""dot: the general product of two tensors, as `jax.lax.dot_general`.

Batch dims come first in the output, then the free dims of the first input, then of the second.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from rooftile.core.affine import Affine
from rooftile.core.dtype import DType
from rooftile.core.symbolic import same
from rooftile.ir.graph import Array, Node, Value
from rooftile.ir.tile import Cast, Dot, Map, Tile
from rooftile.ops.base import Body, Index, Op, Type, register
from rooftile.ops.rules import (
    ZERO,
    Attrs,
    arity,
    describe,
    dims_of,
    elements,
    integers,
    need,
    of_kind,
    same_dtype,
)

Dims = tuple[int, ...]


def sides(attrs: Attrs, ranks: tuple[int, int]) -> tuple[tuple[Dims, Dims, Dims], ...]:
    """Batch, free and contracted dims of the first and the second input."""
    found = []
    for side, rank in zip(("lhs", "rhs"), ranks, strict=True):
        batch = integers("dot", attrs, f"{side}_batch")
        contract = integers("dot", attrs, f"{side}_contract")
        dims_of("dot", f"{side}_batch + {side}_contract", batch + contract, rank)
        free = tuple(dim for dim in range(rank) if dim not in batch + contract)
        found.append((batch, free, contract))
    return tuple(found)


def _infer(attrs: Attrs, inputs: Sequence[Value]) -> tuple[Type, ...]:
    a, b = arity("dot", inputs, 2)
    of_kind("dot", a, "float", "int", "uint")
    (batch, a_free, a_contract), (b_batch, b_free, b_contract) = sides(attrs, (a.rank, b.rank))
    for what, mine, theirs in (("batch", batch, b_batch), ("contract", a_contract, b_contract)):
        need(
            len(mine) == len(theirs)
            and all(same(a.dims[m], b.dims[t]) for m, t in zip(mine, theirs, strict=True)),
            "dot",
            f"{what} dims {mine} of {describe(a)} and {theirs} of {describe(b)} differ",
        )
    shape = (
        *(a.shape[dim] for dim in batch),
        *(a.shape[dim] for dim in a_free),
        *(b.shape[dim] for dim in b_free),
    )
    return ((shape, same_dtype("dot", inputs)),)


def _reference(attrs: Attrs, arrays: Sequence[Array]) -> tuple[Array, ...]:
    a, b = arrays
    (batch, a_free, a_contract), (b_batch, b_free, b_contract) = sides(attrs, (a.ndim, b.ndim))
    lead = [a.shape[dim] for dim in batch]
    rows, columns = [a.shape[dim] for dim in a_free], [b.shape[dim] for dim in b_free]
    depth = math.prod(a.shape[dim] for dim in a_contract)
    left = a.transpose(batch + a_free + a_contract).reshape(*lead, math.prod(rows), depth)
    right = b.transpose(b_batch + b_contract + b_free).reshape(*lead, depth, math.prod(columns))
    return (np.matmul(left, right).reshape((*lead, *rows, *columns)),)


def _flops(attrs: Attrs, inputs: Sequence[Value], outputs: Sequence[Value]) -> int:
    depth = math.prod(inputs[0].dims[dim] for dim in integers("dot", attrs, "lhs_contract"))
    return 2 * depth * elements(outputs[0])


def contraction(a: Tile, b: Tile, over: Sequence[str], dtype: DType) -> Tile:
    """Sum of products over axes, in f32 for narrower floats; a product where there is no axis."""
    if not over:
        return Map("mul", (a, b))
    wide = "f32" if dtype in ("f16", "bf16") else dtype
    total = Dot(a, b, tuple(over), dtype=wide)
    return total if wide == dtype else Cast(total, dtype)


def _body(node: Node, index: Index, build: Body) -> Tile:
    a, b = build.inputs
    left, right = sides(dict(node.attrs), (a.rank, b.rank))
    depth: list[Affine] = []
    for number, dim in enumerate(left[2]):
        extent = a.dims[dim]
        depth.append(ZERO if extent == 1 else build.axis(f"k{number}", extent))
    lead, rest = index[: len(left[0])], index[len(left[0]) :]
    rows, columns = rest[: len(left[1])], rest[len(left[1]) :]
    over = [name for axis in depth for name in axis.names]
    return contraction(
        build.arg(0, _placed(left, (lead, rows, tuple(depth)))),
        build.arg(1, _placed(right, (lead, columns, tuple(depth)))),
        over,
        node.output.dtype,
    )


def _placed(dims: tuple[Dims, Dims, Dims], parts: tuple[Index, Index, Index]) -> Index:
    found: dict[int, Affine] = {}
    for some, indices in zip(dims, parts, strict=True):
        found.update(zip(some, indices, strict=True))
    return tuple(found[dim] for dim in sorted(found))


register(Op("dot", "dot", _infer, _reference, _flops, _body))
