"""Computed scales and shifts of columns: one scale and one shift. Changes rounding."""

from __future__ import annotations

import math

from rooftile.core.dtype import kind
from rooftile.core.symbolic import hint
from rooftile.ir.graph import Graph, Node, Value
from rooftile.passes.rewrite import Match, rewrite

FEW = 64
"""Columns of at least this many elements make work on one element each cheap."""


def fold_scales(graph: Graph) -> Graph:
    """The graph with chains of scales and shifts that are one row of values shortened.

    Patterns, r and s rows: x/sqrt(r) -> x*(1/sqrt(r)); (x*r)*s -> x*(r*s); (x+r)+s -> x+(r+s);
    (x+r)*s -> x*s+(r*s) where x is such a product, or where x and x+r are read elsewhere too: then
    x+r need not be stored. Legal: floats; other inner values are read only here.
    """
    return rewrite(graph, _rule)


def _rule(match: Match, node: Node) -> Value | None:
    if node.op not in ("add", "sub", "mul", "div") or kind(node.output.dtype) != "float":
        return None
    found = _with_row(match, node)
    if found is None:
        return None
    x, row = found
    if node.op == "div":
        return _reciprocal(match, node, x, row)
    return _scaled(match, node, x, row) if node.op == "mul" else _shifted(match, node, x, row)


def _with_row(match: Match, node: Node | None) -> tuple[Value, Value] | None:
    """The operand of the result's shape and the one that is a row; None for other nodes."""
    if node is None:
        return None
    a, b = match.inputs(node)
    if _is_row(b, node.output) and a.dims == node.output.dims:
        return a, b
    swaps = node.op in ("add", "mul") and b.dims == node.output.dims
    return (b, a) if swaps and _is_row(a, node.output) else None


def _is_row(value: Value, result: Value) -> bool:
    """Whether a value varies along the innermost dim, and few of its elements meet many."""
    wide = [dim for dim, extent in enumerate(result.dims) if extent != 1]
    if not wide or value.dims[wide[-1]] == 1:
        return False
    counts = [hint(math.prod(item.dims)) for item in (value, result)]
    return counts[0] * FEW <= counts[1]


def _reciprocal(match: Match, node: Node, x: Value, row: Value) -> Value | None:
    """Of a root alone: the reciprocal of a root neither overflows nor underflows."""
    root = match.producer(row)
    while root is not None and root.op in ("reshape", "broadcast", "transpose"):
        root = match.producer(match.value(root.inputs[0]))
    if root is None or root.op != "sqrt":
        return None
    one = match.constant(1.0, row.dtype)
    one = match.emit([node], "reshape", one, shape=(1,) * row.rank)
    return match.emit([node], "mul", x, match.emit([node], "div", one, row))


def _scaled(match: Match, node: Node, x: Value, scale: Value) -> Value | None:
    inner = match.producer(x, "add", "sub", "mul")
    found = _with_row(match, inner)
    if inner is None or found is None:
        return None
    y, row = found
    both, single = [node, inner], match.single_use(x)
    if inner.op == "mul":
        factor = match.emit(both, "mul", row, scale)
        return match.emit(both, "mul", y, factor) if single else None
    again = not single and not match.single_use(y) and match.array(row) is None
    if not again and (not single or _with_row(match, match.producer(y, "mul")) is None):
        return None
    product, shift = match.emit(both, "mul", y, scale), match.emit(both, "mul", row, scale)
    return match.emit(both, inner.op, product, shift)


def _shifted(match: Match, node: Node, x: Value, shift: Value) -> Value | None:
    inner = match.producer(x, "add", "sub")
    found = _with_row(match, inner)
    if inner is None or found is None or not match.single_use(x):
        return None
    y, row = found
    both = [node, inner]
    if inner.op == "add":
        return match.emit(both, "add", y, match.emit(both, node.op, row, shift))
    if node.op == "add":
        return match.emit(both, "add", y, match.emit(both, "sub", shift, row))
    return match.emit(both, "sub", y, match.emit(both, "add", row, shift))
