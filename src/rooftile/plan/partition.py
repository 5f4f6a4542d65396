"""A graph divided into groups of nodes, each of which becomes one region.

Views (reshape, transpose, slice, pad, broadcast) belong to no group: whoever reads a view computes
its indices. A view that something reads as memory is a group of its own, a copy.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass

from rooftile.core.errors import InvalidIR
from rooftile.core.symbolic import hint
from rooftile.ir.graph import Graph, Node, Region, Value
from rooftile.ops import OPS

VIEWS = frozenset(("reshape", "transpose", "slice", "pad", "broadcast"))
ANCHORS = frozenset(("dot", "conv"))
MOST_BETWEEN = 3
"""Groups between two that are joined with them: a softmax has one or two between its ends."""
ALONE = frozenset(("scan", "host"))
"""Kinds of ops that are no part of a kernel: each is a region of its own and reads memory."""


@dataclass
class Group:
    """Nodes that one kernel computes, in the graph's order."""

    number: int
    nodes: tuple[Node, ...]

    @property
    def root(self) -> Node:
        """The last node."""
        return self.nodes[-1]

    def kinds(self) -> dict[str, list[Node]]:
        """The nodes by the kind of their op."""
        found: dict[str, list[Node]] = {}
        for node in self.nodes:
            found.setdefault(OPS[node.op].kind, []).append(node)
        return found

    @property
    def anchors(self) -> list[Node]:
        """Its dots and convs."""
        return [node for node in self.nodes if node.op in ANCHORS]

    @property
    def largest(self) -> int:
        """Elements of its largest result."""
        return max(elements(node.output) for node in self.nodes)

    @property
    def name(self) -> str:
        """It goes by its last node's name."""
        return self.root.name


def is_alone(node: Node) -> bool:
    """Whether a node is no part of a kernel, but a region of its own."""
    return OPS[node.op].kind in ALONE


def alone(graph: Graph, node: Node) -> Region:
    """The region of such a node."""
    inputs = tuple(graph.values[name] for name in dict.fromkeys(node.inputs))
    return Region(node.name, (node,), inputs, node.outputs)


class Partition:
    """Groups, and which of them computes each value."""

    def __init__(
        self, graph: Graph, memory_readers: frozenset[str], aliases: Container[str] = ()
    ) -> None:
        """`memory_readers`: ops that read their inputs as memory, such as concat and host ops.

        `aliases`: outputs that other memory holds, which no kernel writes.
        """
        self.graph = graph
        self.order = {node.name: number for number, node in enumerate(graph.nodes)}
        self.memory_readers = memory_readers
        self.groups: dict[int, Group] = {}
        self.owner: dict[str, int] = {}
        outputs = set(graph.outputs)
        for node in graph.nodes:
            if node.op in memory_readers or node.name in aliases or not elements(node.output):
                continue
            read = any(user.op in memory_readers for user in graph.consumers[node.name])
            if node.op not in VIEWS or node.name in outputs or read:
                self.make(node)

    def make(self, node: Node) -> Group:
        """A group of one node; a view becomes a copy."""
        group = Group(self.order[node.name], (node,))
        self.groups[group.number] = group
        self.owner[node.name] = group.number
        return group

    def readers(self, value: str) -> tuple[set[int], bool]:
        """The groups that read a value, through views, and whether it must lie in memory."""
        users = list(self.users(value))
        memory = any(node.op in self.memory_readers for node in users)
        groups = {self.owner[node.name] for node in users if node.op not in self.memory_readers}
        return groups, memory or value in self.graph.outputs

    def users(self, value: str) -> Iterator[Node]:
        """The nodes that read a value, through the views that belong to no group."""
        todo, seen = [value], {value}
        while todo:
            for node in self.graph.consumers[todo.pop()]:
                if node.op in self.memory_readers or node.name in self.owner:
                    yield node
                elif node.name not in seen:
                    seen.add(node.name)
                    todo.append(node.name)

    def producers(self, group: Group) -> list[int]:
        """The other groups whose values it reads, in order of the graph."""
        found: set[int] = set()
        for name in self._reached(group.nodes)[1]:
            number = self.owner.get(name)
            if number is not None and number != group.number:
                found.add(number)
        return sorted(found)

    def escaping(self, group: Group, into: Group) -> str:
        """The first value of `group` that something outside the two needs."""
        inside = {group.number, into.number}
        for node in group.nodes:
            groups, memory = self.readers(node.name)
            if memory or not groups <= inside:
                return node.name
        return group.name

    def between(self, producer: Group, consumer: Group) -> list[Group] | None:
        """The groups on the paths from one to the other, in order; None where values of `producer`
        or of these are needed elsewhere too."""
        found: dict[int, Group] = {}
        todo = [producer]
        while todo:
            for node in todo.pop().nodes:
                readers, memory = self.readers(node.name)
                if memory:
                    return None
                for number in readers - {producer.number, consumer.number} - set(found):
                    found[number] = self.groups[number]
                    todo.append(found[number])
            if len(found) > MOST_BETWEEN:
                return None
        return [found[number] for number in sorted(found)]

    def joined(self, *groups: Group) -> Group:
        """The group that all would make, under the last one's number; nothing changes yet."""
        nodes = sorted((n for g in groups for n in g.nodes), key=lambda n: self.order[n.name])
        return Group(groups[-1].number, tuple(nodes))

    def replace(self, groups: Iterable[Group], merged: Group) -> None:
        """Let `merged` stand for the groups that it joins."""
        for group in groups:
            del self.groups[group.number]
        self.groups[merged.number] = merged
        for node in merged.nodes:
            self.owner[node.name] = merged.number

    def region(self, group: Group) -> Region:
        """The region of a group: its nodes and the views it looks through."""
        nodes, inputs = self._reached(group.nodes)
        values = self.graph.values
        outputs = []
        for node in group.nodes:
            groups, memory = self.readers(node.name)
            if memory or groups - {group.number}:
                outputs += list(node.outputs)
        if not outputs:
            outputs = list(group.root.outputs)
        return Region(group.name, nodes, tuple(values[name] for name in inputs), tuple(outputs))

    def _reached(self, own: Iterable[Node]) -> tuple[tuple[Node, ...], list[str]]:
        """The nodes with the views in front of them, and what they read from memory."""
        graph = self.graph
        nodes = {node.name: node for node in own}
        made = {value.name for node in nodes.values() for value in node.outputs}
        inputs: dict[str, None] = {}
        todo = list(nodes.values())
        while todo:
            node = todo.pop()
            for name in node.inputs:
                if name in made:
                    continue
                producer = graph.producers.get(name)
                if producer is None or name in self.owner or producer.op in self.memory_readers:
                    inputs[name] = None
                    continue
                if producer.op not in VIEWS:
                    raise InvalidIR(f"%{name} belongs to no group")
                nodes[producer.name] = producer
                made.add(producer.name)
                todo.append(producer)
        ordered = sorted(nodes.values(), key=lambda n: self.order[n.name])
        names = sorted(inputs, key=lambda n: (self.order.get(n, -1), n))
        return tuple(ordered), names


def elements(value: Value) -> int:
    """How many elements a value has, of symbolic extents at the numbers at hand."""
    count = 1
    for extent in value.dims:
        count *= hint(extent)
    return count
