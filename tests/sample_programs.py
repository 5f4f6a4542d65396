"""Hand-written kernels and programs for the runtime's tests."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from rooftile.codegen.llvm.entry import entry_text
from rooftile.ir.program import Arg, Buffer, Copy, HostCall, KernelFacts, Launch, Port, Program
from rooftile.native import assemble, host_target, link
from rooftile.runtime import Executable

KERNELS = """
define i32 @add4(ptr %a, ptr %b, ptr %y) {
  %x = load <4 x float>, ptr %a, align 4
  %z = load <4 x float>, ptr %b, align 4
  %s = fadd <4 x float> %x, %z
  store <4 x float> %s, ptr %y, align 4
  ret i32 0
}

define i32 @pick(ptr %a, ptr %i, ptr %y) {
  %k = load i64, ptr %i
  %inside = icmp ult i64 %k, 4
  br i1 %inside, label %good, label %bad
bad:
  ret i32 1
good:
  %p = getelementptr float, ptr %a, i64 %k
  %x = load float, ptr %p
  store float %x, ptr %y
  ret i32 0
}
"""
SYMBOLS = {"add": "add4", "gather": "pick"}
WEIGHTS = np.array([0, 0, 10, 20, 30, 40], np.float32)
"""The first two are there so that the constant starts inside its buffer."""

PROGRAM = Program(
    "sample",
    inputs=(Port("x", "x", (2, 2), "f32"), Port("index", "i", (), "i64")),
    outputs=(
        Port("picked", "p", (1,), "f32"),
        Port("sum", "s", (4,), "f32"),
        Port("same_x", "x", (4,), "f32"),
        Port("weights", "w", (6,), "f32"),
        Port("same_sum", "s", (2, 2), "f32"),
        Port("partial", "t", (4,), "f32"),
    ),
    buffers=(
        Buffer("x", 16, "input"),
        Buffer("i", 8, "input"),
        Buffer("w", 24, "constant"),
        Buffer("t", 16, "arena", 64),
        Buffer("s", 16, "output"),
        Buffer("p", 4, "output"),
    ),
    steps=(
        Launch("add", (Arg("x"), Arg("w", 8), Arg("t")), KernelFacts(("Add_0",), ("add",))),
        Copy(Arg("t"), Arg("s"), 16),
        Launch("gather", (Arg("s"), Arg("i"), Arg("p")), KernelFacts(("Gather_1", "Squeeze_2"))),
    ),
    arena_bytes=128,
)


SORTED = replace(
    PROGRAM,
    outputs=(PROGRAM.outputs[0], Port("sorted", "s", (4,), "f32")),
    buffers=(
        *PROGRAM.buffers[:3],
        Buffer("t", 16, "arena", 64),
        *PROGRAM.buffers[4:],
    ),
    steps=(
        PROGRAM.steps[0],
        HostCall(
            "sort",
            (
                Port("v", "t", (4,), "f32"),
                Port("x", "x", (2, 2), "f32"),
                Port("w", "w", (6,), "f32"),
            ),
            (Port("s", "s", (4,), "f32"),),
            (("descending", True),),
        ),
        PROGRAM.steps[2],
    ),
)


def sort(v: np.ndarray, x: np.ndarray, w: np.ndarray, descending: bool) -> list[np.ndarray]:
    assert x.shape == (2, 2) and w.shape == (6,) and descending
    return [np.sort(v)[::-1]]


def executable(program: Program = PROGRAM, **options: object) -> Executable:
    """The sample, linked."""
    target = host_target()
    objects = [assemble(KERNELS, target), assemble(entry_text(program, SYMBOLS), target)]
    return Executable(program, link(objects), SYMBOLS, WEIGHTS.tobytes(), **options)  # type: ignore[arg-type]


def feeds(index: int = 2) -> list[np.ndarray]:
    """Inputs for it."""
    return [np.arange(4, dtype=np.float32).reshape(2, 2), np.array(index, np.int64)]
