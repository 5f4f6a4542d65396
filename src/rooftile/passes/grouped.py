"""Statistics of groups keep the dims apart that a reshape joins for them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rooftile.ir.graph import Graph, Node, Value
from rooftile.ops.reshape import groups
from rooftile.passes.rewrite import Match, is_elementwise, rewrite


@dataclass(frozen=True)
class Joined:
    """How a reshape from `old` to `new` joins dims: the last dim of a run, `new[into]`, holds the
    dims `whole` of `old` and the inner `part` elements of the dim before them, 1 if none. `same`
    are the dims that stay as they are, by dim of `old`."""

    old: tuple[int, ...]
    new: tuple[int, ...]
    run: tuple[int, ...]
    into: int
    whole: tuple[int, ...]
    part: int
    same: Mapping[int, int]


def keep_groups_apart(graph: Graph) -> Graph:
    """The graph with elementwise ops and reductions between reshapes in the dims before them.

    Pattern: x [N,C,H,W] is reshaped to [N,G,L], where L may hold a part of the channels, reduced
    over L, and comes back through elementwise ops and a reshape. All of it is computed in the dims
    of x; what was reduced is repeated for the channels of its group. Legal: sums may be taken in
    any order. So values may lie channels last, which groups in [N,G,L] cannot.
    """
    chosen: dict[str, Joined] = {}
    for node in graph.nodes:
        if node.op == "reshape" and node.name not in chosen:
            chosen |= _between(graph, node) or {}
    if not chosen:
        return graph

    def rule(match: Match, node: Node) -> Value | None:
        joined = chosen.get(node.name)
        if joined is None or node.op == "reshape":
            return None
        build = _reduced if node.op == "reduce" else _elementwise
        return build(match, node, joined)

    return rewrite(graph, rule)


def _between(graph: Graph, start: Node) -> dict[str, Joined] | None:
    """What is computed between a reshape and those that end it, if there are groups in it."""
    joined = _joined(graph.values[start.inputs[0]].dims, start.output.dims)
    if joined is None:
        return None
    found, queue, read = {start.name: joined}, [start.name], set[str]()
    reduces = False
    while queue:
        name = queue.pop()
        if name in graph.outputs:
            return None
        for reader in graph.consumers[name]:
            if reader.op == "reshape" or reader.name in found:
                continue
            if not _works_apart(graph, reader, joined):
                return None
            found[reader.name] = joined
            reduces |= reader.op == "reduce"
            read.update(item for item in reader.inputs if graph.values[item].dims == joined.new)
            queue += [reader.name] if reader.op != "reduce" else []
            twins = [item for item in reader.inputs if _is_twin(graph, item, start)]
            queue += [item for item in twins if item not in found]
            found |= dict.fromkeys(twins, joined)
    return found if reduces and read <= set(found) else None


def _works_apart(graph: Graph, node: Node, joined: Joined) -> bool:
    """Whether an op on joined dims can be had in the dims before."""
    if node.op == "reduce":
        wide = [dim for dim in node.attr("dims") if joined.new[dim] != 1]
        return wide == [joined.into]
    if not is_elementwise(node) or node.output.dims != joined.new:
        return False
    values = (graph.values[name] for name in node.inputs)
    return all(v.dims == joined.new or _repeated_dims(v, joined) is not None for v in values)


def _is_twin(graph: Graph, name: str, start: Node) -> bool:
    """Whether a value is reshaped as another is, from the same dims to the same."""
    node = graph.producers.get(name)
    if node is None or node.op != "reshape" or node.output.dims != start.output.dims:
        return False
    return graph.values[node.inputs[0]].dims == graph.values[start.inputs[0]].dims


def _joined(old: tuple[int, ...], new: tuple[int, ...]) -> Joined | None:
    """None where the last dim of a run does not join dims, or where several runs change."""
    if 0 in old:
        return None
    runs = groups(old, new)
    changed = [(run, other) for run, other in runs if len(run) > 1 or len(other) > 1]
    if len(changed) != 1:
        return None
    [(run, other)] = changed
    left, whole = new[other[-1]], []
    for dim in reversed(run):
        if left == 1 or left % old[dim]:
            break
        left //= old[dim]
        whole.append(dim)
    torn = old[run[len(run) - len(whole) - 1]] if len(whole) < len(run) else 1
    if not whole or torn % left or (left == 1 and len(whole) == 1):
        return None
    same = {one[0]: two[0] for one, two in runs if one != run}
    return Joined(old, new, tuple(other), other[-1], tuple(whole), left, same)


def _reduced(match: Match, node: Node, joined: Joined) -> Value | None:
    """The whole dims first, then the part of a dim."""
    x, op = _before(match, match.inputs(node)[0], joined), node.attr("op")
    if x is None:
        return None
    first = match.emit([node], "reduce", x, op=op, dims=tuple(sorted(joined.whole)))
    if joined.part == 1:
        return match.emit([node], "reshape", first, shape=node.output.dims)
    shape = tuple(joined.part if d == joined.into else n for d, n in enumerate(joined.new))
    parts = match.emit([node], "reshape", first, shape=shape)
    return match.emit([node], "reduce", parts, op=op, dims=(joined.into,))


def _elementwise(match: Match, node: Node, joined: Joined) -> Value | None:
    moved = []
    for value in match.inputs(node):
        full = value.dims == joined.new
        here = _before(match, value, joined) if full else _repeated(match, node, value, joined)
        if here is None:
            return None
        moved.append(here)
    result = match.like([node], moved)
    return match.emit([node], "reshape", result, shape=joined.new)


def _before(match: Match, value: Value, joined: Joined) -> Value | None:
    """What a value of the joined dims is in the dims before they were joined."""
    node = match.producer(value, "reshape")
    x = match.value(node.inputs[0]) if node is not None else None
    return x if x is not None and x.dims == joined.old else None


def _repeated(match: Match, node: Node, value: Value, joined: Joined) -> Value | None:
    """A value that does not vary within groups, for the elements of the dim that is torn."""
    dims = _repeated_dims(value, joined)
    if dims is None:
        return None
    if joined.part > 1 and any(value.dims[dim] != 1 for dim in joined.run):
        shape = tuple(joined.part if d == joined.into else n for d, n in enumerate(value.dims))
        value = match.emit([node], "broadcast", value, shape=shape)
    return match.emit([node], "reshape", value, shape=dims)


def _repeated_dims(value: Value, joined: Joined) -> tuple[int, ...] | None:
    """The dims that it then has; None where it varies within groups."""
    if value.rank != len(joined.new) or value.dims[joined.into] != 1:
        return None
    outer = [dim for dim in joined.run if dim != joined.into]
    kept = {value.dims[dim] != 1 for dim in outer if joined.new[dim] != 1}
    if len(kept) > 1:
        return None
    varies = kept == {True}
    dims = []
    for dim, extent in enumerate(joined.old):
        if dim in joined.same:
            dims.append(value.dims[joined.same[dim]])
        else:
            dims.append(extent if varies and dim not in joined.whole else 1)
    return tuple(dims)
