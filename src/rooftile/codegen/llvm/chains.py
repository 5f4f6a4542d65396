"""Iterates: a chain of steps for each element, several side by side, until all of them stand.

A step waits for its loads; steps of other elements fill the time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rooftile.codegen.llvm.arith import binary
from rooftile.codegen.llvm.state import Point
from rooftile.codegen.llvm.values import Val, llvm_type
from rooftile.ir.tile import Iterate, Last, subtiles
from rooftile.ir.tile.ranges import iterated

if TYPE_CHECKING:
    from rooftile.codegen.llvm.evaluate import Evaluator

CHAINS = 16
"""Elements of one loop: with fewer the loads are waited for, with more too many registers spill.
On a Zen 4, 565 trees and 8 rows: 70 us with 4, 58 with 8, 51 with 16, 54 with 24."""


def iterate(evaluator: Evaluator, tile: Iterate, points: Sequence[Point]) -> list[Val]:
    """The values of an Iterate at points: vectors where it varies along the vector axis."""
    state = evaluator.state
    axis = state.vector_axis if state.vector_axis in state.free(tile) else None
    before, state.vector_axis = state.vector_axis, None
    single: list[Point] = []
    for point in points:
        lanes = range(point.lanes) if axis else (0,)
        for lane in lanes:
            start = {axis: point.offsets.get(axis, 0) + lane} if axis else {}
            single.append(Point({**point.offsets, **start}))
    ends: list[Val] = []
    for first in range(0, len(single), CHAINS):
        ends += _run(evaluator, tile, single[first : first + CHAINS])
    state.vector_axis = before
    if axis is None:
        return ends
    found, left = [], iter(ends)
    for point in points:
        items = [next(left) for _ in range(point.lanes)]
        found.append(evaluator.assemble(items, ends[0].dtype, point.width))
    return found


def _run(evaluator: Evaluator, tile: Iterate, points: Sequence[Point]) -> list[Val]:
    """One loop that takes a step at each point, `most` times or until all stand."""
    state, writer = evaluator.state, evaluator.state.writer
    start = [evaluator.value(tile.init, point) for point in points]
    dtype = start[0].dtype
    parts = [*subtiles(tile.next), *subtiles(tile.more)]
    lasts = [part for part in parts if isinstance(part, Last)]
    around = state.last
    state.last = iterated(tile, state.scope)

    def body(names: list[str]) -> tuple[list[str], str]:
        after: list[Val] = []
        more: Val | None = None
        for point, name in zip(points, names, strict=True):
            here = Val(name, dtype)
            # What the step reads depends on Last, which is another one at each point.
            state.memo.append({state.key(last, point): here for last in lasts})
            after.append(evaluator.value(tile.next, point))
            mine = evaluator.value(tile.more, point)
            more = mine if more is None else binary(writer, "or", more, mine)
            state.memo.pop()
        assert more is not None
        return [value.name for value in after], str(more)

    carried = [(llvm_type(dtype), value.name) for value in start]
    ends = writer.repeat(tile.most, carried, body)
    state.last = around
    return [Val(name, dtype) for name in ends]
