"""Host calls: steps that a Python function computes on whole arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from rooftile.core.dtype import to_numpy
from rooftile.core.errors import InvalidModel
from rooftile.ir.program import HostCall, Port
from rooftile.runtime.arrays import Array

HostFunction = Callable[..., Sequence[Array]]
"""Takes the input arrays by position and the attributes by name; gives the output arrays."""


class BoundCall:
    """A host call with its function found."""

    def __init__(self, step: HostCall, functions: Mapping[str, HostFunction]) -> None:
        """InvalidModel if `functions` lacks the one that the step names."""
        function = functions.get(step.function)
        if function is None:
            raise InvalidModel(
                f"the program calls the host function {step.function!r}, which this version of "
                f"rooftile does not have; compile the model again"
            )
        self.step = step
        self.function = function
        self.attrs = dict(step.attrs)

    def __call__(self, find: Callable[[str], Array]) -> None:
        """Run it on the memory of a run: `find` gives the bytes of a buffer as a uint8 array."""
        step = self.step
        results = self.function(*(_view(port, find) for port in step.inputs), **self.attrs)
        if len(results) != len(step.outputs):
            raise InvalidModel(
                f"host function {step.function!r} gave {len(results)} arrays, the program expects "
                f"{len(step.outputs)}"
            )
        for port, result in zip(step.outputs, results, strict=True):
            array = np.asarray(result)
            if array.shape != port.shape or array.dtype != to_numpy(port.dtype):
                raise InvalidModel(
                    f"host function {step.function!r} gave {array.dtype}{list(array.shape)} for "
                    f"{port.name!r}, the program expects {port.dtype}{list(port.shape)}"
                )
            _view(port, find)[...] = array


def _view(port: Port, find: Callable[[str], Array]) -> Array:
    memory = find(port.buffer)[: port.nbytes]
    return memory.view(to_numpy(port.dtype)).reshape(port.shape)
