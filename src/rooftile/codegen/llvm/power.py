"""pow of floats and of integers."""

from __future__ import annotations

from collections.abc import Sequence

from rooftile.codegen.llvm.arith import binary, compare, select
from rooftile.codegen.llvm.values import SUFFIX, Val, constant
from rooftile.codegen.llvm.writer import Writer
from rooftile.core.dtype import kind
from rooftile.ir.tile.scalar import POWER_BITS


def power(writer: Writer, args: Sequence[Val]) -> Val:
    """The C library's pow, which is exact where the result is; integers by repeated squaring."""
    a, b = args
    if kind(b.dtype) != "float":
        return _integer_power(writer, a, b)
    lanes = f"v{b.width}" if b.width else ""
    name = f"llvm.pow.{lanes}{SUFFIX[b.dtype]}"
    return Val(writer.call(b.type, name, str(a), str(b)), b.dtype, b.width)


def _integer_power(writer: Writer, base: Val, exponent: Val) -> Val:
    """One step for each bit of the exponent; see `rooftile.ir.tile.scalar` for large ones."""

    def same(value: int) -> Val:
        return constant(value, base.dtype, base.width)

    below = compare(writer, "icmp slt", exponent, same(0))
    if kind(base.dtype) == "int":
        exponent = select(writer, below, binary(writer, "sub", same(0), exponent), exponent)
    odd = binary(writer, "and", exponent, same(1))
    limit = 1 << POWER_BITS - 1
    fits = compare(writer, "icmp ult", exponent, same(limit))
    left = select(writer, fits, exponent, binary(writer, "or", odd, same(limit)))
    result, square = same(1), base
    for bit in range(POWER_BITS):
        chosen = compare(writer, "icmp ne", binary(writer, "and", left, same(1 << bit)), same(0))
        result = select(writer, chosen, binary(writer, "mul", result, square), result)
        square = binary(writer, "mul", square, square)
    if kind(base.dtype) != "int":
        return result
    # 1 / base ** n: a whole number for 1 and -1 alone.
    one = compare(writer, "icmp eq", base, same(1))
    minus = compare(writer, "icmp eq", base, same(-1))
    whole = binary(writer, "or", one, minus)
    return select(writer, below, select(writer, whole, result, same(0)), result)
