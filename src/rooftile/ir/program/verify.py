"""What must hold of a program before it runs: names, bounds, order of writes, shared memory."""

from __future__ import annotations

import math

from rooftile.core.dtype import DTYPES
from rooftile.core.errors import InvalidIR
from rooftile.ir.program.lifetime import lifetimes
from rooftile.ir.program.records import (
    SPACES,
    Arg,
    Buffer,
    Copy,
    HostCall,
    Launch,
    Loop,
    Port,
    Program,
    Step,
    label,
    reads,
    writes,
)

MOST_THREADS = 64


def verify(program: Program) -> Program:
    """The program itself; InvalidIR where a run could read or write what it must not.

    A pointer has no length, so a kernel's reach inside a buffer is taken on trust.
    """
    _check_buffers(program)
    _check_ports(program)
    for index, step in enumerate(program.steps):
        _check_step(program, step, f"{program.name}: step {index} ({label(step)})")
    _check_order(program)
    _check_sharing(program)
    return program


def _check_buffers(program: Program) -> None:
    if not 1 <= program.threads <= MOST_THREADS:
        raise InvalidIR(f"{program.name}: {program.threads} threads are not 1 to {MOST_THREADS}")
    if min(program.arena_bytes, program.lower_bound_bytes, program.no_reuse_bytes) < 0:
        raise InvalidIR(f"{program.name}: sizes of the arena cannot be negative")
    seen: set[str] = set()
    for buffer in program.buffers:
        where = f"{program.name}: buffer {buffer.name!r}"
        if buffer.name in seen:
            raise InvalidIR(f"{where} is defined twice")
        seen.add(buffer.name)
        if buffer.space not in SPACES:
            raise InvalidIR(f"{where} has space {buffer.space!r}; there are {', '.join(SPACES)}")
        if buffer.nbytes < 0 or buffer.offset < 0:
            raise InvalidIR(f"{where} has a negative size or offset")
        if buffer.align < 1 or buffer.align & (buffer.align - 1) or buffer.offset % buffer.align:
            raise InvalidIR(f"{where}: offset {buffer.offset} is not aligned to {buffer.align}")
        if buffer.offset and buffer.space in ("input", "output"):
            raise InvalidIR(f"{where} is the caller's memory and takes no offset")
        if buffer.in_arena and buffer.end > program.arena_bytes:
            raise InvalidIR(
                f"{where} ends at byte {buffer.end} of an arena of {program.arena_bytes}"
            )


def _check_ports(program: Program) -> None:
    owners: set[str] = set()
    for port in program.inputs:
        where = f"{program.name}: input {port.name!r}"
        buffer = _check_port(program, port, where)
        if buffer.space != "input" or buffer.name in owners:
            raise InvalidIR(f"{where} needs an input buffer of its own, not {buffer.name!r}")
        owners.add(buffer.name)
    for port in program.outputs:
        where = f"{program.name}: output {port.name!r}"
        buffer = _check_port(program, port, where)
        if buffer.space == "scratch":
            raise InvalidIR(f"{where} lies in scratch memory {buffer.name!r}")
        if buffer.space == "output" and buffer.nbytes != port.nbytes:
            raise InvalidIR(
                f"{where} has {port.nbytes} bytes, its buffer {buffer.name!r} {buffer.nbytes}"
            )
        owners.add(buffer.name)
    for buffer in program.buffers:
        if buffer.space in ("input", "output") and buffer.name not in owners:
            raise InvalidIR(
                f"{program.name}: {buffer.space} buffer {buffer.name!r} belongs to no "
                f"{buffer.space} of the program"
            )


def _check_port(program: Program, port: Port, where: str) -> Buffer:
    buffer = program.by_name.get(port.buffer)
    if buffer is None:
        raise InvalidIR(f"{where} names the unknown buffer {port.buffer!r}")
    if port.dtype not in DTYPES or any(extent < 0 for extent in port.shape):
        raise InvalidIR(f"{where} has the type {port.dtype}{list(port.shape)}")
    if port.nbytes > buffer.nbytes:
        raise InvalidIR(
            f"{where} has {port.nbytes} bytes, its buffer {buffer.name!r} {buffer.nbytes}"
        )
    return buffer


