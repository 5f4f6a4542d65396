"""The search for the orders in which a graph's values are stored: few transposes, small ones."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Iterator
from itertools import product

from rooftile.core.dtype import itemsize
from rooftile.core.symbolic import hint
from rooftile.ir.graph import Graph, Node, Value
from rooftile.plan.orders import (
    Order,
    allowed,
    carried,
    inverse,
    natural,
    needed,
    wide_dims,
)

MAX_ORDERS = 6
"""Orders that are tried for a node; more than a few seldom meet at one."""
MAX_SWEEPS = 8
_MOVE, _VIEW = 1 << 12, 1
"""Weight of a byte moved, and of a view that moves none."""


class Storage:
    """An order for the result of each node, and what the orders cost together.

    A constant can be had in any order; inputs and outputs of the graph have the natural one.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.orders = {node.name: natural(node.output.rank) for node in graph.nodes}
        self.consumers = graph.consumers
        self._outputs = set(graph.outputs)
        self._dims = {name: value.dims for name, value in graph.values.items()}
        self._refused: set[frozenset[tuple[str, Order]]] = set()

    def of(self, name: str) -> Order:
        """The order in which a value is stored."""
        found = self.orders.get(name)
        return natural(self.graph.values[name].rank) if found is None else found

    def need(self, node: Node, number: int) -> Order:
        """The order in which a node needs its input `number`."""
        order = self.of(node.name)
        return needed(self.graph, node, order, number, self.of(node.inputs[number]))

    def demands(self, name: str) -> Iterator[tuple[Node | None, Order]]:
        """Who needs a value in which order; None stands for the graph's outputs."""
        for node in self.consumers[name]:
            for number, read in enumerate(node.inputs):
                if read == name:
                    yield node, self.need(node, number)
        if name in self._outputs:
            yield None, natural(self.graph.values[name].rank)

    def price(self, name: str) -> int:
        """What it costs to give a value to all its consumers: each order is made once."""
        if name in self.graph.constants:
            return 0
        stored, dims = self.of(name), self._dims[name]
        orders = {order for _, order in self.demands(name)} - {stored}
        views = len(orders) + self._reshapes(name)
        if not orders:
            return views * _VIEW
        keys = {wide_dims(order, dims) for order in orders} - {wide_dims(stored, dims)}
        return len(keys) * _bytes(self.graph.values[name]) * _MOVE + views * _VIEW

    def _reshapes(self, name: str) -> bool:
        """Whether the value is made by a reshape that is needed in the present orders."""
        node = self.graph.producers.get(name)
        if node is None or node.op != "reshape":
            return False
        before, after = self._dims[node.inputs[0]], self._dims[name]
        given = [before[dim] for dim in self.need(node, 0)]
        return given != [after[dim] for dim in self.of(name)]

    def prices(self, names: Iterable[str]) -> int:
        """The sum over some values, each once."""
        return sum(self.price(name) for name in set(names))

    def around(self, nodes: Iterable[str]) -> set[str]:
        """The values whose price depends on the orders of some nodes."""
        found: set[str] = set()
        for name in nodes:
            node = self.graph.producers[name]
            found.update((name, *node.inputs))
            if any(reader.op == "reshape" for reader in self.consumers[name]):
                found.update(reader.name for reader in self.consumers[name])
        return found

    def attempt(self, change: dict[str, Order]) -> bool:
        """Take over new orders if they cost less."""
        change = {name: order for name, order in change.items() if self.orders[name] != order}
        key = frozenset(change.items())
        if not change or key in self._refused:
            return False
        names = self.around(change)
        before, price = {name: self.orders[name] for name in change}, self.prices(names)
        self.orders.update(change)
        if self.prices(names) < price:
            self._refused.clear()
            return True
        self._refused.add(key)
        self.orders.update(before)
        return False


def choose_orders(graph: Graph) -> Storage:
    """Orders that no single change, nor any spreading from a transpose, makes cheaper."""
    storage, candidates = Storage(graph), _candidates(graph)
    seeds = _near_transposes(graph)
    ways = ((True, True), (True, False), (False, True))
    for _ in range(MAX_SWEEPS):
        improved = False
        for name in seeds:
            for order, (down, up) in product(candidates[name], ways):
                improved |= storage.attempt(_spread(storage, name, order, down, up))
        for name, orders in candidates.items():
            for order in orders:
                improved |= storage.attempt({name: order})
        if not improved:
            break
    return storage


def _near_transposes(graph: Graph) -> list[str]:
    near = []
    for node in graph.nodes:
        around = [node, *graph.consumers[node.name]]
        around += [graph.producers[name] for name in node.inputs if name in graph.producers]
        if any(item.op in ("transpose", "reshape") for item in around):
            near.append(node.name)
    return near


def _spread(storage: Storage, name: str, order: Order, down: bool, up: bool) -> dict[str, Order]:
    """A node in an order, and the nodes around it in the orders that match, as far as they go."""
    graph = storage.graph
    found, queue = {name: order}, deque([name])
    while queue:
        current = queue.popleft()
        for other, matching in _neighbours(graph, current, found[current], down, up):
            if other in found or storage.orders[other] == matching:
                continue
            if allowed(graph, graph.producers[other], matching):
                found[other] = matching
                queue.append(other)
    return found


def _neighbours(
    graph: Graph, name: str, order: Order, down: bool, up: bool
) -> Iterator[tuple[str, Order]]:
    """The nodes that read or feed one, each with the order that spares a transpose between."""
    node = graph.producers[name]
    if up:
        for number, read in enumerate(node.inputs):
            producer = graph.producers.get(read)
            if producer is not None and producer.name == read:
                have = natural(graph.values[read].rank)
                yield read, needed(graph, node, order, number, have)
    if down:
        for reader in graph.consumers[name]:
            matching = carried(graph, reader, reader.inputs.index(name), order)
            if matching is not None:
                yield reader.name, matching


def _candidates(graph: Graph) -> dict[str, list[Order]]:
    """The orders that may serve at each node: those that reach it from fixed ones."""
    found = {node.name: [natural(node.output.rank)] for node in graph.nodes}
    for value in graph.inputs:
        for node in graph.consumers[value.name]:
            order = carried(graph, node, node.inputs.index(value.name), natural(value.rank))
            if order is not None and order not in found[node.name]:
                found[node.name].append(order)
    queue = deque(found)
    while queue:
        name = queue.popleft()
        for order in list(found[name]):
            for other, matching in _neighbours(graph, name, order, True, True):
                orders = found[other]
                fits = allowed(graph, graph.producers[other], matching)
                if fits and matching not in orders and len(orders) < MAX_ORDERS:
                    orders.append(matching)
                    queue.append(other)
    return found


def _bytes(value: Value) -> int:
    """Bytes that a transpose of a value reads and writes."""
    return 2 * hint(math.prod(value.dims)) * itemsize(value.dtype)


def conversion(stored: Order, wanted: Order) -> Order:
    """The permutation that turns a value stored in one order into the other."""
    place = inverse(stored)
    return tuple(place[dim] for dim in wanted)
