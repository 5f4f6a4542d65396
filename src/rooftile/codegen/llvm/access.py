"""Every load and store of a kernel goes through here: the one place where addresses are formed,
and where checked code holds them against the memory that they belong to."""

from __future__ import annotations

from dataclasses import dataclass

from rooftile.codegen.llvm.arith import binary, compare
from rooftile.codegen.llvm.bounds import Access, Guard, Room, starts
from rooftile.codegen.llvm.convert import from_memory, memory_type, to_memory
from rooftile.codegen.llvm.state import Place, State
from rooftile.codegen.llvm.values import Val, constant, lane_mask, llvm_type, splat
from rooftile.core.affine import Affine, affine
from rooftile.core.dtype import DType, itemsize


@dataclass(frozen=True)
class Address:
    """A pointer, and the memory that it must stay in."""

    pointer: str
    room: Room


def address(state: State, room: Room, place: Place) -> Address:
    """The address of a place, which is relative to the room's base pointer."""
    return Address(state.writer.pointer(room.base, Affine(*place)), room)


def load(state: State, at: Address, dtype: DType, width: int = 0, lanes: int = 0) -> Val:
    """A scalar, or a vector of which the first `lanes` are read and the others are 0."""
    writer = state.writer
    if width and lanes < width:
        _check(state, at, "reads", lanes * itemsize(dtype))
        mask = Val(lane_mask(width, lanes), "bool", width)
        return _masked_load(state, at, dtype, mask, constant(0, dtype, width))
    _check(state, at, "reads", max(width, 1) * itemsize(dtype))
    stored = memory_type(dtype)
    kind = llvm_type(stored, width)
    raw = Val(writer.op(f"load {kind}, ptr {at.pointer}, align {itemsize(dtype)}"), stored, width)
    return from_memory(writer, raw, dtype)


def load_where(state: State, at: Address, dtype: DType, mask: Val, otherwise: Val) -> Val:
    """A vector of which the lanes in `mask` are read; the others are those of `otherwise`."""
    _check_lanes(state, at, "reads", itemsize(dtype), mask)
    return _masked_load(state, at, dtype, mask, otherwise)


def store(state: State, at: Address, value: Val, lanes: int = 0) -> None:
    """Store a scalar, or the first `lanes` of a vector."""
    writer = state.writer
    value = to_memory(writer, value)
    if value.width and lanes == 1:
        # A masked store of one lane: LLVM 20 writes the lane before its truncation.
        value = Val(writer.op(f"extractelement {value}, i64 0"), value.dtype)
    align = itemsize(value.dtype)
    _check(state, at, "writes", min(lanes, value.width) * align if value.width else align)
    if value.width and lanes < value.width:
        name = f"llvm.masked.store.{_mangled(value.dtype, value.width)}.p0"
        mask = f"<{value.width} x i1> {lane_mask(value.width, lanes)}"
        writer.call("void", name, str(value), f"ptr {at.pointer}", f"i32 {align}", mask)
    else:
        writer.do(f"store {value}, ptr {at.pointer}, align {align}")


def _masked_load(state: State, at: Address, dtype: DType, mask: Val, otherwise: Val) -> Val:
    writer = state.writer
    stored = memory_type(dtype)
    kind = llvm_type(stored, mask.width)
    passed = to_memory(writer, otherwise)
    name = f"llvm.masked.load.{_mangled(stored, mask.width)}.p0"
    align = f"i32 {itemsize(dtype)}"
    loaded = writer.call(kind, name, f"ptr {at.pointer}", align, str(mask), f"{kind} {passed.name}")
    return from_memory(writer, Val(loaded, stored, mask.width), dtype)


def _mangled(dtype: DType, width: int) -> str:
    scalar = {"float": "f32", "double": "f64"}.get(llvm_type(dtype), llvm_type(dtype))
    return f"v{width}{scalar}"


# -- checks


def _check(state: State, at: Address, verb: str, nbytes: int) -> None:
    """Let checked code stop unless the `nbytes` bytes behind an address lie in its room."""
    if state.guard is not None:
        access = _access(state, state.guard, at, verb, nbytes)
        state.writer.splice(state.guard.check(access, _starts(state, access)))


def _check_lanes(state: State, at: Address, verb: str, size: int, mask: Val) -> None:
    """Let checked code stop unless all lanes in `mask`, of `size` bytes each, lie in the room."""
    if state.guard is None:
        return
    writer, width = state.writer, mask.width
    access = _access(state, state.guard, at, verb, size)
    first = splat(writer, Val(str(access.offset), "i64"), width)
    ahead = ", ".join(f"i64 {size * lane}" for lane in range(width))
    each = binary(writer, "add", first, Val(f"<{ahead}>", "i64", width))
    limit = splat(writer, Val(str(_starts(state, access)), "i64"), width)
    outside = binary(writer, "and", mask, compare(writer, "icmp uge", each, limit))
    bits = writer.op(f"bitcast {outside} to i{width}")
    writer.splice(state.guard.check_lanes(access, bits, width))


def _access(state: State, guard: Guard, at: Address, verb: str, nbytes: int) -> Access:
    """An access as its check sees it: the distance of the pointer itself from its room."""
    writer, room = state.writer, at.room
    origin = writer.hoisted(f"ptrtoint ptr {room.base} to i64", [room.base])
    if room.start:
        origin = writer.hoisted(f"add i64 {origin}, {room.start}", [origin])
    here = writer.op(f"ptrtoint ptr {at.pointer} to i64")
    offset = writer.op(f"sub i64 {here}, {origin}")
    what = f"kernel {guard.function!r} {verb} buffer {room.name!r}"
    return Access(what, offset, nbytes, _extent(state, room))


def _extent(state: State, room: Room) -> int | str:
    """The bytes of a room; an operand where symbols take part."""
    known = room.itemsize
    symbolic: list[str] = []
    for count in room.shape:
        if isinstance(count, int):
            known *= count
        else:
            symbolic.append(state.extent(count))
    total = str(known)
    for name in symbolic:
        total = state.writer.hoisted(f"mul i64 {total}, {name}", [total, name])
    return total if symbolic else known


def _starts(state: State, access: Access) -> int | str:
    """How many offsets an access may start at."""
    extent, writer = access.extent, state.writer
    if isinstance(extent, int):
        return starts(extent, access.nbytes)
    room = writer.integer(affine(extent) + (1 - access.nbytes))
    some = writer.hoisted(f"icmp sgt i64 {room}, 0", [room])
    return writer.hoisted(f"select i1 {some}, i64 {room}, i64 0", [some, room])
