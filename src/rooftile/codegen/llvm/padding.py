"""How an axis of a reduction meets padding: cut to what lies inside, or decided point by point."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rooftile.codegen.llvm.reduction import Reduction
from rooftile.codegen.llvm.state import Point, State
from rooftile.core.affine import Affine
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
            others = [axis, *rest]
            if isinstance(extent, int) and _always_inside(state, part, extent, others, points):
                continue
            places = {state.offset(part - Affine(((axis, coef),)), p) for p in points}
            shared = any(part.coef(other) for other in rest)
            along = part.coef(state.vector_axis or "")
            if len(places) == 1 and not shared and coef > 0 and not along:
                (place,) = places
                base = state.spans[axis].base
                start = Affine(*place) + base * coef
                clips.append(Clip(load, dim, coef, start, state.operand(extent)))
            elif isinstance(extent, int) and all(not terms for terms, _ in places):
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


@dataclass(frozen=True)
class Interior:
    """The part `first .. stop-1` of an axis in which padded loads of open extent stay inside their
    buffers, in the dims of `known`. `stop` is an i64 of the run, at most the axis's extent."""

    first: int
    stop: str
    known: Inside


def interior(state: State, axis: str, total: str) -> Interior | None:
    """The interior of an axis of `total` elements; None where no such load moves along it."""
    first, stop = 0, total
    known: Inside = set()
    loads = [part for top in expressions(state.kernel.body) for part in subtiles(top)]
    for load in loads:
        if not isinstance(load, Load) or load.pad is None:
            continue
        for dim, part in enumerate(load.index):
            extent = state.bufs[load.buf].shape[dim]
            if not isinstance(part, Affine) or isinstance(extent, int) or part.coef(axis) < 1:
                continue
            coef, reached = part.coef(axis), _reached(state, part, axis)
            if reached is not None:
                low, high = reached
                first = max(first, -(low // coef))
                # Truncated division of this numerator is right, or the interior is empty.
                room = state.operand(extent) + (coef - 1 - high)
                stop = _chosen(state, "slt", _divided(state, room, coef), stop)
                known.add((id(load), dim))
    return Interior(first, stop, known) if known else None


def _reached(state: State, part: Affine, axis: str) -> tuple[int, int] | None:
    """The least and the greatest index at place 0 of an axis, where the others in it are known."""
    low = high = part.const
    for name, coef in part.terms:
        if name != axis:
            extent = state.kernel.axes[name].extent
            if state.kernel.axes[name].tile != "whole" or not isinstance(extent, int):
                return None
            low, high = low + min(0, coef * (extent - 1)), high + max(0, coef * (extent - 1))
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
