"""What follows a dot or conv element by element, on its accumulators."""

from rooftile.core.symbolic import symbolic
from rooftile.plan.fusion.base import Group, Partition, Refusal, Rule, only
from rooftile.plan.partition import elements


def _applies(producer: Group, consumer: Group) -> bool:
    return bool(producer.anchors) and only(consumer, "elementwise", "view")


def _refuse(partition: Partition, producer: Group, consumer: Group) -> Refusal | None:
    made, wanted = producer.largest, elements(consumer.root.output)
    if made < wanted:
        return f"its {made} results would be computed again for {wanted} elements"
    root = consumer.root
    if root.op == "transpose" and symbolic(root.output.dims[-1:]):
        return "it would be stored across its vectors, along a dim whose extent a run knows"
    return None


RULE = Rule("epilogue", _applies, _refuse)
