"""The probe's own micro-kernels, as LLVM text: a multiply-add loop, a reader, calls, a meeting."""

from __future__ import annotations

from dataclasses import dataclass

from rooftile.core.dtype import DType, itemsize
from rooftile.core.errors import InvalidOption
from rooftile.native import Target

UNROLL = 4
"""Multiply-adds of each accumulator in one turn of the peak loop."""

READERS = 8
"""Vectors that the reader loads in one turn."""


@dataclass(frozen=True)
class MultiplyAdd:
    """How a target multiplies and adds a vector: types, instructions, operations of one step."""

    accumulator: str
    operand: str
    steps: tuple[str, ...]
    declarations: tuple[str, ...]
    operations: int


def multiply_add(dtype: DType, target: Target) -> MultiplyAdd | None:
    """The step of `dtype` on `target`, or None where it has no instruction for it.

    In `steps`, {acc} is the accumulator, {x} and {y} the operands, {out} the result, {tmp} free.
    """
    if dtype in ("f32", "f64"):
        return _float(dtype, target)
    if dtype == "f16" and (target.has("fullfp16") or target.has("avx512fp16")):
        return _float(dtype, target)
    if dtype == "bf16":
        return _bf16(target)
    return _i8(target) if dtype == "i8" else None


def _float(dtype: DType, target: Target) -> MultiplyAdd:
    lanes = target.vector_bytes // itemsize(dtype)
    element = {"f64": "double", "f32": "float", "f16": "half"}[dtype]
    vector = f"<{lanes} x {element}>"
    if not target.has_fma:
        steps = (
            f"{{tmp}} = fmul {vector} {{acc}}, {{x}}",
            f"{{out}} = fadd {vector} {{tmp}}, {{y}}",
        )
        return MultiplyAdd(vector, vector, steps, (), 2 * lanes)
    name = f"@llvm.fma.v{lanes}{dtype}"
    step = f"{{out}} = call {vector} {name}({vector} {{acc}}, {vector} {{x}}, {vector} {{y}})"
    declaration = f"declare {vector} {name}({vector}, {vector}, {vector})"
    return MultiplyAdd(vector, vector, (step,), (declaration,), 2 * lanes)


def _bf16(target: Target) -> MultiplyAdd | None:
    if target.has("avx512bf16") and target.vector_bytes == 64:
        name, lanes = "@llvm.x86.avx512bf16.dpbf16ps.512", 16
    elif target.arch == "aarch64" and target.has("bf16"):
        name, lanes = "@llvm.aarch64.neon.bfdot.v4f32.v8bf16", 4
    else:
        return None
    return _pairs(name, f"<{lanes} x float>", f"<{2 * lanes} x bfloat>", 4 * lanes)


def _i8(target: Target) -> MultiplyAdd | None:
    if target.has("avx512vnni") and target.vector_bytes == 64:
        return _pairs("@llvm.x86.avx512.vpdpbusd.512", "<16 x i32>", "<16 x i32>", 128)
    if target.has("avxvnni"):
        return _pairs("@llvm.x86.avx512.vpdpbusd.256", "<8 x i32>", "<8 x i32>", 64)
    if target.arch == "aarch64" and target.has("dotprod"):
        return _pairs("@llvm.aarch64.neon.sdot.v4i32.v16i8", "<4 x i32>", "<16 x i8>", 32)
    return None


def _pairs(name: str, accumulator: str, operand: str, operations: int) -> MultiplyAdd:
    arguments = f"{accumulator} {{acc}}, {operand} {{x}}, {operand} {{y}}"
    step = f"{{out}} = call {accumulator} {name}({arguments})"
    declaration = f"declare {accumulator} {name}({accumulator}, {operand}, {operand})"
    return MultiplyAdd(accumulator, operand, (step,), (declaration,), operations)


def accumulators(target: Target) -> int:
    """Independent accumulators: enough to hide the latency, few enough to stay in registers."""
    return 12 if target.registers < 32 else 16


def peak_text(dtype: DType, target: Target) -> tuple[str, int]:
    """`peak(i64 turns, ptr operands)` and its operations a turn; InvalidOption without a step.

    `operands` holds x, y and room for every accumulator, each one vector.
    """
    step = multiply_add(dtype, target)
    if step is None:
        raise InvalidOption(f"{target.isa} has no instruction that multiplies and adds {dtype}")
    count = accumulators(target)
    lines = [
        "define void @peak(i64 %turns, ptr %operands) {",
        "entry:",
        f"  %x = load {step.operand}, ptr %operands, align 16",
        f"  %py = getelementptr i8, ptr %operands, i64 {target.vector_bytes}",
        f"  %y = load {step.operand}, ptr %py, align 16",
        "  br label %loop",
        "loop:",
        "  %turn = phi i64 [0, %entry], [%next, %loop]",
    ]
    for j in range(count):
        start, end = "zeroinitializer, %entry", f"%a{j}_{UNROLL}, %loop"
        lines.append(f"  %a{j}_0 = phi {step.accumulator} [{start}], [{end}]")
    for u in range(UNROLL):
        for j in range(count):
            names = {"acc": f"%a{j}_{u}", "out": f"%a{j}_{u + 1}", "tmp": f"%t{j}_{u}"}
            lines += [f"  {line.format(x='%x', y='%y', **names)}" for line in step.steps]
    lines += _loop_end("turn", "next", "turns", 1)
    for j in range(count):
        lines.append(
            f"  %q{j} = getelementptr i8, ptr %operands, i64 {target.vector_bytes * (j + 2)}"
        )
        lines.append(f"  store {step.accumulator} %a{j}_{UNROLL}, ptr %q{j}, align 16")
    lines += ["  ret void", "}", *step.declarations]
    return "\n".join(lines) + "\n", count * UNROLL * step.operations