def _check_step(program: Program, step: Step, where: str, trip: int = 0) -> None:
    """`trip`: the iterations of the loop around the step, 0 where there is none."""
    if isinstance(step, Loop):
        if step.trip < 1:
            raise InvalidIR(f"{where} runs {step.trip} times; at least 1 is needed")
        for inner in step.body:
            _check_step(program, inner, f"{where}, {label(inner)}", step.trip)
    elif isinstance(step, HostCall):
        if trip:
            raise InvalidIR(f"{where} is a host call in a loop")
        for port in step.inputs + step.outputs:
            _check_port(program, port, where)
    elif isinstance(step, Copy):
        for arg in (step.src, step.dst):
            _check_arg(program, arg, where, step.nbytes, trip)
    else:
        for arg in step.args:
            _check_arg(program, arg, where, 0, trip)
        for place in step.writes:
            if not 0 <= place < len(step.args):
                raise InvalidIR(
                    f"{where} writes argument {place} and has {len(step.args)} arguments"
                )
        _check_split(program, step, where)
    for arg in writes(step):
        if program.by_name[arg.buffer].space in ("input", "constant", "table"):
            space = program.by_name[arg.buffer].space
            raise InvalidIR(f"{where} writes the {space} buffer {arg.buffer!r}")


def _check_split(program: Program, step: Launch, where: str) -> None:
    split = step.split
    if split is None:
        return
    if split.tiles < 1 or not 0 <= split.seconds < math.inf or split.scratch < 0:
        raise InvalidIR(f"{where} cannot be split as {split}")
    last = step.args[-1]
    behind = last.offset + split.scratch * (program.threads - 1)
    if split.scratch and behind >= program.by_name[last.buffer].nbytes:
        raise InvalidIR(
            f"{where}: buffer {last.buffer!r} has no scratch memory for {program.threads} threads"
        )


def _check_arg(program: Program, arg: Arg, where: str, nbytes: int, trip: int) -> None:
    if arg.buffer not in program.by_name:
        raise InvalidIR(f"{where} names the unknown buffer {arg.buffer!r}")
    if arg.step and not trip:
        raise InvalidIR(f"{where}: {arg.buffer!r} moves by {arg.step}, but there is no loop")
    for offset in {arg.offset, arg.offset + arg.step * (trip - 1)}:
        _check_place(program.by_name[arg.buffer], offset, where, nbytes)


def _check_place(buffer: Buffer, offset: int, where: str, nbytes: int) -> None:
    if nbytes < 0 or offset < 0 or offset + nbytes > buffer.nbytes:
        raise InvalidIR(
            f"{where}: {nbytes} bytes at {offset} do not lie inside buffer {buffer.name!r} "
            f"of {buffer.nbytes} bytes"
        )
    if offset and offset == buffer.nbytes:
        raise InvalidIR(f"{where}: offset {offset} is the end of buffer {buffer.name!r}")


def _check_order(program: Program) -> None:
    """Arena and output memory is written at or before an offset before it is read from there."""
    written: dict[str, int] = {}

    def check(arg: Arg, where: str) -> None:
        if program.by_name[arg.buffer].space not in ("arena", "output"):
            return
        if program.by_name[arg.buffer].nbytes and written.get(arg.buffer, arg.offset + 1) > (
            arg.offset
        ):
            raise InvalidIR(
                f"{where} reads buffer {arg.buffer!r} at {arg.offset} before it is written"
            )

    def run(step: Step, where: str, trip: int) -> None:
        if isinstance(step, Loop):
            for inner in step.body:
                run(inner, f"{where}, {label(inner)}", step.trip)
            return
        for arg in reads(step):
            check(arg.lowest(trip), where)
        for arg in writes(step):
            low = arg.lowest(trip).offset
            written[arg.buffer] = min(low, written.get(arg.buffer, low))

    for index, step in enumerate(program.steps):
        run(step, f"{program.name}: step {index} ({label(step)})", 1)
    for port in program.outputs:
        check(Arg(port.buffer), f"{program.name}: output {port.name!r}")


def _check_sharing(program: Program) -> None:
    """No two arena buffers share bytes while both are in use."""
    spans = lifetimes(program.steps, [port.buffer for port in program.outputs])
    active: list[Buffer] = []
    for name, (first, _) in sorted(spans.items(), key=lambda item: item[1][0]):
        buffer = program.by_name[name]
        if not buffer.in_arena or not buffer.nbytes:
            continue
        active = [other for other in active if spans[other.name][1] >= first]
        for other in active:
            if other.offset < buffer.end and buffer.offset < other.end:
                raise InvalidIR(
                    f"{program.name}: buffers {other.name!r} and {name!r} are both in use at step "
                    f"{first} and share bytes {max(other.offset, buffer.offset)} to "
                    f"{min(other.end, buffer.end)} of the arena"
                )
        active.append(buffer)
