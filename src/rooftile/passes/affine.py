"""Scales and shifts by constants: merged with one another and into weights. Changes rounding."""

from __future__ import annotations

import numpy as np

from rooftile.core.dtype import kind
from rooftile.ir.graph import Array, Graph, Node, Value
from rooftile.passes.rewrite import Match, rewrite, with_constant

_LINEAR = ("conv", "dot")
_LEAST_NORMAL = {"f64": 2.0**-1022, "f32": 2.0**-126, "bf16": 2.0**-126, "f16": 2.0**-14}


def fold_affine(graph: Graph) -> Graph:
    """The graph with chains of constant scales and shifts shortened.

    Patterns, c constant: x/c -> x*(1/c); x-c -> x+(-c); (x+c)+d -> x+(c+d); (x*c)*d -> x*(c*d);
    (x+c)*d -> x*d+(c*d) where x comes from a conv or dot; conv(x,w)*c and dot(x,w)*c -> weights
    scaled. Legal: floats; inner values are read only here; new constants are finite, normal where
    they are factors, and no larger than the old ones; c varies along the weights' free dims only.
    """
    return rewrite(graph, _rule)


def _rule(match: Match, node: Node) -> Value | None:
    if node.op not in ("add", "sub", "mul", "div") or kind(node.output.dtype) != "float":
        return None
    operands = with_constant(match, node)
    if operands is None:
        return None
    x, c = operands
    if node.op in ("sub", "div"):
        return _plain(match, node, x, c)
    if node.op == "add":
        return _merged(match, node, x, c, "add")
    return (
        _into_weights(match, node, x, c)
        or _merged(match, node, x, c, "mul")
        or _distributed(match, node, x, c)
    )


def _plain(match: Match, node: Node, x: Value, c: Value) -> Value | None:
    """A quotient as a product, a difference as a sum."""
    if node.op == "sub":
        negative = match.builder.folded("neg", c)
        return None if negative is None else match.emit([node], "add", x, negative)
    one = match.constant(np.ones((1,) * c.rank), c.dtype)
    inverse = match.builder.folded("div", one, c)
    if inverse is None or not _usable(match, inverse, factor=True):
        return None
    return match.emit([node], "mul", x, inverse)


def _merged(match: Match, node: Node, x: Value, c: Value, op: str) -> Value | None:
    inner = match.producer(x, op)
    operands = with_constant(match, inner) if inner is not None else None
    if inner is None or operands is None or not match.single_use(x):
        return None
    both = _combined(match, op, operands[1], c)
    return None if both is None else match.emit([node, inner], op, operands[0], both)


def _distributed(match: Match, node: Node, x: Value, c: Value) -> Value | None:
    inner = match.producer(x, "add")
    operands = with_constant(match, inner) if inner is not None else None
    if inner is None or operands is None or not match.single_use(x):
        return None
    root = match.producer(operands[0], *_LINEAR)
    if root is None or not match.single_use(operands[0]) or operands[0].shape != x.shape:
        return None
    scaled = _into_weights(match, node, operands[0], c)
    shift = _combined(match, "mul", operands[1], c, factor=False)
    if scaled is None or shift is None:
        return None
    return match.emit([inner, node], "add", scaled, shift)


def _into_weights(match: Match, node: Node, x: Value, c: Value) -> Value | None:
    root = match.producer(x, *_LINEAR)
    if root is None or not match.single_use(x) or x.shape != node.output.shape:
        return None
    for number in (1, 0) if root.op == "dot" else (1,):
        weights = match.value(root.inputs[number])
        factor = _for_weights(match, root, number, c)
        if match.array(weights) is None or factor is None:
            continue
        scaled = match.builder.folded("mul", weights, factor)
        if scaled is not None and _usable(match, scaled, factor=False):
            inputs = match.inputs(root)
            inputs[number] = scaled
            return match.like([root, node], inputs)
    return None


def _for_weights(match: Match, root: Node, number: int, c: Value) -> Value | None:
    """c, which scales the result of a conv or dot, laid out to scale input `number` of it."""
    array = match.array(c)
    weights = match.value(root.inputs[number])
    if array is None:
        return None
    shape = [1] * weights.rank
    places = _free_dims(match, root, number)
    for dim, extent in enumerate(c.dims):
        if extent != 1:
            if dim not in places:
                return None
            shape[places[dim]] = extent
    ordered = [places[dim] for dim, extent in enumerate(c.dims) if extent != 1]
    if ordered != sorted(ordered):
        return None
    return match.constant(array.reshape(shape), c.dtype)


def _free_dims(match: Match, root: Node, number: int) -> dict[int, int]:
    """Which dim of the result is which dim of input `number`, where both have it."""
    if root.op == "conv":
        return {root.output.rank - 1: root.output.rank - 1}
    sides = ("lhs", "rhs")
    batch = root.attr(f"{sides[number]}_batch")
    bound = {side: root.attr(f"{side}_batch") + root.attr(f"{side}_contract") for side in sides}
    ranks = [value.rank for value in match.inputs(root)]
    free = [dim for dim in range(ranks[number]) if dim not in bound[sides[number]]]
    start = len(batch) + (ranks[0] - len(bound["lhs"]) if number else 0)
    return dict(enumerate(batch)) | {start + at: dim for at, dim in enumerate(free)}


def _combined(
    match: Match, op: str, a: Value, b: Value, factor: bool | None = None
) -> Value | None:
    """a op b as a constant, if it is sound and no larger than the larger of the two."""
    both = match.builder.folded(op, a, b)
    if both is None or not _usable(match, both, factor=op == "mul" if factor is None else factor):
        return None
    sizes = [array.size for value in (a, b, both) if (array := match.array(value)) is not None]
    return both if sizes[2] <= max(sizes[:2]) else None


def _usable(match: Match, value: Value, factor: bool) -> bool:
    """Finite; a factor must not have lost digits below the smallest normal number either."""
    array: Array | None = match.array(value)
    if array is None:
        return False
    wide = np.abs(array.astype(np.float64))
    least = _LEAST_NORMAL[value.dtype] if factor else 0.0
    return bool(np.all(np.isfinite(wide)) and np.all(wide >= least))
