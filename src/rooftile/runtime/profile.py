"""Times the steps of a program one by one."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from time import perf_counter
from typing import TYPE_CHECKING, Any

from rooftile.core.errors import InvalidOption
from rooftile.ir.program import Copy, HostCall, Loop, Split, Step
from rooftile.ir.program.records import part_symbol
from rooftile.native import Library, Pool, assemble, host_target
from rooftile.runtime.frame import Frame

if TYPE_CHECKING:
    from rooftile.runtime.executable import Executable

ENTRY = "rooftile_entry"
"""The symbol of the native entry."""
_EMPTY = "define i32 @empty() {\n  ret i32 0\n}\n"


def profile(executable: Executable, inputs: Sequence[Any], repeats: int) -> list[float]:
    """Best seconds of each step; see `Executable.profile`."""
    if repeats < 1:
        raise InvalidOption(f"repeats must be at least 1, not {repeats}")
    outputs = executable.run(list(inputs))  # refuses what does not fit, and warms up
    taken = executable.take(inputs)
    frame = executable.acquire()
    try:
        frame.point(taken, outputs)
        steps = executable.program.steps
        calls = [step_call(executable, frame, index, step) for index, step in enumerate(steps)]
        best = _best(calls, repeats)
    finally:
        executable.release(frame)
    return [
        max(0.0, seconds - (0.0 if isinstance(step, HostCall) else _overhead(_arity(step))))
        for step, seconds in zip(steps, best, strict=True)
    ]


def step_call(executable: Executable, frame: Frame, index: int, step: Step) -> Callable[[], Any]:
    """What runs one step alone on the memory of a frame; the code of a kernel that refuses."""
    if isinstance(step, HostCall):
        return partial(executable.host_call(index), frame.memory)
    if isinstance(step, Copy):
        pointers = [frame.pointer(step.dst), frame.pointer(step.src)]
        return _native(ctypes.cast(ctypes.memmove, ctypes.c_void_p).value, [*pointers, step.nbytes])
    if isinstance(step, Loop):
        pointers = [pointer.value or 0 for pointer in frame.entry_args]
        return _native(executable.loop_address(index), pointers)
    if step.split is not None and executable.pool is not None:
        return _shared(executable, executable.pool, frame, step.split, index)
    target = executable.library.address(executable.functions[step.kernel])
    *pointers, last = (frame.pointer(arg) for arg in step.args)
    numbers = [executable.program.table[name] for name in step.numbers]
    tiles = [] if step.split is None else [0, step.split.tiles]
    return _native(target, [*pointers, *numbers, *tiles, last])


def _shared(
    executable: Executable, pool: Pool, frame: Frame, split: Split, index: int
) -> Callable[[], Any]:
    """A launch as the entry makes it, on several threads."""
    function = executable.library.address(part_symbol(ENTRY, (index,)))
    pointers = [pointer.value or 0 for pointer in frame.entry_args]
    context = (ctypes.c_void_p * (len(pointers) + 1))(*pointers, 0)
    threads = executable.program.threads

    def call() -> int:
        address = ctypes.addressof(context)
        return pool.run(function, address, split.tiles, split.seconds, threads)

    return call


def _native(target: int | None, args: list[int]) -> Callable[[], Any]:
    function = ctypes.CFUNCTYPE(ctypes.c_int32, *[ctypes.c_void_p] * len(args))(target or 0)
    return partial(function, *map(ctypes.c_void_p, args))


def _best(calls: Sequence[Callable[[], Any]], repeats: int) -> list[float]:
    best = [float("inf")] * len(calls)
    for _ in range(repeats):
        for index, call in enumerate(calls):
            began = perf_counter()
            call()
            seconds = perf_counter() - began
            best[index] = min(best[index], seconds)
    return best


def _arity(step: Step) -> int:
    if isinstance(step, Loop):
        return 4
    if isinstance(step, (Copy, HostCall)):
        return 3
    return len(step.args) + len(step.numbers) + (0 if step.split is None else 2)


@lru_cache(maxsize=64)
def _overhead(arity: int) -> float:
    """Seconds of a call that does nothing with `arity` pointers."""
    # The arguments that a C function does not take are ignored.
    call = _native(_empty().address("empty"), [0] * arity)
    return _best([call], 200)[0]


@lru_cache(maxsize=1)
def _empty() -> Library:
    return Library([assemble(_EMPTY, host_target())])
