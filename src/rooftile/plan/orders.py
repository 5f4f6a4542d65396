"""Orders of dims: how the order in which a result is stored bears on the inputs of each op.

An order lists the dims of a value as they follow one another in memory: `stored = transpose(value,
order)`. Two orders are as good as equal where they differ in the place of dims of size 1 only.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from rooftile.ir.graph import Graph, Node
from rooftile.ops.reshape import groups
from rooftile.passes.rewrite import is_elementwise

Order = tuple[int, ...]

_PER_DIM = {
    "slice": ("starts", "limits", "strides"),
    "pad": ("low", "high"),
    "reduce_window": ("window", "strides", "pads_low", "pads_high", "dilations"),
    "broadcast": ("shape",),
    "iota": ("shape",),
}
_AXES = {"concat": ("axis",), "iota": ("axis",), "reduce": ("dims",)}


def natural(rank: int) -> Order:
    """The order in which the dims are numbered."""
    return tuple(range(rank))


@lru_cache(maxsize=4096)
def inverse(order: Order) -> Order:
    """The order that undoes another."""
    found = [0] * len(order)
    for place, dim in enumerate(order):
        found[dim] = place
    return tuple(found)


@lru_cache(maxsize=4096)
def compose(first: Order, second: Order) -> Order:
    """Dims of the value that is permuted by `first` and then by `second`."""
    return tuple(first[dim] for dim in second)


@lru_cache(maxsize=4096)
def wide_dims(order: Order, shape: tuple[int, ...]) -> Order:
    """The order without dims of size 1: what decides whether data moves."""
    return tuple(dim for dim in order if shape[dim] != 1)


def follows(node: Node) -> bool:
    """Whether an op works in any order of dims, the same for its result and its inputs."""
    return is_elementwise(node) or node.op in _PER_DIM or node.op in _AXES


def picks(graph: Graph, node: Node) -> bool:
    """Whether it picks elements of one dim: the data may then come in any order of dims."""
    return node.op == "gather" and graph.values[node.inputs[1]].rank == 1


def allowed(graph: Graph, node: Node, order: Order) -> bool:
    """Whether the node's result can be stored in that order without moving data behind it."""
    if follows(node) or picks(graph, node) or node.op == "transpose":
        return True
    if node.op == "reshape":
        new, old = node.output.dims, graph.values[node.inputs[0]].dims
        return _through_reshape(new, old, order) is not None
    return order == natural(len(order))


def needed(graph: Graph, node: Node, order: Order, number: int, have: Order) -> Order:
    """The order in which input `number` must come for a result stored in `order`.

    Where several orders will do, `have` is preferred: the order in which the input is stored.
    """
    x = graph.values[node.inputs[number]]
    if follows(node) or (number == 0 and picks(graph, node)):
        return order
    if node.op == "transpose":
        return compose(node.attr("perm"), order)
    if node.op == "reshape":
        found = _through_reshape(node.output.dims, x.dims, order)
        if found is None:
            raise AssertionError(f"%{node.name} cannot be stored in order {order}")
        return have if wide_dims(have, x.dims) == wide_dims(found, x.dims) else found
    if node.op == "dot" and _free_in_order(node, number, have):
        return have
    return natural(x.rank)


def carried(graph: Graph, node: Node, number: int, have: Order) -> Order | None:
    """The order of the result that takes input `number` as it is stored; None if there is none."""
    if follows(node) or (number == 0 and picks(graph, node)):
        return have
    if node.op == "transpose":
        return compose(inverse(node.attr("perm")), have)
    if node.op == "reshape":
        return _through_reshape(graph.values[node.inputs[0]].dims, node.output.dims, have)
    return None


def attributes(graph: Graph, node: Node, order: Order, inputs: Sequence[Order]) -> dict[str, Any]:
    """The node's attributes for a result stored in `order` and inputs stored in theirs."""
    found = dict(node.attrs)
    for name in _PER_DIM.get(node.op, ()):
        found[name] = tuple(found[name][dim] for dim in order)
    axes = ("axis",) if picks(graph, node) else _AXES.get(node.op, ())
    for name in axes:
        place = inverse(order)
        dims = found[name]
        found[name] = (
            place[dims] if isinstance(dims, int) else tuple(sorted(place[dim] for dim in dims))
        )
    if node.op == "reshape":
        found["shape"] = tuple(node.output.dims[dim] for dim in order)
    if node.op == "dot":
        for side, have in zip(("lhs", "rhs"), inputs, strict=True):
            place = inverse(have)
            for name in (f"{side}_batch", f"{side}_contract"):
                found[name] = tuple(place[dim] for dim in found[name])
    return found


def _free_in_order(node: Node, number: int, have: Order) -> bool:
    """A dot takes any order of an input that keeps its free dims in sequence: they are numbered."""
    side = ("lhs", "rhs")[number]
    bound = node.attr(f"{side}_batch") + node.attr(f"{side}_contract")
    free = [dim for dim in have if dim not in bound]
    return free == sorted(free)


@lru_cache(maxsize=4096)
def _through_reshape(old: tuple[int, ...], new: tuple[int, ...], order: Order) -> Order | None:
    """The order of `new` that holds its elements as `old` in `order` does; None if there is none.

    Runs of dims with equal products may change places, but not be torn apart.
    """
    if 0 in old:
        return natural(len(new)) if order == natural(len(old)) else None
    runs = {run[0]: (run, other) for run, other in groups(old, new)}
    left = list(wide_dims(order, old))
    found: list[int] = []
    while left:
        run, other = runs.get(left[0], ([], []))
        if not run or left[: len(run)] != run:
            return None
        found += other
        del left[: len(run)]
    ones = [dim for dim, extent in enumerate(new) if extent == 1]
    if len(new) == len(old) and len(found) == len(wide_dims(order, old)):
        # Dims of 1 where `old` has them: then the reshape changes nothing at all.
        wide, small = iter(found), iter(ones)
        return tuple(next(small) if old[dim] == 1 else next(wide) for dim in order)
    for dim in ones:
        found.insert(dim, dim)
    return tuple(found)
