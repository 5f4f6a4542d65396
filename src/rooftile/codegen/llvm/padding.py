"""How an axis of a reduction meets padding: cut to what lies inside, or decided point by point."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rooftile.codegen.llvm.reduction import Reduction
from rooftile.codegen.llvm.state import Point, Span, State
from rooftile.core.affine import Affine, affine
from rooftile.ir.tile import Load, expressions, subtiles

Inside = set[tuple[int, int]]
"""Loads, by identity, and the dims in which they stay inside their buffers."""


@dataclass(frozen=True)
class Clip:
    """The part of a reduced axis that stays inside dim `dim` of a padded load:
    `0 <= coef*i + rest < extent`. An extent that only a run knows is affine in its numbers."""

    load: Load
    dim: int
    coef: int
    rest: Affine
    extent: Affine


def meeting(
    state: State, work: Reduction, axis: str, rest: Sequence[str], points: Sequence[Point]
) -> list[Clip] | str | None:
    """None where nothing is read outside; the cuts that keep every point inside; or "unroll"
    where each point, its place being known, is decided on its own.
    """
    if not work.skips:
        return None
    clips: list[Clip] = []
    for load in work.padded:
        for dim, part in enumerate(load.index):
            extent = state.bufs[load.buf].shape[dim]
            if not isinstance(part, Affine):
                continue
            coef = part.coef(axis)
            if not coef or (id(load), dim) in state.inside:
                continue
            known = isinstance(extent, int)
            if known and _always_inside(state, part, extent, [axis, *rest], points):
                continue
            places = {state.offset(part - Affine(((axis, coef),)), p) for p in points}
            shared = any(part.coef(other) for other in rest)
            along = part.coef(state.vector_axis or "")
            if len(places) == 1 and not shared and coef > 0 and not along:
                (place,) = places
                base = state.spans[axis].base
                start = Affine(*place) + base * coef
                clips.append(Clip(load, dim, coef, start, state.operand(extent)))
            elif known and all(not terms for terms, _ in places):
                return "unroll"
    return clips or None


def _always_inside(
    state: State, part: Affine, extent: int, axes: Sequence[str], points: Sequence[Point]
) -> bool:
    spread = [part.coef(axis) * (state.spans[axis].size - 1) for axis in axes]
    for point in points:
        bounds = state.writer.range(Affine(*state.offset(part, point)))
        if bounds is None:
            return False
        low = bounds[0] + sum(min(0, s) for s in spread)
        high = bounds[1] + sum(max(0, s) for s in spread)
        if low < 0 or high >= extent:
            return False
    return True


def clip_bounds(state: State, size: int, clips: Sequence[Clip]) -> tuple[int | str, int | str]:
    """First and last-but-one step of an axis of `size` steps that stays inside every clip."""
    if all(not clip.rest.terms and not clip.extent.terms for clip in clips):
        low = max([0] + [-(clip.rest.const // clip.coef) for clip in clips])
        ends = [(c.extent.const - 1 - c.rest.const) // c.coef + 1 for c in clips]
        return low, max(low, min([size, *ends]))
    start, stop = "0", str(size)
    for clip in clips:
        # Truncated division of these numerators is right, or below 0 where the cut is empty.
        first = _divided(state, clip.rest * -1 + (clip.coef - 1), clip.coef)
        after = _divided(state, clip.extent - clip.rest + (clip.coef - 1), clip.coef)
        start = _chosen(state, "sgt", first, start)
        stop = _chosen(state, "slt", after, stop)
    return start, stop


def interior(state: State, axis: str, base: Affine, size: int) -> tuple[str, Inside] | None:
    """Whether a tile of an axis reads nothing outside dims of open extent: an i1, and the loads
    and dims that it is about; None where there are none."""
    tests: list[str] = []
    pairs: Inside = set()
    loads = [part for top in expressions(state.kernel.body) for part in subtiles(top)]
    for load in loads:
        if not isinstance(load, Load) or load.pad is None:
            continue
        for dim, part in enumerate(load.index):
            extent = state.bufs[load.buf].shape[dim]
            if not isinstance(part, Affine) or isinstance(extent, int) or not part.coef(axis):
                continue
            bounds = _reached(state, part, axis, base, size)
            if bounds is not None:
                low, high = map(state.writer.integer, bounds)
                tests.append(state.writer.op(f"icmp sge i64 {low}, 0"))
                tests.append(state.writer.op(f"icmp slt i64 {high}, {state.extent(extent)}"))
                pairs.add((id(load), dim))
    if not tests:
        return None
    while len(tests) > 1:
        tests.append(state.writer.op(f"and i1 {tests.pop(0)}, {tests.pop(0)}"))
    return tests[0], pairs


def _reached(
    state: State, part: Affine, axis: str, base: Affine, size: int
) -> tuple[Affine, Affine] | None:
    """The least and the greatest index, where the other axes in it are known."""
    low = high = affine(part.const)
    for name, coef in part.terms:
        span = Span(base, size)
        if name != axis:
            extent = state.kernel.axes[name].extent
            if state.kernel.axes[name].tile != "whole" or not isinstance(extent, int):
                return None
            span = Span(Affine(), extent)
        first, last = span.base * coef, (span.base + (span.size - 1)) * coef
        low, high = (low + first, high + last) if coef > 0 else (low + last, high + first)
    return low, high


def _divided(state: State, value: Affine, divisor: int) -> str:
    name = state.writer.integer(value)
    if divisor == 1:
        return name
    return state.writer.hoisted(f"sdiv i64 {name}, {divisor}", [name])


def _chosen(state: State, word: str, bound: str, current: str) -> str:
    test = state.writer.hoisted(f"icmp {word} i64 {bound}, {current}", [bound, current])
    text = f"select i1 {test}, i64 {bound}, i64 {current}"
    return state.writer.hoisted(text, [test, bound, current])
