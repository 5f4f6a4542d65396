"""Computes a Dot or Reduce at many points at once, across rows or along the lanes of vectors."""

from __future__ import annotations

from collections.abc import Sequence

from rooftile.codegen.llvm.evaluate import Evaluator
from rooftile.codegen.llvm.nest import Nest
from rooftile.codegen.llvm.reduction import Reduction
from rooftile.codegen.llvm.state import Point, State
from rooftile.codegen.llvm.values import Val, constant, splat
from rooftile.core.dtype import itemsize
from rooftile.ir.tile import Dot, Load, Reduce, Ref, Tile


class Reducer:
    """Computes a Dot or Reduce at many points at once; the results are remembered."""

    def __init__(self, state: State, unroll: int, vector_bytes: int) -> None:
        self.state = state
        self.unroll = unroll
        self.vector_bytes = vector_bytes
        self.evaluator = Evaluator(state, self)

    def __call__(self, tile: Tile, points: Sequence[Point]) -> None:
        """Compute `tile` at the points and remember the results there."""
        assert isinstance(tile, (Dot, Reduce))
        work = Reduction(tile, self.state)
        lane_axis = None if work.varies else self._lane_axis(work)
        outcome = (
            self._by_lanes(work, points, lane_axis) if lane_axis else self._plain(work, points)
        )
        for point, value in zip(points, outcome, strict=True):
            self.state.memo[-1][self.state.key(tile, point)] = value

    def _plain(self, work: Reduction, points: Sequence[Point]) -> list[Val]:
        start = self._initial(work, points, points[0].width if work.varies else 0)
        return Nest(self.evaluator, work, self.unroll).run(work.axes, start, points)

    def _initial(self, work: Reduction, points: Sequence[Point], width: int) -> list[Val]:
        writer = self.state.writer
        if work.acc is None:
            return [
                constant(work.identity, work.dtype, p.width if work.varies else width)
                for p in points
            ]
        self.evaluator.prepare(work.acc, points)
        values = [self.evaluator.value(work.acc, point) for point in points]
        return [
            splat(writer, value, point.width if work.varies else 0)
            for value, point in zip(values, points, strict=True)
        ]

    # -- reductions along the lanes of vectors

    def _lane_axis(self, work: Reduction) -> str | None:
        """A reduced axis along which every operand that varies is contiguous."""
        state = self.state
        best: tuple[int, str] | None = None
        for axis in work.axes:
            size = state.spans[axis].size
            if size < 4:
                continue
            before = state.vector_axis
            state.vector_axis = axis
            strides = [self.stride(load) for load in work.memory_reads()]
            state.vector_axis = before
            if (
                all(
                    stride is not None and stride in (0, size_of)
                    for stride, size_of in (
                        (s, b) for s, b in zip(strides, work.read_sizes(), strict=True)
                    )
                )
                and any(strides)
                and (best is None or size > best[0])
            ):
                best = (size, axis)
        return best[1] if best else None

    def stride(self, read: Load | Ref) -> int | None:
        """Bytes between neighbours along the vector axis; None where no one number says it."""
        state = self.state
        if isinstance(read, Load):
            return state.vector_stride(read)
        local = state.locals[read.name]
        return dict(zip(local.dims, local.strides, strict=True)).get(state.vector_axis or "", 0)

    def _by_lanes(self, work: Reduction, points: Sequence[Point], axis: str) -> list[Val]:
        state = self.state
        outer = [a for a in work.axes if a != axis]
        size = state.spans[axis].size
        width = self.vector_bytes // max(itemsize(work.dtype), 4)
        while width > 4 and width > size:
            width //= 2
        before = state.vector_axis
        state.vector_axis = axis
        wide = [Point(dict(point.offsets), width, width) for point in points]
        start = [constant(work.identity, work.dtype, width) for _ in points]
        state.memo.append({})
        sums = Nest(self.evaluator, work, self.unroll).run([*outer, axis], start, wide, lanes=width)
        state.memo.pop()
        state.vector_axis = before
        totals = [self._across(work, value) for value in sums]
        if work.acc is not None:
            first = self._initial(work, points, 0)
            totals = [work.combine(state, a, b) for a, b in zip(first, totals, strict=True)]
        return totals

    def _across(self, work: Reduction, value: Val) -> Val:
        """All lanes of a vector combined, by halves."""
        writer = self.state.writer
        while value.width > 1:
            half = value.width // 2
            parts = []
            for start in (0, half):
                picks = ", ".join(f"i32 {start + lane}" for lane in range(half))
                text = f"shufflevector {value}, {value.type} poison, <{half} x i32> <{picks}>"
                parts.append(Val(writer.op(text), value.dtype, half))
            value = work.combine(self.state, *parts)
        return Val(writer.op(f"extractelement {value}, i64 0"), value.dtype)
