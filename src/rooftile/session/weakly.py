"""Methods that do not keep their object alive.

A session that holds a bound method of its own would wait for the garbage collector, and its weights
with it, when the last reference to it goes.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import TypeVar

Result = TypeVar("Result")


def weakly(method: Callable[..., Result]) -> Callable[..., Result]:
    """A bound method for use by parts of its object: they do not live longer."""
    held = weakref.WeakMethod(method)

    def call(*args: object) -> Result:
        found = held()
        if found is None:
            raise AssertionError("a part of an object that is gone calls its method")
        return found(*args)

    return call
