"""Programs with symbolic extents bound to values, and arenas laid out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from rooftile import memory
from rooftile.core.symbolic import evaluated, hint
from rooftile.ir.program.lifetime import lifetimes
from rooftile.ir.program.records import (
    Arg,
    Copy,
    Launch,
    Loop,
    Port,
    Program,
    Split,
    Step,
    reads,
    writes,
)

PACK_SECONDS = 0.2
"""How long the search for a small arena may take."""

SLACK = 0.01
"""Share of the lower bound that an arena like an earlier one may be above it: a run waits."""


def placed(program: Program, seconds: float = PACK_SECONDS, like: Program | None = None) -> Program:
    """The program with each buffer of the arena at its place, by size and time of use.

    `like`: the same program with other sizes, placed. Its plan is followed where that is good.
    """
    inside = {buffer.name: buffer for buffer in program.buffers if buffer.in_arena}
    spans = {n: span for n, span in lifetimes(program.steps).items() if n in inside}
    sizes = {name: -(-inside[name].nbytes // 64) * 64 for name in spans}
    used = [(first, last + 1, sizes[name]) for name, (first, last) in spans.items()]
    if like is None:
        packing = memory.pack(used, seconds=seconds)
    else:
        capacity = int(memory.lower_bound(used) * (1 + SLACK))
        packing = memory.pack(used, capacity, seconds, [like.by_name[n].offset for n in spans])
    offsets = dict(zip(spans, packing.offsets, strict=True))
    return replace(
        program,
        buffers=tuple(replace(b, offset=offsets.get(b.name, b.offset)) for b in program.buffers),
        arena_bytes=packing.peak,
        lower_bound_bytes=packing.lower_bound,
        no_reuse_bytes=sum(sizes.values()),
    )


def sizes_in(steps: Iterable[Step]) -> Iterator[int]:
    """The numbers in steps that may be symbols: what copies move, trips, and places in buffers."""
    for step in steps:
        if isinstance(step, Copy):
            yield step.nbytes
        elif isinstance(step, Loop):
            yield step.trip
            yield from sizes_in(step.body)
            continue
        elif isinstance(step, Launch) and step.split is not None:
            yield step.split.tiles
        for arg in (*reads(step), *writes(step)):
            yield arg.offset
            yield arg.step


def bound(program: Program, values: Mapping[str, int], like: Program | None = None) -> Program:
    """The program for values of its symbols: its sizes are numbers, its arena is laid out.

    `like`: what this function gave for other values; a plan like its own takes less time.
    """

    def port(item: Port) -> Port:
        return replace(item, shape=tuple(evaluated(extent, values) for extent in item.shape))

    def arg(item: Arg) -> Arg:
        return Arg(item.buffer, evaluated(item.offset, values), evaluated(item.step, values))

    def split(item: Split | None) -> Split | None:
        if item is None:
            return None
        tiles = evaluated(item.tiles, values)
        return replace(item, tiles=tiles, seconds=item.seconds * tiles / hint(item.tiles))

    def step(item: Step) -> Step:
        if isinstance(item, Copy):
            return Copy(arg(item.src), arg(item.dst), evaluated(item.nbytes, values))
        if isinstance(item, Loop):
            body = tuple(map(step, item.body))
            return replace(item, trip=evaluated(item.trip, values), body=body)
        if isinstance(item, Launch):
            return replace(item, args=tuple(map(arg, item.args)), split=split(item.split))
        return item

    buffers = [replace(b, nbytes=evaluated(b.nbytes, values)) for b in program.buffers]
    return placed(
        replace(
            program,
            inputs=tuple(map(port, program.inputs)),
            outputs=tuple(map(port, program.outputs)),
            buffers=tuple(buffers),
            steps=tuple(map(step, program.steps)),
            numbers=tuple((name, evaluated(extent, values)) for name, extent in program.numbers),
        ),
        like=like,
    )
