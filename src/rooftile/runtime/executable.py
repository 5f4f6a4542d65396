"""A program linked into this process, ready to run."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import starmap
from typing import Any

import numpy as np

from rooftile.core.dtype import to_numpy
from rooftile.core.errors import InvalidInput, InvalidModel, OutOfBounds, RooftileError
from rooftile.ir.program import HostCall, Launch, Loop, Program, Step, verify
from rooftile.ir.program.records import label, loop_symbol, segment_symbol
from rooftile.native import NEVER, Library, Stop, aligned, has_pool, shared_pool
from rooftile.native.bounds import OUTSIDE, take_violation
from rooftile.native.stop import STOPPED, terminated
from rooftile.runtime.arrays import Array, Taker, address
from rooftile.runtime.frame import Frame
from rooftile.runtime.gate import UNFIT, gate
from rooftile.runtime.host_call import BoundCall, HostFunction
from rooftile.runtime.profile import ENTRY, profile

_ENTRY_TYPE = ctypes.CFUNCTYPE(ctypes.c_int32, *[ctypes.c_void_p] * 4)


class Executable:
    """A program with its code and constants in memory. Safe to run from several threads.

    Each run in progress has an arena of its own; arenas are kept and used again. Launches of a
    program of several threads share the process's pool, where the platform has one.
    """

    def __init__(
        self,
        program: Program,
        objects: Sequence[bytes],
        functions: Mapping[str, str],
        constants: Any,
        host_functions: Mapping[str, HostFunction] | None = None,
        library: Library | None = None,
    ) -> None:
        """Link `objects`, which define the entry (`rooftile_entry`) and the kernels; `library`
        where they are linked already.

        `functions`: the native symbol of each kernel. `constants`: the block that constant buffers
        lie in, anything that gives bytes; it is used in place where it is 64-byte aligned.
        InvalidIR, InvalidModel or NativeError where program, constants and objects do not fit.
        """
        self.program = verify(program)
        self.objects = tuple(objects)
        self.functions = dict(functions)
        self.constants = aligned_constants(program, constants)
        self.library = Library(self.objects) if library is None else library
        self._takers = [Taker(port) for port in program.inputs]
        self._outputs = [(port.shape, to_numpy(port.dtype)) for port in program.outputs]
        self._calls = self._bind(host_functions or {})
        self._entry_at = self.library.address(ENTRY)
        self._entry = _ENTRY_TYPE(self._entry_at)
        self._gate = gate() if self._calls is None else None
        self.pool = shared_pool() if program.threads > 1 and has_pool() else None
        self._frames: list[Frame] = []

    def run(
        self,
        inputs: tuple[Any, ...] | list[Any],
        stop: Stop = NEVER,
        into: list[Array] | None = None,
    ) -> list[Array]:
        """The outputs for inputs in the order of the program's ports: new arrays, or `into`, which
        must fit the ports as `fits` says, and overlap neither one another nor an input.

        Loops of the program end once `stop` is set, with Terminated.

        An input that is not contiguous or of foreign byte order is copied; InvalidInput for a
        wrong number, shape or element type, or for values that a kernel refuses. OutOfBounds
        where checked code stopped before an access outside its buffer.
        """
        if len(inputs) != len(self._takers):
            raise self._wrong_number(len(inputs))
        outputs = list(starmap(np.empty, self._outputs)) if into is None else into
        if self.pool is not None and self.pool.threads < self.program.threads:
            self.pool.need(self.program.threads)
        frame = self.acquire()
        try:
            if stop is not frame.stop:
                frame.watch(stop)
            code = UNFIT if self._gate is None else self._gate(inputs, outputs, frame.plan)
            if code <= UNFIT:
                code = self._run_slowly(frame, inputs, outputs)
        finally:
            self.release(frame)
        if code:
            raise self.failure(code)
        return outputs

    def _run_slowly(self, frame: Frame, inputs: Sequence[Any], outputs: list[Array]) -> int:
        """A run of what the gate does not take: inputs that have to be converted, programs with
        calls of the host."""
        frame.point(self.take(inputs), outputs)
        if self._calls is None:
            return _run_native(self._entry, frame)
        return _run_segments(frame, self._calls)

    def take(self, inputs: Sequence[Any]) -> list[Array]:
        """Inputs that fit the ports."""
        return [taker.take(value) for taker, value in zip(self._takers, inputs, strict=True)]

    def _wrong_number(self, count: int) -> InvalidInput:
        names = ", ".join(repr(port.name) for port in self.program.inputs)
        return InvalidInput(
            f"{self.program.name} takes {len(self._takers)} inputs ({names}), got {count}"
        )

    def profile(self, inputs: Sequence[Any], repeats: int = 20) -> list[float]:
        """Best seconds of each step over `repeats` passes, each kernel called alone.

        Passes go over the whole program in order, so each step finds the caches as a run leaves
        them. What a call without work takes is subtracted.
        """
        return profile(self, inputs, repeats)

    def acquire(self) -> Frame:
        """A frame for one run, to be released afterwards."""
        try:
            return self._frames.pop()  # a list is a stack that threads may share
        except IndexError:
            pool = self.pool.address if self.pool else None
            return Frame(self.program, self.constants, self._entry_at, self._takers, pool)

    def release(self, frame: Frame) -> None:
        """Keep a frame for the next run."""
        frame.inputs = frame.outputs = ()
        self._frames.append(frame)

    def new_outputs(self) -> list[Array]:
        """Arrays for the outputs of one run."""
        return [np.empty(shape, dtype) for shape, dtype in self._outputs]

    def new_output(self, place: int) -> Array:
        """An array for one of them."""
        return np.empty(*self._outputs[place])

    def fits(self, place: int, array: Array) -> bool:
        """Whether an output can be written into an array."""
        shape, dtype = self._outputs[place]
        flags = array.flags
        fitting = array.dtype == dtype and array.shape == shape and flags.c_contiguous
        return fitting and flags.aligned and flags.writeable

    def host_call(self, index: int) -> BoundCall:
        """The function of a step that is a host call."""
        return self._host[index]

    def loop_address(self, index: int) -> int:
        """The native function of a step that is a loop; it takes what the entry takes."""
        return self.library.address(loop_symbol(ENTRY, (index,)))

    def failure(self, code: int) -> RooftileError:
        """The error that a code of the entry stands for, `(step + 1) << 8 | reason`."""
        index = (code >> 8) - 1
        step = self.program.steps[index] if 0 <= index < len(self.program.steps) else None
        if code & 255 == OUTSIDE:
            return self._outside(step)
        if not isinstance(step, (Launch, Loop)):
            return InvalidInput(f"{self.program.name} failed with code {code}")
        nodes = ", ".join(repr(name) for name in step.facts.origin) or f"kernel {label(step)!r}"
        if code & 255 == STOPPED:
            return terminated(nodes)
        return InvalidInput(
            f"{nodes}: an index is out of range (step {index}, code {code & 255}); check the "
            f"values of the inputs that it is computed from"
        )

    def _outside(self, step: Step | None) -> OutOfBounds:
        """The error of a step in which checked code stopped."""
        functions = [ENTRY, *self.functions.values()]
        found = [take_violation(self.library, function) for function in functions]
        said = "; ".join(str(violation) for violation in found if violation)
        origin = step.facts.origin if isinstance(step, (Launch, Loop)) else ()
        nodes = ", ".join(map(repr, origin)) or self.program.name
        return OutOfBounds(
            f"{nodes}: an access outside its buffer was stopped: {said or 'nothing is known of it'}"
            f". This is a bug of rooftile, please report it with the model"
        )

    def _bind(self, functions: Mapping[str, HostFunction]) -> list[Callable[[Frame], int]] | None:
        """What to call one after the other, or None where the entry does it all."""
        program = self.program
        steps = program.steps
        self._host = {
            index: BoundCall(step, functions)
            for index, step in enumerate(steps)
            if isinstance(step, HostCall)
        }
        if not self._host:
            return None
        calls: list[Callable[[Frame], int]] = []
        for index, (_, stop) in enumerate(program.segments):
            native = _ENTRY_TYPE(self.library.address(segment_symbol(ENTRY, index)))
            calls.append(partial(_run_native, native))
            if stop < len(steps):
                calls.append(partial(_run_host, self._host[stop]))
        return calls


def _run_segments(frame: Frame, calls: Sequence[Callable[[Frame], int]]) -> int:
    for call in calls:
        code = call(frame)
        if code:
            return code
    return 0


def _run_native(entry: Callable[..., int], frame: Frame) -> int:
    return entry(*frame.entry_args)


def _run_host(call: BoundCall, frame: Frame) -> int:
    call(frame.memory)
    return 0


def aligned_constants(program: Program, given: Any) -> Array:
    """The block of constants as bytes, 64-byte aligned."""
    block: Array = np.frombuffer(given, np.uint8) if len(given) else np.zeros(0, np.uint8)
    if block.nbytes < program.constant_bytes:
        raise InvalidModel(
            f"{program.name} needs {program.constant_bytes} bytes of constants, got {block.nbytes}"
        )
    if block.nbytes and address(block) % 64 == 0:
        return block
    copied = aligned(block.nbytes)
    copied[:] = block
    return copied
