"""The one family of exceptions. Each message names the node, input or file, and the fix."""

from __future__ import annotations


class RooftileError(Exception):
    """Base of every error that rooftile raises on purpose."""


class InvalidModel(RooftileError):
    """The model file or graph breaks the rules of its format."""


class UnsupportedOp(RooftileError):
    """An operator, or one of its forms, that rooftile does not know."""


class UnsupportedType(RooftileError):
    """An element type that rooftile does not know."""


class InvalidInput(RooftileError):
    """A run-time input that does not fit the model's signature."""


class InvalidOption(RooftileError):
    """An option or argument outside its range."""


class InvalidIR(RooftileError):
    """A graph, tile or program text or record that its verifier refuses."""


class NotLowered(RooftileError):
    """A region that has no tile program; the planner treats it as a refusal."""


class NativeError(RooftileError):
    """LLVM refused a text, or an object could not be linked."""
