"""Ops that change nothing."""

from __future__ import annotations

import numpy as np

from rooftile.core.dtype import kind
from rooftile.ir.graph import Graph, Node, Value
from rooftile.passes.rewrite import Match, rewrite, with_constant

_NEUTRAL = {"mul": 1, "div": 1, "add": 0, "sub": 0}


def remove_identities(graph: Graph) -> Graph:
    """The graph without no-ops.

    Pattern: cast to the same type, or back and forth through a wider one; reshape, broadcast,
    slice, pad, transpose, concat, reduce or window that changes nothing; x*1, x/1, x+0, x-0.
    Legal: always. x+0 turns -0 into 0, which compares equal.
    """
    return rewrite(graph, _rule)


def _rule(match: Match, node: Node) -> Value | None:
    if not node.inputs:
        return None
    x = match.value(node.inputs[0])
    if (x.shape, x.dtype) == (node.output.shape, node.output.dtype) and _keeps(match, node):
        return x
    if node.op == "cast":
        return _narrowed(match, node)
    if node.op in _NEUTRAL:
        return _neutral(match, node)
    return None


def _keeps(match: Match, node: Node) -> bool:
    """Whether an op whose result has its input's type gives that input."""
    if node.op in ("cast", "reshape", "broadcast"):
        return True
    if node.op == "slice":
        return not any(node.attr("starts")) and all(step == 1 for step in node.attr("strides"))
    if node.op == "pad":
        return not any(node.attr("low")) and not any(node.attr("high"))
    if node.op == "transpose":
        return bool(node.attr("perm") == tuple(range(node.output.rank)))
    if node.op == "concat":
        return len(node.inputs) == 1
    if node.op == "reduce":
        return True  # the shape is the same: only dims of 1 are reduced
    if node.op == "reduce_window":
        pads = node.attr("pads_low") + node.attr("pads_high")
        return not any(pads) and all(size == 1 for size in node.attr("window"))
    return False


def _neutral(match: Match, node: Node) -> Value | None:
    operands = with_constant(match, node)
    if operands is None or operands[0].shape != node.output.shape:
        return None
    array = match.array(operands[1])
    same = array is not None and bool(np.all(array == _NEUTRAL[node.op]))
    return operands[0] if same else None


def _narrowed(match: Match, node: Node) -> Value | None:
    """cast(cast(x, wide), dtype) -> cast(x, dtype), where `wide` holds every value of x."""
    inner = match.producer(match.value(node.inputs[0]), "cast")
    if inner is None:
        return None
    x = match.value(inner.inputs[0])
    if not _holds(inner.output.dtype, x.dtype):
        return None
    if x.dtype == node.output.dtype:
        return x
    return match.emit([node, inner], "cast", x, dtype=node.output.dtype)


_MANTISSA = {"f64": 53, "f32": 24, "f16": 11, "bf16": 8}
_EXPONENT = {"f64": 11, "f32": 8, "f16": 5, "bf16": 8}
_BITS = {"bool": 1, "i8": 7, "i16": 15, "i32": 31, "i64": 63} | {
    f"u{bits}": bits for bits in (8, 16, 32, 64)
}


def _holds(wide: str, narrow: str) -> bool:
    """Whether every value of one type is a value of another."""
    if kind(narrow) == "float":
        if kind(wide) != "float":
            return False
        return _MANTISSA[wide] >= _MANTISSA[narrow] and _EXPONENT[wide] >= _EXPONENT[narrow]
    if kind(wide) == "float":
        return _BITS[narrow] <= _MANTISSA[wide] and _BITS[narrow] < 2 ** (_EXPONENT[wide] - 1)
    signed_lost = kind(narrow) == "int" and kind(wide) != "int"
    return not signed_lost and _BITS[narrow] <= _BITS[wide]
