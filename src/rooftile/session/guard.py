"""What a hostile model can run into becomes an error of rooftile: depth and memory."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from rooftile.core.errors import InvalidModel
from rooftile.core.limits import machine_bytes
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


def check_shapes(model: str, shapes: Iterable[Sequence[int]]) -> None:
    """InvalidModel for an input that this machine could not even hold, whatever its type."""
    for shape in shapes:
        if math.prod(shape) > machine_bytes():
            raise InvalidModel(
                f"{model} takes an input of shape {list(shape)}, which this machine cannot hold"
            )
