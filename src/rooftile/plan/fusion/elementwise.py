"""Chains of elementwise nodes and views in one sweep."""

from rooftile.plan.fusion.base import Group, Rule, never, only

MAPS = ("elementwise", "view", "gather")


def _applies(producer: Group, consumer: Group) -> bool:
    return only(producer, *MAPS) and only(consumer, *MAPS)


RULE = Rule("elementwise chain", _applies, never)
