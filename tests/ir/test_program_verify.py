"""The program verifier: what it lets pass and the message for each thing that it refuses."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from rooftile.core.errors import InvalidIR
from rooftile.ir.program import Arg, Buffer, Copy, HostCall, Launch, Port, Program, Split, verify

X, Y = Port("x", "x", (4,), "f32"), Port("y", "y", (4,), "f32")
BUFFERS = (
    Buffer("x", 16, "input"),
    Buffer("w", 64, "constant"),
    Buffer("a", 16, "arena"),
    Buffer("b", 16, "arena", 64),
    Buffer("tmp", 64, "scratch", 128),
    Buffer("y", 16, "output"),
)
STEPS = (
    Launch("first", (Arg("x"), Arg("w", 4), Arg("a"))),
    Launch("second", (Arg("a"), Arg("tmp"), Arg("b"))),
    Copy(Arg("b"), Arg("y"), 16),
)
GOOD = Program("p", (X,), (Y,), BUFFERS, STEPS, 192, 32, 96)


def changed(**parts: Any) -> Program:
    """GOOD with buffers replaced by name, and other fields as given."""
    buffers = {buffer.name: buffer for buffer in parts.pop("buffers", ())}
    kept = tuple(buffers.pop(b.name, b) for b in BUFFERS) + tuple(buffers.values())
    return replace(GOOD, buffers=kept, **parts)


def with_step(step: Any) -> Program:
    return replace(GOOD, steps=(*STEPS, step))


def test_good_programs_pass() -> None:
    assert verify(GOOD) is GOOD


def test_memory_is_shared_when_lifetimes_are_apart() -> None:
    late = Launch("third", (Arg("b"), Arg("c")))
    steps = (*STEPS[:2], late, Copy(Arg("c"), Arg("y"), 16))
    verify(changed(buffers=(Buffer("c", 16, "arena"),), steps=steps))


def test_parts_of_a_buffer_are_written_one_by_one() -> None:
    halves = (Launch("low", (Arg("x"), Arg("a"))), Launch("high", (Arg("x"), Arg("a", 8))))
    verify(replace(GOOD, steps=(*halves, *STEPS[1:])))


def test_outputs_may_lie_in_inputs_constants_and_the_arena() -> None:
    outputs = tuple(Port(name, name, (4,), "f32") for name in ("x", "w", "b", "y"))
    verify(replace(GOOD, outputs=(*outputs, Y)))


def test_empty_tensors_need_no_write() -> None:
    empty = Port("y", "y", (0, 4), "f32")
    verify(changed(buffers=(Buffer("y", 0, "output"),), outputs=(empty,), steps=()))


REFUSED = {
    "buffer 'a' is defined twice": replace(GOOD, buffers=(*BUFFERS, BUFFERS[2])),
    "buffer 'a' has space 'rom'": changed(buffers=(Buffer("a", 16, "rom"),)),  # type: ignore[arg-type]
    "buffer 'a' has a negative size": changed(buffers=(Buffer("a", -1, "arena"),)),
    "buffer 'a': offset 4 is not aligned to 64": changed(buffers=(Buffer("a", 4, "arena", 4),)),
    "buffer 'a': offset 0 is not aligned to 3": changed(buffers=(Buffer("a", 4, "arena", 0, 3),)),
    "buffer 'x' is the caller's memory": changed(buffers=(Buffer("x", 16, "input", 64),)),
    "buffer 'b' ends at byte 208 of an arena of 192": changed(
        buffers=(Buffer("b", 16, "arena", 192),)
    ),
    "sizes of the arena cannot be negative": replace(GOOD, lower_bound_bytes=-1),
    "input 'x' needs an input buffer of its own, not 'a'": replace(
        GOOD, inputs=(replace(X, buffer="a"),)
    ),
    "input 'z' needs an input buffer of its own, not 'x'": replace(
        GOOD, inputs=(X, replace(X, name="z"))
    ),
    "input 'x' names the unknown buffer 'q'": replace(GOOD, inputs=(replace(X, buffer="q"),)),
    "input 'x' has the type f33[4]": replace(GOOD, inputs=(replace(X, dtype="f33"),)),
    "input 'x' has 32 bytes, its buffer 'x' 16": replace(GOOD, inputs=(replace(X, shape=(8,)),)),
    "output 'y' has 8 bytes, its buffer 'y' 16": replace(GOOD, outputs=(replace(Y, shape=(2,)),)),
    "output 'y' lies in scratch memory 'tmp'": replace(GOOD, outputs=(replace(Y, buffer="tmp"),)),
    "output buffer 'z' belongs to no output": changed(buffers=(Buffer("z", 16, "output"),)),
    "step 3 (k) names the unknown buffer 'q'": with_step(Launch("k", (Arg("q"),))),
    "step 3 (k): 0 bytes at 20 do not lie inside buffer 'a'": with_step(
        Launch("k", (Arg("a", 20),))
    ),
    "step 3 (k): offset 16 is the end of buffer 'a'": with_step(Launch("k", (Arg("a", 16),))),
    "step 3 (k) writes argument 2 and has 1": with_step(Launch("k", (Arg("a"),), writes=(2,))),
    "step 3 (k) writes argument -1 and has 0": with_step(Launch("k", ())),
    "step 3 (k) writes the constant buffer 'w'": with_step(Launch("k", (Arg("w"),))),
    "step 3 (copy): 17 bytes at 0 do not lie inside buffer 'b'": with_step(
        Copy(Arg("b"), Arg("tmp"), 17)
    ),
    "step 3 (copy) writes the input buffer 'x'": with_step(Copy(Arg("b"), Arg("x"), 16)),
    "step 3 (topk) names the unknown buffer 'q'": with_step(
        HostCall("topk", (Port("v", "q", (4,), "f32"),), ())
    ),
    "step 0 (second) reads buffer 'a' at 0 before it is written": replace(GOOD, steps=STEPS[1:]),
    "step 1 (second) reads buffer 'a' at 0 before": replace(
        GOOD, steps=(Launch("first", (Arg("x"), Arg("a", 4))), *STEPS[1:])
    ),
    "output 'y' reads buffer 'y' at 0 before it is written": replace(GOOD, steps=STEPS[:2]),
    "buffers 'a' and 'b' are both in use at step 1 and share bytes 0 to 16": changed(
        buffers=(Buffer("b", 16, "arena"),)
    ),
    "buffers 'tmp' and 'b' are both in use at step 1 and share bytes 64 to 80": changed(
        buffers=(Buffer("tmp", 64, "scratch", 64),)
    ),
    "buffers 'a' and 'c' are both in use at step 2 and share": changed(
        buffers=(Buffer("c", 16, "arena"),),
        steps=(*STEPS[:2], Launch("k", (Arg("x"), Arg("c"))), *STEPS[2:]),
        outputs=(Y, Port("z", "a", (4,), "f32")),
    ),
}


@pytest.mark.parametrize("message", REFUSED)
def test_refusals(message: str) -> None:
    with pytest.raises(InvalidIR) as caught:
        verify(REFUSED[message])
    assert str(caught.value).startswith("p: ")
    assert message in str(caught.value)


def test_segments_lie_between_host_calls() -> None:
    host = HostCall("f", (), ())
    assert GOOD.segments == ((0, 3),)
    assert replace(GOOD, steps=(host, *STEPS, host, host)).segments == (
        (0, 0),
        (1, 4),
        (5, 5),
        (6, 6),
    )


def test_places_of_outputs() -> None:
    outputs = (replace(Y, name="w", buffer="w"), Y, replace(Y, name="again"))
    program = replace(GOOD, outputs=outputs)
    assert program.output_place == {"y": 1}
    assert program.copied_outputs == (0, 2)
    assert program.constant_bytes == 64
    assert [launch.kernel for launch in program.launches] == ["first", "second"]


def test_scratch_memory_of_each_thread() -> None:
    launch = Launch(
        "third", (Arg("b"), Arg("a"), Arg("tmp")), writes=(1, 2), split=Split(4, 1e-3, 32)
    )
    verify(replace(with_step(launch), threads=2))
    with pytest.raises(InvalidIR, match="'tmp' has no scratch memory for 3 threads"):
        verify(replace(with_step(launch), threads=3))
    with pytest.raises(InvalidIR, match="65 threads are not 1 to 64"):
        verify(replace(GOOD, threads=65))
    for split in (Split(0, 1e-3), Split(1, -1.0), Split(1, float("nan")), Split(1, 0.0, -1)):
        with pytest.raises(InvalidIR, match="cannot be split as"):
            verify(with_step(replace(launch, split=split)))
