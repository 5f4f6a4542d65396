"""Conversions between element types, and the forms that types have in registers and in memory.

f16 and bf16 lie in memory as 16 bits and are held in registers as f32, in which all arithmetic on
them is done; a cast to them rounds. bool lies in memory as a byte.
"""

from __future__ import annotations

from rooftile.codegen.llvm.arith import binary, compare, intrinsic, select
from rooftile.codegen.llvm.values import HALVES, Val, constant, llvm_type
from rooftile.codegen.llvm.writer import Writer
from rooftile.core.dtype import DTYPES, DType, itemsize, kind

_IN_MEMORY = {"bool": "u8", "f16": "u16", "bf16": "u16"}
_SIGN, _REST = 0x80000000, 0x7FFFFFFF
_F32_INFINITY = 0x7F800000
_F16_LEAST_NORMAL, _F16_OVERFLOW = 0x38800000, 0x47800000
"""2**-14 and 2**16 as bits of an f32."""


def memory_type(dtype: DType) -> DType:
    """The type of the bits of an element in memory."""
    return _IN_MEMORY.get(dtype, dtype)


def held_type(dtype: DType) -> DType:
    """The type in which a value is kept between its computation and its use."""
    return "f32" if dtype in HALVES else dtype


def from_memory(writer: Writer, raw: Val, dtype: DType) -> Val:
    """What was read as `memory_type(dtype)`, as a value of `dtype`."""
    if dtype == "bool":
        return cast(writer, raw, "bool")
    if dtype not in HALVES:
        return raw
    value = _from_bf16(writer, raw) if dtype == "bf16" else _from_f16(writer, raw)
    writer.sixteen[value.name, dtype] = raw.name
    return retag(value, dtype)


def to_memory(writer: Writer, value: Val) -> Val:
    """A value as the bits that are stored."""
    if value.dtype == "bool":
        return cast(writer, value, "u8")
    if value.dtype not in HALVES:
        return value
    known = writer.sixteen.get((value.name, value.dtype))
    if known is not None:
        return Val(known, "u16", value.width)
    narrow = _to_bf16 if value.dtype == "bf16" else _to_f16
    return narrow(writer, retag(value, "f32"))


def retag(value: Val, dtype: DType) -> Val:
    """The same register as another type of equal form: f32, f16 or bf16."""
    return Val(value.name, dtype, value.width)


def cast(writer: Writer, value: Val, dtype: DType) -> Val:
    """Conversion to another element type. Integers wrap; floats become integers by the rules of
    `rooftile.ops.cast`."""
    if value.dtype == dtype:
        return value
    source, target = DTYPES[value.dtype], DTYPES[dtype]
    if target.kind == "bool":
        zero = constant(0, value.dtype, value.width)
        test = "fcmp une" if source.kind == "float" else "icmp ne"
        return compare(writer, test, value, zero)
    if source.kind == "float":
        if target.kind == "float":
            return _float_to_float(writer, value, dtype)
        return _to_integer(writer, value, dtype)
    if target.kind == "float":
        if dtype in HALVES:
            return cast(writer, cast(writer, value, "f32"), dtype)
        return _convert(writer, "sitofp" if source.kind == "int" else "uitofp", value, dtype)
    if source.kind == "bool" or target.itemsize > source.itemsize:
        return _convert(writer, "sext" if source.kind == "int" else "zext", value, dtype)
    if target.itemsize < source.itemsize:
        return _convert(writer, "trunc", value, dtype)
    return Val(value.name, dtype, value.width)


def bitcast(writer: Writer, value: Val, dtype: DType) -> Val:
    """The same bits as another type of equal size."""
    raw = to_memory(writer, value)
    bits = memory_type(dtype)
    if raw.type != llvm_type(bits, raw.width):
        raw = _convert(writer, "bitcast", raw, bits)
    return from_memory(writer, Val(raw.name, bits, raw.width), dtype)


def _convert(writer: Writer, word: str, value: Val, dtype: DType) -> Val:
    to = llvm_type(dtype, value.width)
    return Val(writer.op(f"{word} {value} to {to}"), dtype, value.width)


# -- floats


def _float_to_float(writer: Writer, value: Val, dtype: DType) -> Val:
    if dtype in HALVES:
        value = retag(cast(writer, value, "f32"), dtype)
        return from_memory(writer, to_memory(writer, value), dtype)
    if value.dtype in HALVES:
        return cast(writer, retag(value, "f32"), dtype)
    word = "fpext" if itemsize(dtype) > itemsize(value.dtype) else "fptrunc"
    return _convert(writer, word, value, dtype)


def _from_bf16(writer: Writer, raw: Val) -> Val:
    bits = binary(writer, "shl", cast(writer, raw, "u32"), constant(16, "u32", raw.width))
    return _convert(writer, "bitcast", bits, "f32")


def _to_bf16(writer: Writer, x: Val) -> Val:
    """The upper half of the bits, rounded to the nearest, ties to even; NaN stays NaN."""
    bits = _convert(writer, "bitcast", x, "u32")
    high = binary(writer, "lshr", bits, _bits(16, x))
    odd = binary(writer, "and", high, _bits(1, x))
    rounded = binary(writer, "add", bits, binary(writer, "add", odd, _bits(0x7FFF, x)))
    rounded = binary(writer, "lshr", rounded, _bits(16, x))
    quiet = binary(writer, "or", high, _bits(0x40, x))
    nan = compare(writer, "fcmp uno", x, x)
    return cast(writer, select(writer, nan, quiet, rounded), "u16")


