"""Reductions of rows with what surrounds them: softmax, LayerNorm, means."""

from rooftile.ir.graph import Node
from rooftile.plan.fusion.base import Group, Partition, Refusal, Rule, only

ROWS = ("elementwise", "view", "reduce", "gather")


def _applies(producer: Group, consumer: Group) -> bool:
    reduces = "reduce" in producer.kinds() or "reduce" in consumer.kinds()
    return reduces and only(producer, *ROWS) and only(consumer, *ROWS)


def _refuse(partition: Partition, producer: Group, consumer: Group) -> Refusal | None:
    for node in (*producer.nodes, *consumer.nodes):
        if node.op == "reduce" and not trailing(partition, node):
            follows = any(n.op != "reduce" for n in consumer.nodes) or node in producer.nodes
            if follows and _used_again(partition, node, producer, consumer):
                return "the reduced dims are not the innermost: its rows do not lie together"
    return None


def trailing(partition: Partition, node: Node) -> bool:
    """Whether a reduction takes the innermost dims (of more than one element)."""
    shape = partition.graph.values[node.inputs[0]].dims
    wide = [dim for dim, extent in enumerate(shape) if extent > 1]
    dims = [dim for dim in wide if dim in node.attr("dims")]
    return not dims or dims == wide[-len(dims) :]


def _used_again(partition: Partition, node: Node, producer: Group, consumer: Group) -> bool:
    """Whether the reduced result meets, in the same kernel, more than elements of its own place,
    such as what it was reduced from."""
    names = {n.name for n in (*producer.nodes, *consumer.nodes)}
    todo = [node]
    while todo:
        users = [user for user in partition.users(todo.pop().name) if user.name in names]
        if any(user.output.dims != node.output.dims for user in users):
            return True
        todo += users
    return False


RULE = Rule("rows", _applies, _refuse)
