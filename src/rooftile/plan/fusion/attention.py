"""A dot on the rows that another dot and a softmax made: scores, mask, softmax, values."""

from rooftile.plan.fusion.base import Group, Partition, Refusal, Rule
from rooftile.plan.partition import elements


def _applies(producer: Group, consumer: Group) -> bool:
    return (
        "reduce" in producer.kinds()
        and len(producer.anchors) <= 1
        and len(consumer.anchors) == 1
        and consumer.anchors[0].op == "dot"
    )


def _refuse(partition: Partition, producer: Group, consumer: Group) -> Refusal | None:
    dot = consumer.anchors[0]
    left = partition.graph.values[dot.inputs[0]]
    if elements(left) not in {elements(node.output) for node in producer.nodes}:
        return "the rows are not the dot's left operand: each tile would compute all of them"
    if not dot.attr("lhs_batch") and producer.anchors:
        return "without batch dims the second dot would wait for all rows of the first"
    return None


RULE = Rule("attention", _applies, _refuse)
