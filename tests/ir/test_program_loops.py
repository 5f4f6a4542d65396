"""Loops in programs: text, verifier, lifetimes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from rooftile.core.errors import InvalidIR
from rooftile.ir.program import (
    Arg,
    Buffer,
    Copy,
    HostCall,
    KernelFacts,
    Launch,
    Loop,
    Port,
    Program,
    lifetimes,
    parse,
    to_text,
    verify,
)
from rooftile.ir.program.records import loop_symbol

BUFFERS = (
    Buffer("x", 64, "input"),
    Buffer("state", 16, "arena"),
    Buffer("new", 16, "arena", 64),
    Buffer("y", 64, "output"),
)
BODY = (
    Launch("step", (Arg("x", 48, -16), Arg("state"), Arg("new"))),
    Copy(Arg("new"), Arg("y", 0, 16), 16),
    Copy(Arg("new"), Arg("state"), 16),
)
LOOP = Loop("it", 4, BODY, KernelFacts(("Scan_0",), ("add",), flops=16))
GOOD = Program(
    "p",
    (Port("x", "x", (16,), "f32"),),
    (Port("y", "y", (16,), "f32"),),
    BUFFERS,
    (Copy(Arg("x"), Arg("state"), 16), LOOP),
    128,
)
TEXT = """\
program p
  arena 128 bound 0 no_reuse 0
  buffer x input 64 at 0 align 64
  buffer state arena 16 at 0 align 64
  buffer new arena 16 at 64 align 64
  buffer y output 64 at 0 align 64
  input x = x[16] f32
  output y = y[16] f32
  copy x -> state 16
  loop it 2
    loop inner 3
      launch step(x+48 by -16, state, out new)
    end
    copy new -> y by 16 16
  end
"""


def with_loop(**changes: Any) -> Program:
    return replace(GOOD, steps=(GOOD.steps[0], replace(LOOP, **changes)))


def test_good_loops_pass_and_print() -> None:
    assert verify(GOOD) is GOOD
    assert parse(to_text(GOOD)) == GOOD
    assert '  loop it 4\n    facts {"origin": ["Scan_0"]' in to_text(GOOD)
    assert GOOD.launches == (BODY[0],)


def test_loops_nest_in_text() -> None:
    inner = Loop("inner", 3, BODY[:1])
    program = with_loop(body=(inner, BODY[1]), trip=2, facts=KernelFacts())
    assert to_text(program) == TEXT
    assert parse(TEXT) == program
    assert loop_symbol("run", (1, 0)) == "run.loop1.0"


def test_a_loop_reads_and_writes_what_its_body_does() -> None:
    assert LOOP.read == (Arg("x"), Arg("state"), Arg("new"), Arg("new"))
    assert LOOP.written == (Arg("new"), Arg("y"), Arg("state"))


REFUSED = {
    r"step 1 \(it\) runs 0 times": with_loop(trip=0),
    r"\(it\), step: 0 bytes at -16 do not lie inside buffer 'x' of 64": with_loop(trip=5),
    r"\(it\), copy: 16 bytes at 64 do not lie inside buffer 'y'": with_loop(
        body=(*BODY[:1], Copy(Arg("new"), Arg("y", 16, 16), 16))
    ),
    r"\(it\), sort is a host call in a loop": with_loop(body=(HostCall("sort", (), ()),)),
    r"'y' moves by 16, but there is no loop": replace(
        GOOD, steps=(*GOOD.steps, Copy(Arg("x"), Arg("y", 0, 16), 16))
    ),
    r"step 0 \(it\), step reads buffer 'state' at 0 before it is written": replace(
        GOOD, steps=(LOOP,)
    ),
    r"writes the input buffer 'x'": with_loop(body=(*BODY, Copy(Arg("new"), Arg("x"), 16))),
    "buffers 'state' and 'new' are both in use": replace(
        GOOD, buffers=(*BUFFERS[:2], Buffer("new", 16, "arena"), BUFFERS[3])
    ),
}


@pytest.mark.parametrize("message", REFUSED)
def test_what_cannot_run_is_refused(message: str) -> None:
    with pytest.raises(InvalidIR, match=message):
        verify(REFUSED[message])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (TEXT.rsplit("  end", 1)[0], "loop 'it' has no end"),
        (TEXT + "  end\n", "no line starts with 'end'"),
        (TEXT.replace("by 16", "by"), "expected an integer"),
    ],
)
def test_what_cannot_be_read_is_refused(text: str, message: str) -> None:
    with pytest.raises(InvalidIR, match=message):
        parse(text)


def test_what_an_iteration_leaves_behind_lives_as_long_as_the_loop() -> None:
    steps = (
        Copy(Arg("x"), Arg("state"), 16),
        Loop(
            "it",
            4,
            (
                Launch("a", (Arg("x", 0, 16), Arg("early"))),
                Launch("b", (Arg("early"), Arg("state"), Arg("new"))),
                Launch("c", (Arg("new"), Arg("late"))),
                Copy(Arg("late"), Arg("state"), 16),
            ),
        ),
        Copy(Arg("state"), Arg("y"), 16),
    )
    found = lifetimes(steps, ["y"])
    assert found["early"] == (1, 2) and found["new"] == (2, 3) and found["late"] == (3, 4)
    assert found["state"] == (0, 5) and found["x"] == (0, 4) and found["y"] == (5, 6)


def test_what_an_inner_loop_needs_from_outside_lives_through_both() -> None:
    inner = Loop("inner", 2, (Launch("a", (Arg("w"), Arg("sum"))),))
    outer = Loop("outer", 2, (Launch("b", (Arg("sum"), Arg("t"))), inner))
    found = lifetimes((Copy(Arg("x"), Arg("w"), 4), outer))
    assert found["w"] == (0, 2) and found["sum"] == (1, 2) and found["t"] == (1, 1)