def read_text(target: Target) -> str:
    """`read(ptr data, i64 nbytes, i64 repeats, ptr sink)`: loads all bytes, in turns of READERS."""
    vector, width = f"<{target.vector_bytes // 4} x i32>", target.vector_bytes
    lines = [
        "define void @read(ptr %data, i64 %nbytes, i64 %repeats, ptr %sink) {",
        "entry:",
        "  br label %outer",
        "outer:",
        "  %round = phi i64 [0, %entry], [%round_next, %done]",
        "  br label %loop",
        "loop:",
        "  %at = phi i64 [0, %outer], [%next, %loop]",
    ]
    for j in range(READERS):
        lines.append(f"  %a{j} = phi {vector} [zeroinitializer, %outer], [%b{j}, %loop]")
    lines.append("  %base = getelementptr i8, ptr %data, i64 %at")
    for j in range(READERS):
        lines.append(f"  %p{j} = getelementptr i8, ptr %base, i64 {j * width}")
        lines.append(f"  %v{j} = load {vector}, ptr %p{j}, align 16")
        lines.append(f"  %b{j} = or {vector} %a{j}, %v{j}")
    lines += _loop_end("at", "next", "nbytes", READERS * width, exit_to="done")
    for j in range(READERS):
        lines.append(f"  %s{j} = getelementptr i8, ptr %sink, i64 {j * width}")
        lines.append(f"  store {vector} %b{j}, ptr %s{j}, align 16")
    lines += [
        "  %round_next = add i64 %round, 1",
        "  %again = icmp ult i64 %round_next, %repeats",
        "  br i1 %again, label %outer, label %exit",
        "exit:",
        "  ret void",
        "}",
    ]
    return "\n".join(lines) + "\n"


def call_text(target: Target) -> str:
    """`launch` and `tile`, (i64 turns, ptr table, ptr data): turns calls of a function in `table`.

    `empty` only returns; `tile` in `micro` loads and stores a register tile: what a microkernel
    costs beside its multiply-adds. `functions(ptr table)` writes both addresses.
    """
    vector, width = f"<{target.vector_bytes // 4} x float>", target.vector_bytes
    micro = ["define internal void @micro(ptr %data, ptr %b, ptr %c, ptr %d) noinline {"]
    for j in range(accumulators(target)):
        micro.append(f"  %p{j} = getelementptr i8, ptr %data, i64 {j * width}")
        micro.append(f"  %v{j} = load volatile {vector}, ptr %p{j}, align 16")
    for j in range(accumulators(target)):
        micro.append(f"  store volatile {vector} %v{j}, ptr %p{j}, align 16")
    lines = [
        "define internal void @empty(ptr %a, ptr %b, ptr %c, ptr %d) noinline {",
        "  ret void",
        "}",
        *micro,
        "  ret void",
        "}",
        "define void @functions(ptr %table) {",
        "  store ptr @empty, ptr %table",
        "  %second = getelementptr ptr, ptr %table, i64 1",
        "  store ptr @micro, ptr %second",
        "  ret void",
        "}",
        "define void @calls(i64 %turns, ptr %entry_of, ptr %data) {",
        "entry:",
        "  br label %loop",
        "loop:",
        "  %turn = phi i64 [0, %entry], [%next, %loop]",
        "  %f = load volatile ptr, ptr %entry_of",
        "  call void %f(ptr %data, ptr %data, ptr %data, ptr %data)",
        *_loop_end("turn", "next", "turns", 1),
        "  ret void",
        "}",
    ]
    return "\n".join(lines) + "\n"


def meet_text() -> str:
    """`meet(ptr counter, i64 side, i64 rounds, i64 patience) -> i64`: two threads take turns.

    Returns the rounds done, fewer than asked where the other side did not come in `patience`
    looks.
    """
    return """define i64 @meet(ptr %counter, i64 %side, i64 %rounds, i64 %patience) {
entry:
  br label %outer
outer:
  %round = phi i64 [0, %entry], [%round_next, %turn]
  %twice = shl i64 %round, 1
  %mine = add i64 %twice, %side
  br label %look
look:
  %looked = phi i64 [0, %outer], [%looked_next, %again]
  %now = load atomic i64, ptr %counter acquire, align 8
  %ready = icmp eq i64 %now, %mine
  br i1 %ready, label %turn, label %again
again:
  %looked_next = add i64 %looked, 1
  %give_up = icmp uge i64 %looked_next, %patience
  br i1 %give_up, label %exit, label %look
turn:
  %mine_next = add i64 %mine, 1
  store atomic i64 %mine_next, ptr %counter release, align 8
  %round_next = add i64 %round, 1
  %more = icmp ult i64 %round_next, %rounds
  br i1 %more, label %outer, label %exit
exit:
  %done = phi i64 [%round, %again], [%round_next, %turn]
  ret i64 %done
}
"""


def _loop_end(
    counter: str, following: str, limit: str, step: int, exit_to: str = "exit"
) -> list[str]:
    return [
        f"  %{following} = add i64 %{counter}, {step}",
        f"  %more = icmp ult i64 %{following}, %{limit}",
        f"  br i1 %more, label %loop, label %{exit_to}",
        f"{exit_to}:",
    ]
