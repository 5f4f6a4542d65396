"""IOBinding: inputs and outputs named ahead of a run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from rooftile.core.errors import InvalidInput
from rooftile.session.values import Array, OrtValue, at_address, check_device, copy_into


class IOBinding:
    """What a session's next runs read and write. Made by `InferenceSession.io_binding`."""

    def __init__(self, session: Any) -> None:
        self._session = session
        self._inputs: dict[str, Array] = {}
        self._bound: dict[str, Array | None] = {}
        self._outputs: list[OrtValue] = []

    def bind_cpu_input(self, name: str, arr_on_cpu: Array) -> None:
        """Read an input from an array."""
        self._inputs[name] = arr_on_cpu

    def bind_ortvalue_input(self, name: str, ortvalue: OrtValue) -> None:
        """Read an input from a value."""
        self._inputs[name] = ortvalue.numpy()

    def bind_input(
        self,
        name: str,
        device_type: str,
        device_id: int,
        element_type: npt.DTypeLike,
        shape: Sequence[int],
        buffer_ptr: int,
    ) -> None:
        """Read an input from memory at an address."""
        check_device(device_type)
        self._inputs[name] = at_address(buffer_ptr, shape, element_type)

    def bind_output(
        self,
        name: str,
        device_type: str = "cpu",
        device_id: int = 0,
        element_type: npt.DTypeLike = np.float32,
        shape: Sequence[int] | None = None,
        buffer_ptr: int | None = None,
    ) -> None:
        """Ask for an output: a new array, or memory at an address."""
        check_device(device_type)
        if buffer_ptr is None:
            self._bound[name] = None
            return
        if shape is None:
            raise InvalidInput(f"output {name!r} is bound to memory without a shape; give `shape`")
        self._bound[name] = at_address(buffer_ptr, shape, element_type)

    def bind_ortvalue_output(self, name: str, ortvalue: OrtValue) -> None:
        """Write an output into a value."""
        self._bound[name] = ortvalue.numpy()

    def get_outputs(self) -> list[OrtValue]:
        """The outputs of the last run, in the order in which they were bound."""
        return list(self._outputs)

    def copy_outputs_to_cpu(self) -> list[Array]:
        """The same as arrays."""
        return [value.numpy() for value in self._outputs]

    def clear_binding_inputs(self) -> None:
        """Forget the inputs."""
        self._inputs.clear()

    def clear_binding_outputs(self) -> None:
        """Forget the outputs."""
        self._bound.clear()
        self._outputs.clear()

    def synchronize_inputs(self) -> None:
        """Nothing to wait for on a CPU."""

    def synchronize_outputs(self) -> None:
        """Nothing to wait for on a CPU."""

    def run(self, run_options: Any = None) -> None:
        """Run the session on what is bound."""
        names = list(self._bound)
        if not names:
            raise InvalidInput("no output is bound; call bind_output with its name")
        results = self._session.run(names, self._inputs, run_options)
        outputs = []
        for name, result in zip(names, results, strict=True):
            target = self._bound[name]
            if target is not None:
                copy_into(target, result, f"the memory bound to output {name!r}")
            outputs.append(OrtValue(result if target is None else target))
        self._outputs = outputs
