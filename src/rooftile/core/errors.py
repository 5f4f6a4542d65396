"""The one family of exceptions. Each message names the node, input or file, and the fix."""

from __future__ import annotations


class RooftileError(Exception):
    """Base of every error that rooftile raises on purpose."""


class InvalidModel(RooftileError):
    """The model file or graph breaks the rules of its format."""


class UnsupportedOp(RooftileError):
    """An operator, or one of its forms, that rooftile does not know.

    `at` is the place of the node in its graph where a reader met it, else -1.
    """

    at = -1


class NeedsValue(UnsupportedOp):
    """A node that can be compiled once some values are known, which are computed at run time.

    `inputs`: small inputs of the graph whose contents would do; empty where larger ones matter.
    `values`: the values nearest to the node whose contents would do. Sessions act on it.
    """

    inputs: tuple[str, ...] = ()
    values: tuple[str, ...] = ()


class NeedsHost(UnsupportedOp):
    """A node that no kernel computes as it stands, such as a loop whose trips depend on data."""


class UnsupportedType(RooftileError):
    """An element type that rooftile does not know. `at` as in `UnsupportedOp`."""

    at = -1


class InvalidInput(RooftileError):
    """A run-time input that does not fit the model's signature."""


class Terminated(RooftileError):
    """A run that ended early because `terminate` of its RunOptions was set."""


class InvalidOption(RooftileError):
    """An option or argument outside its range."""


class InvalidIR(RooftileError):
    """A graph, tile or program text or record that its verifier refuses."""


class NotLowered(RooftileError):
    """A region that has no tile program; the planner treats it as a refusal."""


class OutOfBounds(RooftileError):
    """Checked code (ROOFTILE_BOUNDS=1) met an access outside its buffer: a bug of rooftile."""


class NativeError(RooftileError):
    """LLVM refused a text, or an object could not be linked."""
