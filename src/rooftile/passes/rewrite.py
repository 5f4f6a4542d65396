"""The driver of rules: a rule looks at one node, and gives the value that replaces it or None."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from rooftile.core.dtype import to_numpy
from rooftile.ir.graph import Array, Graph, Node, Value
from rooftile.ops import OPS
from rooftile.ops.builder import Builder
from rooftile.passes.dead import remove_dead

Rule = Callable[["Match", Node], "Value | None"]


class Match:
    """What a rule may ask and do. It sees the graph as rewritten so far."""

    def __init__(self, graph: Graph) -> None:
        self.builder = Builder(graph)
        self._producers: dict[str, Node] = {}
        self._seen = 0
        self._readers = Counter(name for node in graph.nodes for name in set(node.inputs))
        self._readers.update(graph.outputs)
        self._uses: Counter[str] = Counter()
        self._now: dict[str, str] = {}
        for value in graph.inputs:
            self.replace(value.name, value)
        for name in graph.constants:
            self.replace(name, self.builder.values[name])

    def value(self, name: str) -> Value:
        """A value of the rewritten graph by name."""
        return self.builder.values[name]

    def inputs(self, node: Node) -> list[Value]:
        """The inputs of a node as values."""
        return [self.builder.values[name] for name in node.inputs]

    def producer(self, value: Value, *ops: str) -> Node | None:
        """The node that computes a value, if its op is one of those (or of any op)."""
        for node in self.builder.nodes[self._seen :]:
            self._producers.update((output.name, node) for output in node.outputs)
        self._seen = len(self.builder.nodes)
        node_ = self._producers.get(value.name)
        return node_ if node_ is not None and (not ops or node_.op in ops) else None

    def single_use(self, value: Value) -> bool:
        """Whether one node alone reads the value; being an output counts as a use."""
        return self._uses.get(value.name, 1) == 1

    def array(self, value: Value) -> Array | None:
        """The content of a constant, else None."""
        return self.builder.constants.get(value.name)

    def constant(self, content: Any, dtype: str) -> Value:
        """A new constant."""
        return self.builder.constant(np.asarray(content).astype(to_numpy(dtype)))

    def emit(self, of: Sequence[Node], op: str, /, *inputs: Value, **attributes: Any) -> Value:
        """A new node that takes over work of the nodes `of`: it carries their origins."""
        self._from(of)
        return self.builder.emit(op, *inputs, **attributes)

    def like(self, of: Sequence[Node], inputs: Sequence[Value]) -> Value:
        """The first of the nodes `of` again, on other inputs, with the origins of all."""
        return self.emit(of, of[0].op, *inputs, **dict(of[0].attrs))

    def replace(self, name: str, value: Value) -> None:
        """From here on `value` stands for what the old graph calls `name`."""
        self._now[name] = value.name
        self._uses[value.name] += self._readers[name]

    def current(self, node: Node) -> Node:
        """A node of the old graph, reading the values that stand for its inputs now."""
        inputs = tuple(self._now[name] for name in node.inputs)
        if inputs == node.inputs:
            return node
        return Node(node.op, inputs, node.outputs, node.attrs, node.origin)

    def now(self, name: str) -> Value:
        """What stands for a value of the old graph."""
        return self.builder.values[self._now[name]]

    def _from(self, nodes: Sequence[Node]) -> None:
        self.builder.origin = tuple(dict.fromkeys(name for node in nodes for name in node.origin))


def rewrite(graph: Graph, rule: Rule) -> Graph:
    """The graph after one sweep of a rule in order; the same object where it matches nowhere.

    Outputs keep their names.
    """
    match, changed = Match(graph), False
    for old in graph.nodes:
        node = match.current(old)
        kept = len(node.outputs) != 1 or _names_output(match, graph, node)
        result = None if kept else rule(match, node)
        if result is None or result.name == node.name:
            match.builder.append(node)
            for value in old.outputs:
                match.replace(value.name, value)
        else:
            match.replace(node.name, result)
            changed = True
    if not changed:
        return graph
    match.builder.origin = ()
    outputs = {name: match.now(name) for name in graph.outputs}
    return remove_dead(match.builder.finish(graph.name, outputs))


def _names_output(match: Match, graph: Graph, node: Node) -> bool:
    """Whether the node is there only to give an output a name of its own (`Builder.finish`)."""
    if node.op != "reshape" or node.name not in graph.outputs:
        return False
    x = match.value(node.inputs[0])
    own = x.name in graph.outputs or match.producer(x) is None
    return own and x.shape == node.output.shape


def is_elementwise(node: Node) -> bool:
    """Whether an op works element by element with implicit broadcast."""
    return OPS[node.op].kind == "elementwise" and bool(node.inputs)


def with_constant(match: Match, node: Node) -> tuple[Value, Value] | None:
    """The operand that is computed and the one that is constant, for a node with one of each.

    Only for ops in which the order does not matter, and for a constant on the right.
    """
    if len(node.inputs) != 2:
        return None
    a, b = match.inputs(node)
    left, right = match.array(a) is not None, match.array(b) is not None
    if right and not left:
        return a, b
    if left and not right and node.op in COMMUTATIVE:
        return b, a
    return None


COMMUTATIVE = frozenset({"add", "mul", "max", "min", "eq", "and", "or"})
