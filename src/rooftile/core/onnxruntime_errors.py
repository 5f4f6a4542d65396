"""Errors by the names under which onnxruntime raises them.

Nobody raises these: children of `RooftileError` have them as second bases, so that `except` clauses
written for onnxruntime catch them. Like those of onnxruntime, none is a child of another.
"""

from __future__ import annotations


class Fail(Exception):
    """What a graph or a node cannot do; runs that were ended."""


class InvalidArgument(Exception):
    """Inputs of the wrong name, type or shape."""


class InvalidGraph(Exception):
    """A graph that breaks the rules of its operators."""


class InvalidProtobuf(Exception):
    """A file that is no protobuf of a model."""


class NoSuchFile(Exception):
    """A path without a file."""


class NotImplemented(Exception):
    """An operator without a kernel."""


class RuntimeException(Exception):
    """What went wrong inside the runtime."""


class EngineError(Exception):
    """Never raised here."""


class EPFail(Exception):
    """Never raised here: nothing runs elsewhere."""


class DeviceReset(Exception):
    """Never raised here."""


class ModelLoadCanceled(Exception):
    """Never raised here: loading cannot be cancelled."""


class ModelLoaded(Exception):
    """Never raised here: a session loads one model, in its constructor."""


class ModelRequiresCompilation(Exception):
    """Never raised here: every model is compiled."""


class NoModel(Exception):
    """Never raised here: there is no session without a model."""


class NotFound(Exception):
    """Never raised here."""
