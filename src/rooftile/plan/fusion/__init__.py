"""Fusion: which nodes become one kernel. A rule lives in a file of its own."""

from rooftile.plan.fusion.planner import RULES, Trial, fuse

__all__ = ["RULES", "Trial", "fuse"]
