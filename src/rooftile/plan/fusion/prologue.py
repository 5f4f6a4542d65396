"""What is computed element by element on the operand of a dot, while it is brought into cache."""

from rooftile.plan.fusion.base import Group, Partition, Refusal, Rule, only
from rooftile.plan.partition import elements


def _applies(producer: Group, consumer: Group) -> bool:
    return only(producer, "elementwise", "view", "gather") and bool(consumer.anchors)


def _refuse(partition: Partition, producer: Group, consumer: Group) -> Refusal | None:
    if any(node.op == "conv" for node in consumer.anchors):
        windows = [
            partition.graph.values[node.inputs[1]].dims[:-2]
            for node in consumer.anchors
            if node.op == "conv"
        ]
        if any(extent > 1 for window in windows for extent in window):
            return "each element would be computed once for every tap of the window"
    made, wanted = elements(producer.root.output), elements(consumer.root.output)
    if len(consumer.anchors) > 1 and made < wanted:
        return "it would be computed again for each tile of rows"
    return None


RULE = Rule("prologue", _applies, _refuse)
