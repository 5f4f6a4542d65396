"""A depthwise convolution and the pointwise one behind it: the rows between them stay in cache."""

from rooftile.ir.graph import Node
from rooftile.plan.fusion.base import Group, Partition, Refusal, Rule


def _applies(producer: Group, consumer: Group) -> bool:
    return (
        len(producer.anchors) == 1
        and len(consumer.anchors) == 1
        and (producer.anchors[0].op == "conv" and consumer.anchors[0].op == "conv")
    )


def _refuse(partition: Partition, producer: Group, consumer: Group) -> Refusal | None:
    first, second = producer.anchors[0], consumer.anchors[0]
    values = partition.graph.values
    if not _is_depthwise(first, values[first.inputs[1]].dims):
        return "the first conv would be computed again for each tile of the second's channels"
    if any(extent > 1 for extent in values[second.inputs[1]].dims[:-2]):
        return "the second conv's window would compute rows of the first more than once"
    if any(step > 1 for step in second.attr("strides")):
        return "the second conv skips rows that the first would compute"
    return None


def _is_depthwise(node: Node, weights: tuple[int, ...]) -> bool:
    return bool(weights[-2] == 1 and node.attr("groups") == weights[-1])


RULE = Rule("depthwise and pointwise", _applies, _refuse)
