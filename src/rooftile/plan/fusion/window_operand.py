"""A pooled value as an operand of what follows a dot or conv, read window by window."""

from rooftile.plan.fusion.base import Group, Partition, Refusal, Rule, only
from rooftile.plan.partition import elements


def _applies(producer: Group, consumer: Group) -> bool:
    return (
        only(producer, "elementwise", "view", "window")
        and "window" in producer.kinds()
        and len(consumer.anchors) == 1
    )


def _refuse(partition: Partition, producer: Group, consumer: Group) -> Refusal | None:
    anchor = consumer.anchors[0]
    if any(name in {n.name for n in producer.nodes} for name in anchor.inputs):
        return "the dot would compute each window again for every tap"
    if elements(producer.root.output) > elements(anchor.output):
        return "it has more elements than the dot it would follow"
    return None


RULE = Rule("pooled operand", _applies, _refuse)
