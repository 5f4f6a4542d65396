"""How an axis of a reduction meets padding: cut to what lies inside, or decided point by point."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rooftile.codegen.llvm.reduction import Reduction
from rooftile.codegen.llvm.state import Point, State
from rooftile.core.affine import Affine
from rooftile.ir.tile import Load


@dataclass(frozen=True)
class Clip:
    """The part of a reduced axis that stays inside dim `dim` of a padded load:
    `0 <= coef*i + rest < extent`."""

    load: Load
    dim: int
    coef: int
    rest: Affine
    extent: int


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
            if not isinstance(part, Affine) or not isinstance(extent, int):
                continue
            coef = part.coef(axis)
            if not coef or (id(load), dim) in state.inside:
                continue
            if _always_inside(state, part, extent, [axis, *rest], points):
                continue
            places = {state.offset(part - Affine(((axis, coef),)), p) for p in points}
            shared = any(part.coef(other) for other in rest)
            along = part.coef(state.vector_axis or "")
            if len(places) == 1 and not shared and coef > 0 and not along:
                (place,) = places
                base = state.spans[axis].base
                clips.append(Clip(load, dim, coef, Affine(*place) + base * coef, extent))
            elif all(not terms for terms, _ in places):
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
    if all(not clip.rest.terms for clip in clips):
        low = max([0] + [-(clip.rest.const // clip.coef) for clip in clips])
        top = min([size] + [(c.extent - 1 - c.rest.const) // c.coef + 1 for c in clips])
        return low, max(low, top)
    start, stop = "0", str(size)
    for clip in clips:
        # Truncated division of these numerators is right, or below 0 where the cut is empty.
        first = _divided(state, clip.rest * -1 + (clip.coef - 1), clip.coef)
        after = _divided(state, clip.rest * -1 + (clip.extent - 1 + clip.coef), clip.coef)
        start = _chosen(state, "sgt", first, start)
        stop = _chosen(state, "slt", after, stop)
    return start, stop


def _divided(state: State, value: Affine, divisor: int) -> str:
    name = state.writer.integer(value)
    if divisor == 1:
        return name
    return state.writer.hoisted(f"sdiv i64 {name}, {divisor}", [name])


def _chosen(state: State, word: str, bound: str, current: str) -> str:
    test = state.writer.hoisted(f"icmp {word} i64 {bound}, {current}", [bound, current])
    text = f"select i1 {test}, i64 {bound}, i64 {current}"
    return state.writer.hoisted(text, [test, bound, current])
