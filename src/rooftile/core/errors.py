"""The one family of exceptions. Each message names the node, input or file, and the fix.

Second bases are there for code written for onnxruntime: what it catches there, it catches here.
"""

from __future__ import annotations

from rooftile.core import onnxruntime_errors as ort


class RooftileError(Exception):
    """Base of every error that rooftile raises on purpose."""


class InvalidModel(RooftileError, ort.InvalidGraph, ort.Fail):
    """The model file or graph breaks the rules of its format."""


class MissingFile(InvalidModel, ort.NoSuchFile):
    """There is no file of this name."""


class NotAModel(InvalidModel, ort.InvalidProtobuf, ort.InvalidArgument):
    """Bytes that are no model at all, or are cut short."""


class WrongKind(InvalidModel, TypeError):
    """An object that no model can be read from."""


class UnsupportedOp(RooftileError, ort.NotImplemented, ort.InvalidGraph, ort.Fail):
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


class UnsupportedType(RooftileError, ort.NotImplemented, ort.InvalidGraph, ort.Fail):
    """An element type that rooftile does not know. `at` as in `UnsupportedOp`."""

    at = -1


class InvalidInput(RooftileError, ort.InvalidArgument):
    """A run-time input that does not fit the model's signature."""


class MissingInput(InvalidInput, ValueError):
    """A run that is not given all inputs."""


class NoTensor(InvalidInput, RuntimeError):
    """A value that no tensor can be made of, or memory that a bound tensor does not fit."""


class Terminated(RooftileError, ort.Fail):
    """A run that ended early because `terminate` of its RunOptions was set."""


class InvalidOption(RooftileError, ValueError, RuntimeError):
    """An option or argument outside its range."""


class InvalidIR(RooftileError):
    """A graph, tile or program text or record that its verifier refuses."""


class NotLowered(RooftileError):
    """A region that has no tile program; the planner treats it as a refusal."""


class OutOfBounds(RooftileError, ort.RuntimeException):
    """Checked code (ROOFTILE_BOUNDS=1) met an access outside its buffer: a bug of rooftile."""


class NativeError(RooftileError, ort.RuntimeException):
    """LLVM refused a text, or an object could not be linked."""
