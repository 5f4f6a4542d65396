"""Reductions and dots: loops over the reduced axes around a set of accumulators in registers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

from rooftile.codegen.llvm.arith import binary, fma, select
from rooftile.codegen.llvm.evaluate import Evaluator
from rooftile.codegen.llvm.scalar import apply, cast
from rooftile.codegen.llvm.state import Point, Span, State
from rooftile.codegen.llvm.values import Val, constant, lane_mask, llvm_type, splat
from rooftile.core.affine import Affine
from rooftile.core.dtype import DType, itemsize, kind
from rooftile.ir.tile import Dot, Load, Reduce, Ref, Tile, children

UNROLL_WHOLE = 32
"""Reduced elements up to which the loops are written out."""
WRITE_OUT = 320
"""Accumulator updates up to which they are."""
COMBINE = {"sum": "add", "prod": "mul", "max": "max", "min": "min"}


@dataclass(frozen=True)
class Clip:
    """The part of a reduced axis that stays inside dim `dim` of a padded load:
    `0 <= coef*i + rest < extent`."""

    load: Load
    dim: int
    coef: int
    rest: Affine
    extent: int


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
        outcome = self._by_lanes(work, points, lane_axis) if lane_axis else self._plain(work, points)
        for point, value in zip(points, outcome, strict=True):
            self.state.memo[-1][self.state.key(tile, point)] = value

    def _plain(self, work: Reduction, points: Sequence[Point]) -> list[Val]:
        start = self._initial(work, points, points[0].width if work.varies else 0)
        return Nest(self, work).run(work.axes, start, points)

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
            strides = [self._stride(load) for load in work.memory_reads()]
            state.vector_axis = before
            if all(stride is not None and stride in (0, size_of) for stride, size_of in (
                (s, b) for s, b in zip(strides, work.read_sizes(), strict=True)
            )) and any(strides) and (best is None or size > best[0]):
                best = (size, axis)
        return best[1] if best else None

    def _stride(self, read: Load | Ref) -> int | None:
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
        sums = Nest(self, work).run([*outer, axis], start, wide, lanes=width)
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


class Reduction:
    """A Dot, or nested Reduces of one kind, taken apart."""

    def __init__(self, tile: Dot | Reduce, state: State) -> None:
        self.state = state
        self.dtype: DType = state.scope.dtype(tile)
        self.acc: Tile | None = None
        self.varies = (state.vector_axis or "") in state.free(tile)
        if isinstance(tile, Dot):
            self.op = "sum"
            self.operands: tuple[Tile, ...] = (tile.a, tile.b)
            self.axes = list(tile.over)
            self.acc = tile.acc
        else:
            self.op = tile.op
            self.axes = [tile.axis]
            inner = tile.x
            while isinstance(inner, Reduce) and inner.op == tile.op:
                self.axes.append(inner.axis)
                inner = inner.x
            self.operands = (inner,)
        self._reads = [read for operand in self.operands for read in _reads(operand, state)]
        self.padded = [r for r in self._reads if isinstance(r, Load) and r.pad is not None]

    @property
    def identity(self) -> float:
        """What changes nothing when combined."""
        return identity(self.op, self.dtype)

    @property
    def skips(self) -> bool:
        """Whether what lies outside a padded buffer adds nothing."""
        return all(load.pad == (0.0 if self.op == "sum" else self.identity) for load in self.padded)

    def memory_reads(self) -> list[Load | Ref]:
        """Everything that is read from memory for one element."""
        return self._reads

    def read_sizes(self) -> list[int]:
        """Bytes of one element of each read."""
        state = self.state
        return [
            itemsize(state.bufs[r.buf].dtype if isinstance(r, Load) else state.locals[r.name].dtype)
            for r in self._reads
        ]

    def combine(self, state: State, a: Val, b: Val) -> Val:
        """Two partial results as one."""
        return apply(state.writer, COMBINE[self.op], [a, b])

    def update(self, evaluator: Evaluator, total: Val, point: Point) -> Val:
        """The accumulator with the element at a point added."""
        writer = self.state.writer
        values = [
            cast(writer, evaluator.value(operand, point), self.dtype) for operand in self.operands
        ]
        if len(values) == 2:
            return fma(writer, values[0], values[1], total)
        value = splat(writer, values[0], total.width)
        if point.lanes < total.width:
            mask = Val(lane_mask(total.width, point.lanes), "bool", total.width)
            value = select(writer, mask, value, constant(self.identity, self.dtype, total.width))
        return self.combine(self.state, total, value)


class Nest:
    """The loops of one reduction."""

    def __init__(self, reducer: Reducer, work: Reduction) -> None:
        self.reducer = reducer
        self.state = reducer.state
        self.work = work

    def run(
        self, axes: list[str], totals: list[Val], points: Sequence[Point], lanes: int = 0
    ) -> list[Val]:
        """Loop over `axes`, outermost first. With `lanes`, the last axis lies along the vectors."""
        if not axes:
            return self._step(totals, points)
        axis, rest = axes[0], axes[1:]
        span = self.state.spans[axis]
        if lanes and not rest:
            return self._vectors(axis, totals, points, lanes)
        padding = self._padding(axis, rest, points)
        if isinstance(padding, list):
            return self._clipped(axis, rest, totals, points, lanes, padding)
        sizes = [self.state.spans[a].size for a in axes]
        whole = math.prod(sizes)
        if not lanes and whole <= UNROLL_WHOLE and whole * len(points) <= WRITE_OUT:
            for offsets in product(*(range(size) for size in sizes)):
                here = dict(zip(axes, offsets, strict=True))
                totals = self._step(totals, [point.at(here) for point in points])
            return totals
        if padding == "unroll":
            for offset in range(span.size):
                with self.state.spanning(**{axis: Span(span.base + offset, 1)}):
                    totals = self.run(rest, totals, points, lanes)
            return totals
        if not rest:
            return self._innermost(axis, totals, points)

        def body(counter: Affine, values: list[str]) -> list[str]:
            with self.state.spanning(**{axis: Span(span.base + counter, 1)}):
                inner = self.run(rest, _named(totals, values), points, lanes)
            return [value.name for value in inner]

        return self._loop(0, span.size, totals, body)

    def _innermost(self, axis: str, totals: list[Val], points: Sequence[Point]) -> list[Val]:
        """The last axis, unrolled; with few accumulators, several sets of them in turn."""
        span = self.state.spans[axis]
        unroll = min(self.reducer.unroll, span.size)
        sets = min(unroll, -(-8 // len(points))) if len(points) < 8 else 1
        blank = [constant(self.work.identity, t.dtype, t.width) for t in totals]
        every = [list(totals)] + [list(blank) for _ in range(sets - 1)]

        def steps(base: Affine, sums: list[list[Val]], count: int) -> list[list[Val]]:
            with self.state.spanning(**{axis: Span(base, 1)}):
                for offset in range(count):
                    chosen = offset % sets
                    here = [point.at({axis: offset}) for point in points]
                    sums[chosen] = self._step(sums[chosen], here)
            return sums

        def body(counter: Affine, values: list[str]) -> list[str]:
            names = iter(values)
            sums = [_named(some, [next(names) for _ in some]) for some in every]
            done = steps(span.base + counter * unroll, sums, unroll)
            return [value.name for some in done for value in some]

        flat = [value for some in every for value in some]
        out = iter(self._loop(0, span.size // unroll, flat, body))
        sums = [[next(out) for _ in some] for some in every]
        done = span.size // unroll * unroll
        if done < span.size:
            sums = steps(span.base + done, sums, span.size - done)
        totals = sums[0]
        for other in sums[1:]:
            totals = [
                self.work.combine(self.state, a, b) for a, b in zip(totals, other, strict=True)
            ]
        return totals

    def _vectors(
        self, axis: str, totals: list[Val], points: Sequence[Point], lanes: int
    ) -> list[Val]:
        """The last axis, taken `lanes` elements at a time."""
        span = self.state.spans[axis]
        full = span.size // lanes
        copies = max(1, min(4, full, 8 // len(points)))
        blank = [constant(self.work.identity, t.dtype, t.width) for t in totals]
        every = [list(totals)] + [list(blank) for _ in range(copies - 1)]

        def steps(base: Affine, sums: list[list[Val]], count: int) -> list[list[Val]]:
            with self.state.spanning(**{axis: Span(base, lanes)}):
                for number in range(count):
                    here = [point.at({axis: number * lanes}) for point in points]
                    sums[number % copies] = self._step(sums[number % copies], here)
            return sums

        def body(counter: Affine, values: list[str]) -> list[str]:
            names = iter(values)
            sums = [_named(some, [next(names) for _ in some]) for some in every]
            done = steps(span.base + counter * (copies * lanes), sums, copies)
            return [value.name for some in done for value in some]

        flat = [value for some in every for value in some]
        out = iter(self._loop(0, full // copies, flat, body))
        sums = [[next(out) for _ in some] for some in every]
        done = full // copies * copies
        if done < full:
            sums = steps(span.base + done * lanes, sums, full - done)
        rest = span.size - full * lanes
        if rest:
            with self.state.spanning(**{axis: Span(span.base + full * lanes, rest)}):
                here = [Point(dict(point.offsets), lanes, rest) for point in points]
                sums[0] = self._step(sums[0], here)
        totals = sums[0]
        for other in sums[1:]:
            totals = [
                self.work.combine(self.state, a, b) for a, b in zip(totals, other, strict=True)
            ]
        return totals

    def _step(self, totals: list[Val], points: Sequence[Point]) -> list[Val]:
        evaluator, work = self.reducer.evaluator, self.work
        for operand in work.operands:
            evaluator.prepare(operand, points)
        skips = work.padded and work.skips
        result: list[Val] = []
        for total, point in zip(totals, points, strict=True):
            outside = skips and any(evaluator.inside(p, point) == "out" for p in work.padded)
            result.append(total if outside else work.update(evaluator, total, point))
        return result

    def _loop(self, start: int | str, stop: int | str, totals: list[Val], body: object) -> list[Val]:
        carried = [(llvm_type(t.dtype, t.width), t.name) for t in totals]
        return _named(totals, self.state.loop(start, stop, body, carried))  # type: ignore[arg-type]

    # -- padding

    def _padding(
        self, axis: str, rest: Sequence[str], points: Sequence[Point]
    ) -> list[Clip] | str | None:
        """How this axis meets padding: not at all, cut to what is inside, or point by point."""
        if not self.work.skips:
            return None
        clips: list[Clip] = []
        for load in self.work.padded:
            for dim, part in enumerate(load.index):
                extent = self.state.bufs[load.buf].shape[dim]
                if not isinstance(part, Affine) or not isinstance(extent, int):
                    continue
                coef = part.coef(axis)
                if (id(load), dim) in self.state.inside:
                    continue
                if not coef or self._always_inside(part, extent, [axis, *rest], points):
                    continue
                places = {self.state._sum(part - Affine(((axis, coef),)), p) for p in points}
                shared = any(part.coef(other) for other in rest)
                along = part.coef(self.state.vector_axis or "")
                if len(places) == 1 and not shared and coef > 0 and not along:
                    (place,) = places
                    base = self.state.spans[axis].base
                    clips.append(Clip(load, dim, coef, Affine(*place) + base * coef, extent))
                elif all(not terms for terms, _ in places):
                    return "unroll"
        return clips or None

    def _always_inside(
        self, part: Affine, extent: int, axes: Sequence[str], points: Sequence[Point]
    ) -> bool:
        spread = [part.coef(a) * (self.state.spans[a].size - 1) for a in axes]
        for point in points:
            bounds = self.state.writer.range(Affine(*self.state._sum(part, point)))
            if bounds is None:
                return False
            low = bounds[0] + sum(min(0, s) for s in spread)
            high = bounds[1] + sum(max(0, s) for s in spread)
            if low < 0 or high >= extent:
                return False
        return True

    def _clipped(
        self,
        axis: str,
        rest: list[str],
        totals: list[Val],
        points: Sequence[Point],
        lanes: int,
        clips: Sequence[Clip],
    ) -> list[Val]:
        span = self.state.spans[axis]
        start, stop = self._bounds(span.size, clips)

        known = {(id(clip.load), clip.dim) for clip in clips} - self.state.inside

        def body(counter: Affine, values: list[str]) -> list[str]:
            self.state.inside |= known
            with self.state.spanning(**{axis: Span(span.base + counter, 1)}):
                inner = self.run(rest, _named(totals, values), points, lanes)
            self.state.inside -= known
            return [value.name for value in inner]

        return self._loop(start, stop, totals, body)

    def _bounds(self, size: int, clips: Sequence[Clip]) -> tuple[int | str, int | str]:
        writer = self.state.writer
        if all(not clip.rest.terms for clip in clips):
            low = max([0] + [-(clip.rest.const // clip.coef) for clip in clips])
            top = min([size] + [(c.extent - 1 - c.rest.const) // c.coef + 1 for c in clips])
            return low, max(low, top)
        start, stop = Val("0", "i64"), Val(str(size), "i64")
        for clip in clips:
            low = writer.integer(clip.rest * -1 + (clip.coef - 1))
            top = writer.integer(clip.rest * -1 + (clip.extent - 1 + clip.coef))
            if clip.coef > 1:
                low = writer.hoisted(f"sdiv i64 {low}, {clip.coef}", [low])
                top = writer.hoisted(f"sdiv i64 {top}, {clip.coef}", [top])
            for word, bound, name in (("sgt", low, "start"), ("slt", top, "stop")):
                current = start if name == "start" else stop
                test = writer.hoisted(f"icmp {word} i64 {bound}, {current.name}", [bound])
                text = f"select i1 {test}, i64 {bound}, i64 {current.name}"
                chosen = Val(writer.hoisted(text, [test, bound, current.name]), "i64")
                start, stop = (chosen, stop) if name == "start" else (start, chosen)
        return start.name, stop.name


def identity(op: str, dtype: DType) -> float:
    """The neutral element of a reduction in a dtype."""
    if op in ("sum", "prod"):
        return 0.0 if op == "sum" else 1.0
    sign = -1 if op == "max" else 1
    if kind(dtype) == "float":
        return sign * math.inf
    bits = 8 * itemsize(dtype)
    if kind(dtype) == "int":
        return -(2 ** (bits - 1)) if op == "max" else 2 ** (bits - 1) - 1
    return 0 if op == "max" else 2**bits - 1


def _named(like: Sequence[Val], names: Sequence[str]) -> list[Val]:
    return [Val(name, v.dtype, v.width) for v, name in zip(like, names, strict=True)]


def _reads(tile: Tile, state: State) -> list[Load | Ref]:
    """Loads, and refs to tiles in scratch memory, through the Lets that are not."""
    if isinstance(tile, Ref):
        if tile.name in state.locals:
            return [tile]
        return _reads(state.lets[tile.name], state)
    own: list[Load | Ref] = [tile] if isinstance(tile, Load) else []
    return own + [read for child in children(tile) for read in _reads(child, state)]


__all__ = ["COMBINE", "Reducer", "binary", "identity"]
