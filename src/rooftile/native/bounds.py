"""How native code that checks its accesses reports the one that would leave its memory.

Beside each function that checks lies a record: a global of its object with the symbol
`record_symbol(function)`. The function fills it in and returns `OUTSIDE`, the access not made.
"""

from __future__ import annotations

import ctypes
import os
from dataclasses import dataclass

from rooftile.core.errors import InvalidOption, NativeError
from rooftile.native.library import Library

SWITCH = "ROOFTILE_BOUNDS"
"""Environment variable: 1 lets generated code check every access."""
OUTSIDE = 2
"""What a function returns that met an access outside its memory."""


class _Record(ctypes.Structure):
    """What lies at a record's symbol; `what` is null as long as nothing is reported."""

    _fields_ = [
        ("what", ctypes.c_char_p),
        ("offset", ctypes.c_int64),
        ("nbytes", ctypes.c_int64),
        ("extent", ctypes.c_int64),
    ]


@dataclass(frozen=True)
class Violation:
    """An access of `nbytes` bytes at byte `offset` of memory that has `extent` bytes; `what` says
    whose access, and of which buffer."""

    what: str
    offset: int
    nbytes: int
    extent: int

    def __str__(self) -> str:
        return f"{self.what}: {self.nbytes} bytes at byte {self.offset} of {self.extent}"


def checks_bounds() -> bool:
    """Whether ROOFTILE_BOUNDS asks for checked code; InvalidOption for anything but 0 and 1."""
    value = os.environ.get(SWITCH, "")
    if value not in ("", "0", "1"):
        raise InvalidOption(f"{SWITCH}={value} is not known; set it to 1 to check, or unset it")
    return value == "1"


def record_symbol(function: str) -> str:
    """The symbol of a function's record."""
    return f"{function}.bounds"


def take_violation(library: Library, function: str) -> Violation | None:
    """What a function of a library reported last, which is forgotten; None where there is nothing.

    Of threads that fail at the same time one may find nothing.
    """
    try:
        record = _Record.from_address(library.address(record_symbol(function)))
    except NativeError:  # made without checks
        return None
    if record.what is None:
        return None
    found = Violation(record.what.decode(), record.offset, record.nbytes, record.extent)
    record.what = None
    return found
