"""What a hostile model can run into becomes an error of rooftile: depth and memory."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from rooftile.core.errors import InvalidModel
from rooftile.ir.program import Program


@contextmanager
def guarded(model: str) -> Iterator[None]:
    """InvalidModel instead of RecursionError and MemoryError."""
    try:
        yield
    except RecursionError as error:
        raise InvalidModel(f"{model} holds graphs, functions or types nested too deep") from error
    except MemoryError as error:
        raise InvalidModel(f"{model} needs more memory than there is: {error}") from error


def check_memory(program: Program) -> Program:
    """The program itself; InvalidModel where a run needs more memory than the machine has."""
    needed = program.arena_bytes + program.constant_bytes
    needed += sum(port.nbytes for port in program.outputs)
    if needed > machine_bytes():
        raise InvalidModel(
            f"{program.name} needs {needed} bytes for a run, this machine has {machine_bytes()}; "
            "give it smaller inputs"
        )
    return program


def machine_bytes() -> int:
    """The memory of this machine."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):  # not on this system
        return 1 << 62
