"""IOBinding: inputs and outputs named ahead of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from rooftile.core.errors import InvalidInput, NoTensor
from rooftile.session.values import Array, OrtValue, at_address, check_device, copy_into, plain

if TYPE_CHECKING:
    from rooftile.runtime import Executable


class IOBinding:
    """What a session's next runs read and write. Made by `InferenceSession.io_binding`.

    Outputs that are bound to memory are written there directly where their shape and type are the
    model's, and the memory is dense and no input's; else they are copied there.
    Errors of what is bound are `NoTensor`, which is a RuntimeError, as those of onnxruntime are.
    """

    def __init__(self, session: Any) -> None:
        self._session = session
        self._names = {item.name for item in session.get_inputs()}
        self._names |= {item.name for item in session.get_overridable_initializers()}
        self._inputs: dict[str, Any] = {}
        self._bound: dict[str, Array | None] = {}
        self._outputs: list[OrtValue] = []

    def bind_cpu_input(self, name: str, arr_on_cpu: Array) -> None:
        """Read an input from an array."""
        self._bind_input(name, arr_on_cpu)

    def bind_ortvalue_input(self, name: str, ortvalue: OrtValue) -> None:
        """Read an input from a value."""
        self._bind_input(name, plain(ortvalue))

    def bind_input(
        self,
        name: str,
        device_type: str,
        device_id: int,
        element_type: npt.DTypeLike | int,
        shape: Sequence[int],
        buffer_ptr: int,
    ) -> None:
        """Read an input from memory at an address."""
        check_device(device_type)
        self._bind_input(name, at_address(buffer_ptr, shape, element_type))

    def bind_output(
        self,
        name: str,
        device_type: str = "cpu",
        device_id: int = 0,
        element_type: npt.DTypeLike | int = np.float32,
        shape: Sequence[int] | None = None,
        buffer_ptr: int | None = None,
    ) -> None:
        """Ask for an output: a new array, or memory at an address."""
        check_device(device_type)
        if buffer_ptr is None:
            self._bound[name] = None
            return
        if shape is None:
            raise NoTensor(f"output {name!r} is bound to memory without a shape; give `shape`")
        self._bound[name] = at_address(buffer_ptr, shape, element_type)

    def bind_ortvalue_output(self, name: str, ortvalue: OrtValue) -> None:
        """Write an output into a value."""
        self._bound[name] = ortvalue.numpy()

    def get_outputs(self) -> list[OrtValue]:
        """The outputs of the last run, in the order in which they were bound."""
        return list(self._outputs)

    def get_outputs_as_ortvaluevector(self) -> list[OrtValue]:
        """The same."""
        return self.get_outputs()

    def copy_outputs_to_cpu(self) -> list[Any]:
        """The same as arrays."""
        return [plain(value) for value in self._outputs]

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
            raise NoTensor("no output is bound; call bind_output with its name")
        targets = {name: array for name, array in self._bound.items() if array is not None}
        try:
            results = self._session.run(names, self._inputs, run_options, into=targets)
        except NoTensor:
            raise
        except InvalidInput as error:
            raise NoTensor(str(error)) from error
        for name, result in zip(names, results, strict=True):
            target = targets.get(name)
            if target is not None and target is not result:
                copy_into(target, result, f"the memory bound to output {name!r}")
        self._outputs = [
            OrtValue(targets.get(name, result)) for name, result in zip(names, results, strict=True)
        ]

    def _bind_input(self, name: str, value: Any) -> None:
        if name not in self._names:
            listed = ", ".join(map(repr, sorted(self._names)))
            raise NoTensor(f"the model has no input {name!r} to bind; it takes {listed}")
        self._inputs[name] = value


def written_into(
    executable: Executable,
    names: Sequence[str],
    values: Sequence[Any],
    into: Mapping[str, Array],
) -> list[Array]:
    """An array for each output of a program: the caller's where the program can write it.

    Kernels write an output while they may still read inputs and other outputs, so memory of the
    caller that overlaps those is left out.
    """
    found: list[Array] = []
    taken = [value for value in values if isinstance(value, np.ndarray)]
    for place, name in enumerate(names):
        target = into.get(name)
        if target is None or not executable.fits(place, target) or _overlaps(target, taken):
            target = executable.new_output(place)
        else:
            taken.append(target)
        found.append(target)
    return found


def _overlaps(target: Array, others: Sequence[Array]) -> bool:
    return any(np.may_share_memory(target, other) for other in others)