def _from_f16(writer: Writer, raw: Val) -> Val:
    if writer.target.has_half:
        half = writer.op(f"bitcast {raw} to {_half(raw.width)}")
        name = writer.op(f"fpext {_half(raw.width)} {half} to {llvm_type('f32', raw.width)}")
        return Val(name, "f32", raw.width)
    bits = cast(writer, raw, "u32")
    sign = binary(writer, "shl", binary(writer, "and", bits, _bits(0x8000, raw)), _bits(16, raw))
    rest = binary(writer, "shl", binary(writer, "and", bits, _bits(0x7FFF, raw)), _bits(13, raw))
    small = _convert(writer, "bitcast", rest, "f32")
    # Times 2**112 moves the exponent to f32's bias, and is exact below f16's normals too.
    scaled = binary(writer, "fmul", small, constant(2.0**112, "f32", raw.width))
    finite = _convert(writer, "bitcast", scaled, "u32")
    special = compare(writer, "icmp uge", rest, _bits(0x7C00 << 13, raw))
    high = binary(writer, "or", rest, _bits(_F32_INFINITY, raw))
    magnitude = select(writer, special, high, finite)
    return _convert(writer, "bitcast", binary(writer, "or", sign, magnitude), "f32")


def _to_f16(writer: Writer, x: Val) -> Val:
    if writer.target.has_half:
        half = writer.op(f"fptrunc {x} to {_half(x.width)}")
        kind_of = llvm_type("u16", x.width)
        return Val(writer.op(f"bitcast {_half(x.width)} {half} to {kind_of}"), "u16", x.width)
    bits = _convert(writer, "bitcast", x, "u32")
    sign = binary(writer, "lshr", binary(writer, "and", bits, _bits(_SIGN, x)), _bits(16, x))
    rest = binary(writer, "and", bits, _bits(_REST, x))
    magnitude = select(
        writer,
        compare(writer, "icmp ult", rest, _bits(_F16_LEAST_NORMAL, x)),
        _f16_subnormal(writer, rest),
        _f16_normal(writer, rest),
    )
    nan = compare(writer, "icmp ugt", rest, _bits(_F32_INFINITY, x))
    large = select(writer, nan, _bits(0x7E00, x), _bits(0x7C00, x))
    over = compare(writer, "icmp uge", rest, _bits(_F16_OVERFLOW, x))
    magnitude = select(writer, over, large, magnitude)
    return cast(writer, binary(writer, "or", sign, magnitude), "u16")


def _f16_subnormal(writer: Writer, rest: Val) -> Val:
    """Adding 0.5 lets the float adder round to multiples of f16's least number, 2**-24."""
    value = _convert(writer, "bitcast", rest, "f32")
    moved = binary(writer, "fadd", value, constant(0.5, "f32", rest.width))
    bits = _convert(writer, "bitcast", moved, "u32")
    return binary(writer, "sub", bits, _bits(0x3F000000, rest))


def _f16_normal(writer: Writer, rest: Val) -> Val:
    """The exponent moved to f16's bias, then rounded, ties to even."""
    odd = binary(writer, "and", binary(writer, "lshr", rest, _bits(13, rest)), _bits(1, rest))
    bias = (15 - 127) * (1 << 23) + 0xFFF
    moved = binary(writer, "add", rest, binary(writer, "add", odd, _bits(bias % (1 << 32), rest)))
    return binary(writer, "lshr", moved, _bits(13, rest))


def _bits(value: int, like: Val) -> Val:
    return constant(value, "u32", like.width)


def _half(width: int) -> str:
    return f"<{width} x half>" if width else "half"


# -- floats to integers


def _to_integer(writer: Writer, x: Val, dtype: DType) -> Val:
    if x.dtype in HALVES:
        x = retag(x, "f32")
    through = "i64" if itemsize(dtype) == 8 else "i32"
    if kind(dtype) == "int" or itemsize(dtype) < 4:
        return cast(writer, _in_range(writer, x, through), dtype)
    bits = 8 * itemsize(dtype) - 1
    half = constant(2.0**bits, x.dtype, x.width)
    large = compare(writer, "fcmp oge", x, half)
    low = select(writer, large, binary(writer, "fsub", x, half), x)
    found = retag(_in_range(writer, low, through), dtype)
    flipped = binary(writer, "xor", found, constant(1 << bits, dtype, x.width))
    return select(writer, large, flipped, found)


def _in_range(writer: Writer, x: Val, dtype: DType) -> Val:
    """Truncated to i32 or i64; the least integer for NaN and what lies outside."""
    bits = 8 * itemsize(dtype) - 1
    limit = constant(2.0**bits, x.dtype, x.width)
    # The least integer itself lies outside this test, and comes out right all the same.
    fits = compare(writer, "fcmp olt", intrinsic(writer, "fabs", x), limit)
    whole = _convert(writer, "fptosi", x, dtype)
    return select(writer, fits, whole, constant(-(1 << bits), dtype, x.width))
