"""The loops of a reduction around its accumulators in registers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import product

from rooftile.codegen.llvm.chains import CHAINS
from rooftile.codegen.llvm.evaluate import Evaluator
from rooftile.codegen.llvm.padding import Clip, clip_bounds, meeting
from rooftile.codegen.llvm.reduction import Reduction
from rooftile.codegen.llvm.state import Point, Span, State
from rooftile.codegen.llvm.values import Val, constant, llvm_type
from rooftile.core.affine import Affine
from rooftile.ir.tile import Iterate, Ref, Tile, children

UNROLL_WHOLE = 32
"""Reduced elements up to which the loops are written out."""
WRITE_OUT = 320
"""Accumulator updates up to which they are."""

Body = Callable[[Affine, list[str]], list[str]]


class Nest:
    """The loops of one reduction."""

    def __init__(self, evaluator: Evaluator, work: Reduction, unroll: int) -> None:
        self.evaluator = evaluator
        self.state = evaluator.state
        self.work = work
        self.unroll = unroll
        self.iterating = any(_iterates(operand, self.state) for operand in work.operands)

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
        padding = meeting(self.state, self.work, axis, rest, points)
        if isinstance(padding, list):
            return self._clipped(axis, rest, totals, points, lanes, padding)
        sizes = [self.state.spans[a].size for a in axes]
        whole = math.prod(sizes)
        if not lanes and whole <= UNROLL_WHOLE and whole * len(points) <= WRITE_OUT:
            every = product(*(range(size) for size in sizes))
            places = [dict(zip(axes, offsets, strict=True)) for offsets in every]
            steps = [[point.at(here) for point in points] for here in places]
            self._iterates(steps)
            for some in steps:
                totals = self._step(totals, some)
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
        """The last axis, element by element."""
        unroll = self.unroll
        if self.iterating:
            unroll = max(unroll, CHAINS // sum(max(point.lanes, 1) for point in points))
        unroll = min(unroll, self.state.spans[axis].size)
        return self._merged(self._steps(axis, totals, points, 1, unroll))

    def _vectors(
        self, axis: str, totals: list[Val], points: Sequence[Point], lanes: int
    ) -> list[Val]:
        """The last axis, taken `lanes` elements at a time."""
        span = self.state.spans[axis]
        full, rest = divmod(span.size, lanes)
        sums = self._steps(axis, totals, points, lanes, max(1, min(self.unroll, full)))
        if rest:
            with self.state.spanning(**{axis: Span(span.base + full * lanes, rest)}):
                here = [Point(dict(point.offsets), lanes, rest) for point in points]
                sums[0] = self._step(sums[0], here)
        return self._merged(sums)

    def _steps(
        self, axis: str, totals: list[Val], points: Sequence[Point], step: int, unroll: int
    ) -> list[list[Val]]:
        """All whole steps along an axis, unrolled. Few accumulators would wait for one another:
        then there are several sets of them, used in turn."""
        span = self.state.spans[axis]
        full = span.size // step
        sets = min(unroll, -(-8 // len(points)))
        blank = [constant(self.work.identity, t.dtype, t.width) for t in totals]
        every = [list(totals)] + [list(blank) for _ in range(sets - 1)]

        def steps(base: Affine, sums: list[list[Val]], count: int) -> list[list[Val]]:
            with self.state.spanning(**{axis: Span(base, step)}):
                offsets = [{axis: number * step} for number in range(count)]
                places = [[point.at(here) for point in points] for here in offsets]
                self._iterates(places)
                for number, here in enumerate(places):
                    sums[number % sets] = self._step(sums[number % sets], here)
            return sums

        def body(counter: Affine, values: list[str]) -> list[str]:
            names = iter(values)
            sums = [_named(some, [next(names) for _ in some]) for some in every]
            done = steps(span.base + counter * (unroll * step), sums, unroll)
            return [value.name for some in done for value in some]

        out = iter(self._loop(0, full // unroll, [v for some in every for v in some], body))
        sums = [[next(out) for _ in some] for some in every]
        done = full // unroll * unroll
        return steps(span.base + done * step, sums, full - done) if done < full else sums

    def _merged(self, sums: list[list[Val]]) -> list[Val]:
        """Several sets of accumulators as one."""
        totals = sums[0]
        for other in sums[1:]:
            pairs = zip(totals, other, strict=True)
            totals = [self.work.combine(self.state, a, b) for a, b in pairs]
        return totals

    def _iterates(self, steps: Sequence[Sequence[Point]]) -> None:
        """Compute the iterates of several steps together, so that more chains go side by side."""
        if self.iterating:
            for operand in self.work.operands:
                every = [point for points in steps for point in points]
                self.evaluator.prepare(operand, every, reductions=False)

    def _step(self, totals: list[Val], points: Sequence[Point]) -> list[Val]:
        evaluator, work = self.evaluator, self.work
        for operand in work.operands:
            evaluator.prepare(operand, points)
        skips = work.padded and work.skips
        result: list[Val] = []
        for total, point in zip(totals, points, strict=True):
            outside = skips and any(evaluator.inside(p, point) == "out" for p in work.padded)
            result.append(total if outside else work.update(evaluator, total, point))
        return result

    def _loop(self, start: int | str, stop: int | str, totals: list[Val], body: Body) -> list[Val]:
        carried = [(llvm_type(t.dtype, t.width), t.name) for t in totals]
        return _named(totals, self.state.loop(start, stop, body, carried))

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
        start, stop = clip_bounds(self.state, span.size, clips)
        known = {(id(clip.load), clip.dim) for clip in clips} - self.state.inside

        def body(counter: Affine, values: list[str]) -> list[str]:
            self.state.inside |= known
            with self.state.spanning(**{axis: Span(span.base + counter, 1)}):
                inner = self.run(rest, _named(totals, values), points, lanes)
            self.state.inside -= known
            return [value.name for value in inner]

        return self._loop(start, stop, totals, body)


def _named(like: Sequence[Val], names: Sequence[str]) -> list[Val]:
    return [Val(name, v.dtype, v.width) for v, name in zip(like, names, strict=True)]


def _iterates(tile: Tile, state: State) -> bool:
    """Whether an Iterate is computed for each element of a tile."""
    if isinstance(tile, Ref) and tile.name in state.lets:
        return _iterates(state.lets[tile.name], state)
    return isinstance(tile, Iterate) or any(_iterates(part, state) for part in children(tile))
