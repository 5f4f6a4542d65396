"""Pooling with what comes before and after it, where windows do not overlap."""

from rooftile.plan.fusion.base import Group, Partition, Refusal, Rule, only

AROUND = ("elementwise", "view", "window")


def _applies(producer: Group, consumer: Group) -> bool:
    first, second = "window" in producer.kinds(), "window" in consumer.kinds()
    if not (first or second) or not only(consumer, *AROUND):
        return False
    return only(producer, *AROUND) or (len(producer.anchors) == 1 and second and not first)


def _refuse(partition: Partition, producer: Group, consumer: Group) -> Refusal | None:
    if "window" in producer.kinds() and "window" in consumer.kinds():
        return "one window inside another would compute each element again"
    for node in consumer.nodes:
        if node.op != "reduce_window":
            continue
        pairs = zip(node.attr("window"), node.attr("strides"), strict=True)
        if any(size > step for size, step in pairs):
            return "the windows overlap: elements would be computed more than once"
        if any(node.attr("pads_low")) or any(node.attr("pads_high")):
            return "the window reads padding around what is computed"
    return None


RULE = Rule("pooling", _applies, _refuse)
