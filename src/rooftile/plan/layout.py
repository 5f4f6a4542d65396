"""Memory layout: channels last, with transposes sunk, hoisted and cancelled until few are left."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace

from rooftile.core.dtype import itemsize
from rooftile.core.journal import Journal
from rooftile.core.symbolic import hint
from rooftile.ir.graph import Graph, Node, Value
from rooftile.ops.builder import Builder
from rooftile.passes.cse import share_common
from rooftile.passes.dead import remove_dead
from rooftile.passes.identity import remove_identities
from rooftile.passes.views import merge_views, moves_data
from rooftile.plan.orders import Order, attributes, natural
from rooftile.plan.storage import Storage, choose_orders, conversion


def channels_last(graph: Graph, journal: Journal) -> Graph:
    """The graph with its values stored so that transposes move as few bytes as possible.

    Convolutions and windows have their channels last, graph inputs and outputs keep their dims.
    The journal gets a decision for each transpose: those of the old graph that are "cancelled",
    and those "left", with the bytes that they read and write and who needs them.
    """
    storage = choose_orders(graph)
    laid_out = _Rebuilt(graph, storage).graph()
    for tidy in (remove_identities, merge_views, remove_identities, share_common, remove_dead):
        laid_out = tidy(laid_out)
    _record(graph, laid_out, journal)
    return laid_out


def moving_transposes(graph: Graph) -> list[Node]:
    """The transposes that change the order of data in memory."""
    return [
        node
        for node in graph.nodes
        if node.op == "transpose"
        and moves_data(node.attr("perm"), graph.values[node.inputs[0]].dims)
    ]


class _Rebuilt:
    """The graph built anew, each value stored in its order."""

    def __init__(self, graph: Graph, storage: Storage) -> None:
        self.old = graph
        self.storage = storage
        self.builder = Builder(graph)
        self.stored: dict[str, Value] = {value.name: value for value in graph.inputs}
        self.stored.update((name, self.builder.values[name]) for name in graph.constants)
        self.turned: dict[tuple[str, Order], Value] = {}

    def graph(self) -> Graph:
        """The new graph; outputs keep their names."""
        for node in self.old.nodes:
            self.builder.origin = node.origin
            self._node(node)
        self.builder.origin = ()
        outputs: dict[str, Value] = {}
        for name in self.old.outputs:
            producer = self.old.producers.get(name)
            self.builder.origin = producer.origin if producer is not None else ()
            outputs[name] = self._in_order(name, natural(self.old.values[name].rank))
        return self.builder.finish(self.old.name, outputs)

    def _node(self, node: Node) -> None:
        order = self.storage.of(node.name)
        needs = [self.storage.need(node, number) for number in range(len(node.inputs))]
        inputs = [self._in_order(name, need) for name, need in zip(node.inputs, needs, strict=True)]
        if node.op == "transpose":  # the order of its result says it all
            self.stored[node.name] = inputs[0]
            return
        changed = attributes(self.old, node, order, needs)
        same = [value.name for value in inputs] == list(node.inputs)
        if same and changed == dict(node.attrs):
            self._append(node)
        elif len(node.outputs) > 1:
            self._append(replace(node, inputs=tuple(value.name for value in inputs)))
        else:
            self.stored[node.name] = self.builder.emit(node.op, *inputs, **changed)

    def _append(self, node: Node) -> None:
        self.builder.append(node)
        self.stored.update((value.name, value) for value in node.outputs)

    def _in_order(self, name: str, wanted: Order) -> Value:
        stored = self.storage.of(name)
        if wanted == stored:
            return self.stored[name]
        key = (name, wanted)
        if key not in self.turned:
            perm = conversion(stored, wanted)
            self.turned[key] = self.builder.emit("transpose", self.stored[name], perm=perm)
        return self.turned[key]


def _record(before: Graph, after: Graph, journal: Journal) -> None:
    left = moving_transposes(after)
    names = {node.name for node in left}
    kept = Counter(_kind(node) for node in left if node.name not in before.producers)
    for node in moving_transposes(before):
        if node.name in names:
            continue
        if kept[_kind(node)]:
            kept[_kind(node)] -= 1
        else:
            reason = f"the order {_shown(node.attr('perm'))} is met without moving data here"
            journal.add("layout", (node.name,), "cancelled", reason, bytes=_bytes(node.output))
    for node in left:
        needed_by = [f"%{item.name} ({item.op})" for item in after.consumers[node.name]]
        if node.name in after.outputs:
            needed_by.append("the model's output")
        source = after.producers.get(node.inputs[0])
        made_by = "a model input" if source is None else f"made by {source.op}"
        reason = (
            f"{', '.join(needed_by)} needs %{node.inputs[0]} ({made_by}) "
            f"with its dims in order {_shown(node.attr('perm'))}"
        )
        journal.add("layout", (node.name,), "left", reason, bytes=_bytes(node.output))


def _kind(node: Node) -> tuple[Order, tuple[int, ...]]:
    """What a transpose still is when its input has another name."""
    return node.attr("perm"), node.output.dims


def _shown(perm: Order) -> str:
    return ",".join(map(str, perm))


def _bytes(value: Value) -> int:
    return 2 * hint(math.prod(value.dims)) * itemsize(value.dtype)
