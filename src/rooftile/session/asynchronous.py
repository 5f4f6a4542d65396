"""Runs in a thread of their own, which tells the outcome by a call."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

from rooftile.core.errors import RooftileError

Callback = Callable[[list[Any], Any, str], Any]
"""Takes the outputs, the caller's data, and what went wrong, or ""."""


def run_apart(session: Any, args: Sequence[Any], callback: Callback, user_data: Any) -> None:
    """Start `session.run(*args)` and call back from its thread.

    The interpreter waits for the thread before it exits, as for any that is no daemon.
    """

    def work() -> None:
        try:
            outputs, error = session.run(*args), ""
        except RooftileError as raised:
            outputs, error = [], str(raised)
        callback(outputs, user_data, error)

    threading.Thread(target=work, name="rooftile-run-async").start()
