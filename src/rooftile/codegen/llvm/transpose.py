"""Copies between orders of dims: squares of W x W elements are turned over in registers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rooftile.codegen.llvm.access import store
from rooftile.codegen.llvm.destination import Destination, Memory
from rooftile.codegen.llvm.evaluate import Evaluator
from rooftile.codegen.llvm.state import Point, State
from rooftile.codegen.llvm.values import Val, splat
from rooftile.codegen.llvm.writer import Writer
from rooftile.core.dtype import itemsize
from rooftile.ir.tile import Cast, Const, Load, Map, Ref, Tile, children


@dataclass(frozen=True)
class Turn:
    """A copy that reads along one axis and writes along another, `width` elements of each."""

    read: str
    written: str
    width: int


def turning(tile: Tile, to: Destination, state: State, vector_bytes: int) -> Turn | None:
    """How to copy `tile`, or what is computed of such tiles element by element, by squares; None
    where it does not lie across two long axes."""
    size, reads = itemsize(to.dtype(state)), _reads(tile, state)
    same = state.scope.dtype(tile) == to.dtype(state)
    if size not in (4, 8) or not same or not reads or not _is_plain(to, state):
        return None
    width = vector_bytes // size
    long = [axis for axis in to.dims if state.spans[axis].size >= width]
    read = [
        axis
        for axis in long
        if {size} <= {_stride(part, axis, state) for part in reads} <= {0, size}
    ]
    written = [axis for axis in long if to.stride(state, axis) == size]
    if len(read) != 1 or len(written) != 1 or read == written:
        return None
    return Turn(read[0], written[0], width)


def square(turn: Turn, tile: Tile, to: Destination, evaluator: Evaluator) -> None:
    """Copy the square at the present spans."""
    state, width = evaluator.state, turn.width
    before = state.vector_axis
    state.vector_axis = turn.read
    points = [Point({turn.written: n}, width, width) for n in range(width)]
    rows = [splat(state.writer, evaluator.value(tile, point), width) for point in points]
    state.vector_axis = turn.written
    for number, value in enumerate(turned(state.writer, rows)):
        place = Point({turn.read: number}, width, width)
        store(state, to.address(state, place), value, width)
    state.vector_axis = before


def turned(writer: Writer, rows: Sequence[Val]) -> list[Val]:
    """The columns of a square of vectors: its quarters off the diagonal change places, then
    theirs, down to elements."""
    out, width = list(rows), len(rows)
    block = width // 2
    while block:
        first = [lane if not lane & block else width + lane - block for lane in range(width)]
        second = [lane + block if not lane & block else width + lane for lane in range(width)]
        for upper in range(width):
            if not upper & block:
                pair = out[upper], out[upper + block]
                out[upper] = _shuffle(writer, *pair, first)
                out[upper + block] = _shuffle(writer, *pair, second)
        block //= 2
    return out


def _shuffle(writer: Writer, a: Val, b: Val, lanes: Sequence[int]) -> Val:
    picks = ", ".join(f"i32 {lane}" for lane in lanes)
    name = writer.op(f"shufflevector {a}, {b}, <{len(lanes)} x i32> <{picks}>")
    return Val(name, a.dtype, a.width)


def _is_plain(to: Destination, state: State) -> bool:
    """Whether a destination is affine in memory."""
    return not isinstance(to, Memory) or state.linear(to.load) is not None


def _reads(tile: Tile, state: State) -> list[Load | Ref] | None:
    """What an elementwise expression reads; None where it is another, or one of the reads is padded
    or not affine."""
    if isinstance(tile, Ref):
        return [tile] if tile.name in state.locals else _reads(state.lets[tile.name], state)
    if isinstance(tile, Load):
        return [tile] if tile.pad is None and state.linear(tile) is not None else None
    if not isinstance(tile, (Map, Cast, Const)):
        return None
    found: list[Load | Ref] = []
    for child in children(tile):
        inner = _reads(child, state)
        if inner is None:
            return None
        found += inner
    return found


def _stride(read: Load | Ref, axis: str, state: State) -> int:
    """Bytes between neighbours of a read along an axis."""
    if isinstance(read, Ref):
        local = state.locals[read.name]
        return dict(zip(local.dims, local.strides, strict=True)).get(axis, 0)
    linear = state.linear(read)
    assert linear is not None
    return linear.coef(axis)
