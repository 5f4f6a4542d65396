"""The native entry: its text, and what it refuses. That it runs is tested with the runtime."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rooftile.codegen.llvm.entry import entry_text
from rooftile.core.errors import InvalidIR
from rooftile.ir.program import Arg, Buffer, Copy, HostCall, Launch, Port, Program
from rooftile.native import assemble, host_target

PROGRAM = Program(
    "p",
    (Port("x", "x", (4,), "f32"),),
    (Port("y", "y", (4,), "f32"), Port("w", "w", (4,), "f32")),
    (
        Buffer("x", 16, "input"),
        Buffer("w", 64, "constant", 64),
        Buffer("a", 32, "arena", 64),
        Buffer("y", 16, "output"),
    ),
    (
        Launch("k.0", (Arg("x"), Arg("w", 4), Arg("a", 16))),
        Copy(Arg("a", 16), Arg("y"), 16),
    ),
    128,
)
TEXT = """\
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare i32 @"add 4"(ptr, ptr, ptr)

define i32 @rooftile_entry(ptr %inputs, ptr %outputs, ptr %arena, ptr %constants) {
entry:
  %p1 = load ptr, ptr %inputs
  %p2 = getelementptr i8, ptr %constants, i64 68
  %p3 = getelementptr i8, ptr %arena, i64 80
  %code0 = call i32 @"add 4"(ptr %p1, ptr %p2, ptr %p3)
  %bad0 = icmp ne i32 %code0, 0
  br i1 %bad0, label %fail0, label %after0
after0:
  %p4 = load ptr, ptr %outputs
  %p5 = getelementptr i8, ptr %arena, i64 80
  call void @llvm.memcpy.p0.p0.i64(ptr %p4, ptr %p5, i64 16, i1 false)
  %p6 = getelementptr ptr, ptr %outputs, i64 1
  %p7 = load ptr, ptr %p6
  %p8 = getelementptr i8, ptr %constants, i64 64
  call void @llvm.memcpy.p0.p0.i64(ptr %p7, ptr %p8, i64 16, i1 false)
  ret i32 0
fail0:
  %low0 = and i32 %code0, 255
  %result0 = or i32 %low0, 256
  ret i32 %result0
}
"""


def test_text() -> None:
    text = entry_text(PROGRAM, {"k.0": "add 4"})
    assert text == TEXT
    assert assemble(text, host_target())


def test_each_run_between_host_calls_is_a_function() -> None:
    program = replace(PROGRAM, steps=(*PROGRAM.steps, HostCall("sort", (), ()), PROGRAM.steps[0]))
    text = entry_text(program, {"k.0": "add"}, "run")
    first, second = text.split("\n\n")[1:]
    assert first.startswith("define i32 @run(ptr") and "@add(" in first and "fail0:" in first
    assert second.startswith('define i32 @"run.1"(ptr') and "fail3:" in second
    assert first.count("memcpy") == second.count("memcpy") == 1
    assert assemble(text, host_target())


def test_kernels_need_symbols() -> None:
    with pytest.raises(InvalidIR, match=r"p: kernel 'k\.0' has no symbol"):
        entry_text(PROGRAM, {})
    with pytest.raises(InvalidIR, match="symbol 'a\"b' cannot be written"):
        entry_text(PROGRAM, {"k.0": 'a"b'})


def test_a_symbol_has_one_arity() -> None:
    program = replace(PROGRAM, steps=(*PROGRAM.steps, Launch("other", (Arg("a"),))))
    with pytest.raises(InvalidIR, match="kernel 'other' is called with two arities"):
        entry_text(program, {"k.0": "add", "other": "add"})
