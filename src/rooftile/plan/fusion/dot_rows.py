"""Reductions of the rows that a dot computes: LayerNorm or softmax behind a matmul."""

from rooftile.plan.fusion.base import Group, Partition, Refusal, Rule, only
from rooftile.plan.fusion.rows import trailing
from rooftile.plan.partition import elements


def _applies(producer: Group, consumer: Group) -> bool:
    return (
        len(producer.anchors) == 1
        and only(consumer, "elementwise", "view", "reduce")
        and "reduce" in consumer.kinds()
    )


def _refuse(partition: Partition, producer: Group, consumer: Group) -> Refusal | None:
    for node in consumer.nodes:
        if node.op != "reduce":
            continue
        if not trailing(partition, node):
            return "the reduced dims are not the innermost: no tile of rows holds them"
        if producer.largest < elements(partition.graph.values[node.inputs[0]]):
            return "the dot would be computed again along the reduced rows"
    return None


RULE = Rule("rows behind a dot", _applies, _refuse)
