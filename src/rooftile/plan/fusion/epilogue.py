"""What follows a dot or conv element by element, on its accumulators."""

from rooftile.plan.fusion.base import Group, Partition, Refusal, Rule, only
from rooftile.plan.partition import elements


def _applies(producer: Group, consumer: Group) -> bool:
    return bool(producer.anchors) and only(consumer, "elementwise", "view")


def _refuse(partition: Partition, producer: Group, consumer: Group) -> Refusal | None:
    made, wanted = producer.largest, elements(consumer.root.output)
    if made < wanted:
        return f"its {made} results would be computed again for {wanted} elements"
    return None


RULE = Rule("epilogue", _applies, _refuse)
