"""Products of matrices."""

from __future__ import annotations

import math

from rooftile.core.symbolic import same
from rooftile.frontends.onnx.call import Call
from rooftile.frontends.onnx.registry import reads
from rooftile.ir.graph import Value


@reads("MatMul")
def matmul(call: Call) -> Value:
    """numpy's matmul: vectors are rows or columns, the leading dims are batches."""
    return matrix_product(call, call.input(0), call.input(1))


def matrix_product(call: Call, a: Value, b: Value) -> Value:
    """The matmul of two values of one type."""
    if not a.rank or not b.rank:
        call.invalid("a scalar cannot be multiplied as a matrix")
    row, column = a.rank == 1, b.rank == 1
    a = call.reshape(a, (1, *a.dims)) if row else a
    b = call.reshape(b, (*b.dims, 1)) if column else b
    if not same(a.dims[-1], b.dims[-2]):
        call.invalid(f"{list(a.shape)} x {list(b.shape)}: the inner dims differ")
    result = _product(call, a, b)
    kept = list(result.dims)
    if row:
        del kept[-2]
    if column:
        del kept[-1]
    return call.reshape(result, kept)


def _product(call: Call, a: Value, b: Value) -> Value:
    """Matrices or batches of matrices."""
    rank = max(a.rank, b.rank)
    if math.prod(b.dims[:-2]) == 1:
        b = call.reshape(b, b.dims[-2:])
        result = _dot(call, a, b, 0)
        return call.ranked(result, rank)
    a, b = call.ranked(a, rank), call.ranked(b, rank)
    batch: list[int] = []
    for mine, theirs in zip(a.dims[:-2], b.dims[:-2], strict=True):
        if mine != theirs and 1 not in (mine, theirs):
            call.invalid(f"batches of {list(a.shape)} and {list(b.shape)} do not broadcast")
        batch.append(theirs if mine == 1 else mine)
    a = call.broadcast(a, (*batch, *a.dims[-2:]))
    b = call.broadcast(b, (*batch, *b.dims[-2:]))
    return _dot(call, a, b, len(batch))


def _dot(call: Call, a: Value, b: Value, batch: int) -> Value:
    dims = tuple(range(batch))
    return call.emit(
        "dot",
        a,
        b,
        lhs_contract=(a.rank - 1,),
        rhs_contract=(b.rank - 2,),
        lhs_batch=dims,
        rhs_batch=dims,
    )


@reads("Gemm")
def gemm(call: Call) -> Value:
    """alpha * A B + beta * C, A and B transposed where asked."""
    return gemm_of(call)


def gemm_of(call: Call) -> Value:
    """Gemm by the node's attributes."""
    a, b, c = call.input(0), call.input(1), call.optional(2)
    if a.rank != 2 or b.rank != 2:
        call.invalid(f"{list(a.shape)} and {list(b.shape)} must be matrices")
    alpha, beta = call.number("alpha", 1.0), call.number("beta", 1.0)
    call.ignore("broadcast")
    a = call.transpose(a, (1, 0)) if call.integer("transA", 0) else a
    b = call.transpose(b, (1, 0)) if call.integer("transB", 0) else b
    if not same(a.dims[1], b.dims[0]):
        call.invalid(f"{list(a.shape)} x {list(b.shape)}: the inner dims differ")
    result = _dot(call, a, b, 0)
    if alpha != 1:
        result = call.elementwise("mul", result, alpha)
    if c is None or beta == 0:
        return result
    scaled = c if beta == 1 else call.elementwise("mul", c, beta)
    return call.elementwise("add", result, scaled)
