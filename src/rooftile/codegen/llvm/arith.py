"""The few instructions that everything else here is made of."""

from __future__ import annotations

from rooftile.codegen.llvm.values import SUFFIX, Val, splat
from rooftile.codegen.llvm.writer import Writer
from rooftile.core.dtype import kind


def binary(writer: Writer, word: str, a: Val, b: Val) -> Val:
    """`word a, b`, for operands of one type."""
    return Val(writer.op(f"{word} {a}, {b.name}"), b.dtype, b.width)


def compare(writer: Writer, word: str, a: Val, b: Val) -> Val:
    """`fcmp` or `icmp` with its predicate in `word`."""
    return Val(writer.op(f"{word} {a}, {b.name}"), "bool", a.width)


def select(writer: Writer, condition: Val, yes: Val, no: Val) -> Val:
    """`yes` where the bool holds, else `no`."""
    width = max(condition.width, yes.width, no.width)
    yes, no = splat(writer, yes, width), splat(writer, no, width)
    return Val(writer.op(f"select {condition}, {yes}, {no}"), yes.dtype, width)


def fma(writer: Writer, a: Val, b: Val, c: Val) -> Val:
    """a * b + c, fused for floats where the target can; a scalar counts for every lane."""
    width = max(a.width, b.width, c.width)
    a, b, c = (splat(writer, value, width) for value in (a, b, c))
    if kind(c.dtype) != "float":
        return binary(writer, "add", binary(writer, "mul", a, b), c)
    if not writer.target.has_fma:
        return binary(writer, "fadd", binary(writer, "fmul", a, b), c)
    lanes = f"v{width}" if width else ""
    name = f"llvm.fma.{lanes}{SUFFIX[c.dtype]}"
    return Val(writer.call(c.type, name, str(a), str(b), str(c)), c.dtype, width)


def intrinsic(writer: Writer, name: str, x: Val) -> Val:
    """A unary LLVM intrinsic of a float."""
    lanes = f"v{x.width}" if x.width else ""
    result = writer.call(x.type, f"llvm.{name}.{lanes}{SUFFIX[x.dtype]}", str(x))
    return Val(result, x.dtype, x.width)
