"""Locks that a forked child can use, whoever held them in the parent.

Of a process that forks only the forking thread lives on in the child: a lock that another thread
holds at that moment would stay locked for ever. So all locks of rooftile are made here and are free
in a child. What they guard is changed by single steps of Python objects, so it is sound there.
The lock of LLVM, behind which its own memory changes, is held across a fork instead.
"""

from __future__ import annotations

import os
import sys
import threading
import weakref
from contextlib import nullcontext
from typing import Any

_made: weakref.WeakSet[Any] = weakref.WeakSet()


def new_lock() -> Any:
    """A `threading.Lock` that is free in a forked child."""
    return _made_lock(threading.Lock())


def new_rlock() -> Any:
    """A `threading.RLock` that is free in a forked child."""
    return _made_lock(threading.RLock())


def _made_lock(lock: Any) -> Any:
    _made.add(lock)
    return lock


def _llvm_lock() -> Any:
    """LLVM's own lock; one that guards nothing where LLVM was not loaded."""
    llvm = sys.modules.get("llvmlite.binding.ffi")
    return nullcontext() if llvm is None else llvm.lib._lock


def _before() -> None:
    _held.append(_llvm_lock())
    _held[-1].__enter__()


def _after_in_parent() -> None:
    _held.pop().__exit__(None, None, None)


def _after_in_child() -> None:
    _after_in_parent()
    for lock in list(_made):
        lock._at_fork_reinit()  # what the standard library does to its own


_held: list[Any] = []
"""What is held across the fork in progress."""
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before, after_in_parent=_after_in_parent, after_in_child=_after_in_child
    )
