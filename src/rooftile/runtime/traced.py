"""A run step by step, for whoever wants to know when each began and ended."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import monotonic_ns
from typing import TYPE_CHECKING, Any

from rooftile.ir.program import Copy, HostCall, Step
from rooftile.native import NEVER, Stop
from rooftile.runtime.arrays import Array
from rooftile.runtime.profile import step_call

if TYPE_CHECKING:
    from rooftile.runtime.executable import Executable
    from rooftile.runtime.frame import Frame

Note = Callable[[int, Step, int, int], None]
"""Takes the place of a step, the step, and when it began and ended: the monotonic clock, in ns."""


def run_traced(
    executable: Executable,
    note: Note,
    inputs: Sequence[Any],
    stop: Stop = NEVER,
    into: list[Array] | None = None,
) -> list[Array]:
    """What `Executable.run` gives, and a call of `note` for each step when all are done.

    Steps are called one by one from Python, which takes longer than the native entry does.
    """
    outputs = executable.new_outputs() if into is None else into
    if executable.pool is not None:
        executable.pool.need(executable.program.threads)
    taken = executable.take(inputs)
    frame = executable.acquire()
    times: list[tuple[int, int]] = []
    try:
        frame.point(taken, outputs)
        frame.watch(stop)
        for index, step in enumerate(executable.program.steps):
            call = step_call(executable, frame, index, step)
            began = monotonic_ns()
            code = call()
            times.append((began, monotonic_ns()))
            if code and not isinstance(step, (Copy, HostCall)):
                raise executable.failure((index + 1) << 8 | code & 255)
        _copy_outputs(executable, frame)
    finally:
        executable.release(frame)
        for index, (began, ended) in enumerate(times):
            note(index, executable.program.steps[index], began, ended)
    return outputs


def _copy_outputs(executable: Executable, frame: Frame) -> None:
    """Outputs that lie in other buffers, which the entry copies at its end."""
    program = executable.program
    for place in program.copied_outputs:
        port = program.outputs[place]
        target = frame.outputs[place].reshape(-1).view("u1")
        target[:] = frame.memory(port.buffer)[: port.nbytes]
