"""How a run is asked to end before it is through: a flag that native loops read in each iteration.

The entry of a program finds the address of the flag, an i32, behind its pointers to inputs.
"""

from __future__ import annotations

import ctypes

from rooftile.core.errors import Terminated

STOPPED = 3
"""What a function returns that found the flag set."""


class Stop:
    """A flag that any thread may set or clear; runs that are given it end where it is set."""

    def __init__(self) -> None:
        self._flag = ctypes.c_int32(0)

    @property
    def is_set(self) -> bool:
        """Whether runs have to end."""
        return bool(self._flag.value)

    @property
    def address(self) -> int:
        """Where the flag lies, as long as this object lives."""
        return ctypes.addressof(self._flag)

    def set(self, wanted: bool = True) -> None:
        """Ask runs to end, or no longer."""
        self._flag.value = int(wanted)

    def check(self, model: str) -> None:
        """Terminated, naming the model, where the flag is set."""
        if self.is_set:
            raise terminated(model)


def terminated(where: str) -> Terminated:
    """The error of a run that was asked to end."""
    return Terminated(f"{where}: the run was ended, for `terminate` of its RunOptions is true")


NEVER = Stop()
"""For runs that nobody ends."""
