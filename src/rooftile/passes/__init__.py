"""Rewrites of canonical ops that are right on every machine. A pass is a function on graphs."""

from rooftile.passes.simplify import LEVELS, Pass, simplify

__all__ = ["LEVELS", "Pass", "simplify"]
