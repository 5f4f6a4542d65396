"""A product with a one-hot matrix picks rows: it is a gather."""

from __future__ import annotations

import numpy as np

from rooftile.core.dtype import kind
from rooftile.ir.graph import Array, Graph, Node, Value
from rooftile.passes.rewrite import Match, rewrite

_INDEX_RANGE = {"u8": (0, 255), "u16": (0, 65535), "i8": (-128, 127), "i16": (-32768, 32767)}


def one_hot_to_gather(graph: Graph) -> Graph:
    """The graph with dot(cast(eq(index, 0..n-1)), table) written as gather(table, index).

    Legal: the table is constant and all its elements are finite (0 * inf is not 0); indices are
    integers. An index outside 0..n-1 gives zeros, as the product does: unless it cannot occur, it
    is sent to a row of zeros behind the table.
    """
    return rewrite(graph, _rule)


def _rule(match: Match, node: Node) -> Value | None:
    if node.op != "dot" or node.attr("lhs_batch") or len(node.attr("lhs_contract")) != 1:
        return None
    hot, table = match.inputs(node)
    [along], [row] = node.attr("lhs_contract"), node.attr("rhs_contract")
    array = match.array(table)
    if array is None or array.ndim != 2 or row != 0 or not _finite(array):
        return None
    cast = match.producer(hot, "cast")
    equal = match.producer(match.value(cast.inputs[0]), "eq") if cast is not None else None
    if cast is None or equal is None:
        return None
    index = _index(match, equal, along, len(array))
    if index is None:
        return None
    of = [node, cast, equal]
    shape = tuple(extent for dim, extent in enumerate(index.dims) if dim != along)
    index = match.emit(of, "reshape", index, shape=shape)
    if not _in_range(match, index, len(array)):
        index, table = _with_zero_row(match, of, index, array, table.dtype)
    if index.dtype not in ("i32", "i64"):
        index = match.emit(of, "cast", index, dtype="i64")
    return match.emit(of, "gather", table, index, axis=0)


def _finite(array: Array) -> bool:
    return bool(np.all(np.isfinite(array.astype(np.float64))))


def _index(match: Match, equal: Node, along: int, count: int) -> Value | None:
    """The operand that is compared with 0..count-1 along a dim, if that is what `equal` does."""
    for index, other in (match.inputs(equal), match.inputs(equal)[::-1]):
        steps = match.array(other)
        if steps is None or steps.size != count or other.dims[along] != count:
            continue
        fits = index.dims[along] == 1 and kind(index.dtype) in ("int", "uint")
        if fits and index.dtype != "u64" and np.array_equal(steps.ravel(), np.arange(count)):
            return index
    return None


def _in_range(match: Match, index: Value, count: int) -> bool:
    low, high = _bounds(match, index, 8)
    return low >= 0 and high < count


def _bounds(match: Match, value: Value, depth: int) -> tuple[float, float]:
    """Bounds of an integer value, from constants, small types, and min and max with constants."""
    array = match.array(value)
    if array is not None and array.size:
        return float(array.min()), float(array.max())
    low, high = _INDEX_RANGE.get(value.dtype, (-np.inf, np.inf))
    node = match.producer(value, "min", "max", "cast", "reshape", "broadcast", "transpose")
    if node is None or not depth:
        return low, high
    inputs = [_bounds(match, item, depth - 1) for item in match.inputs(node)]
    if node.op == "cast":
        fits = kind(match.value(node.inputs[0]).dtype) != "float"
        small = value.dtype in ("i32", "i64") and abs(inputs[0][0]) + abs(inputs[0][1]) < 2**31
        return inputs[0] if fits and small else (low, high)
    if node.op in ("min", "max"):
        pick = min if node.op == "min" else max
        return pick(inputs[0][0], inputs[1][0]), pick(inputs[0][1], inputs[1][1])
    return inputs[0]


def _with_zero_row(
    match: Match, of: list[Node], index: Value, table: Array, dtype: str
) -> tuple[Value, Value]:
    """Indices outside the table sent to a row of zeros that is put behind it."""
    if index.dtype not in ("i32", "i64"):
        index = match.emit(of, "cast", index, dtype="i64")
    ones, count = (1,) * index.rank, len(table)
    end = match.constant(np.full(ones, count), index.dtype)
    zero = match.constant(np.zeros(ones), index.dtype)
    below = match.emit(of, "lt", index, zero)
    kept = match.emit(of, "where", below, end, match.emit(of, "min", index, end))
    longer = np.concatenate([table, np.zeros_like(table[:1])])
    return kept, match.constant(longer, dtype)
