"""Offsets for tensors with known lifetimes, in as few bytes as can be found in the time given."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

import numpy as np

from rooftile.core.errors import InvalidOption
from rooftile.memory.constructions import orders, place
from rooftile.memory.packing import Packing, Tensor, lower_bound, validate
from rooftile.memory.search import Search
from rooftile.memory.sections import Ints, Sections

_LARGEST_SEARCH = 2_000_000
_NODES = 1_000


def pack(
    tensors: Sequence[Tensor],
    capacity: int | None = None,
    seconds: float = 1.0,
    earlier: Sequence[int] | None = None,
) -> Packing:
    """Offsets in bytes for tensors (lower, upper, size), live in the half-open [lower, upper).

    Returns as soon as the peak reaches the lower bound, or fits `capacity` bytes where that is
    given, and after about `seconds` at the latest, with the best that was found: a peak above
    `capacity` means that none within was found. The same tensors give the same offsets, unless
    time runs out. `earlier`: good offsets for the same tensors with other sizes; their order is
    tried first. InvalidOption for an empty lifetime, a negative size, capacity or time, or another
    number of `earlier` offsets than of tensors.
    """
    deadline = time.perf_counter() + seconds
    tensors = [(int(lower), int(upper), int(size)) for lower, upper, size in tensors]
    validate(tensors)
    if capacity is not None and capacity < 0:
        raise InvalidOption(f"a capacity of {capacity} bytes is negative")
    if not seconds >= 0:
        raise InvalidOption(f"a time of {seconds} seconds is negative")
    if earlier is not None and len(earlier) != len(tensors):
        raise InvalidOption(f"{len(earlier)} earlier offsets for {len(tensors)} tensors")
    bound = lower_bound(tensors)
    enough = bound if capacity is None else max(bound, capacity)
    offsets = [0] * len(tensors)
    peak = 0
    for group in _components(tensors):
        members = [tensors[index] for index in group]
        before = None if earlier is None else [int(earlier[index]) for index in group]
        found = _pack_component(members, max(enough, peak), deadline, before)
        peak = max(peak, _peak(members, found))
        for index, offset in zip(group, found.tolist(), strict=True):
            offsets[index] = offset
    return Packing(tuple(offsets), peak, bound)


def _components(tensors: Sequence[Tensor]) -> list[list[int]]:
    """Tensors with bytes, cut where nothing is live: what fits one piece never hinders another."""
    groups: list[list[int]] = []
    end = 0
    for index in sorted(range(len(tensors)), key=lambda index: tensors[index]):
        lower, upper, size = tensors[index]
        if size == 0:
            continue
        if not groups or lower >= end:
            groups.append([])
            end = upper
        groups[-1].append(index)
        end = max(end, upper)
    return groups


def _pack_component(
    tensors: Sequence[Tensor], enough: int, deadline: float, earlier: Sequence[int] | None
) -> Ints:
    best: Ints | None = None
    least = 0
    for order, tightest in _ways(tensors, earlier):
        if best is not None and (least <= enough or time.perf_counter() >= deadline):
            return best
        offsets = place(tensors, order, tightest)
        peak = _peak(tensors, offsets)
        if best is None or peak < least:
            best, least = offsets, peak
    assert best is not None
    return best if least <= enough else _improve(tensors, best, enough, deadline)


def _ways(tensors: Sequence[Tensor], earlier: Sequence[int] | None) -> Iterator[tuple[Ints, bool]]:
    """Orders to place tensors in, and whether each goes to the tightest gap or to the lowest."""
    if earlier is not None:
        # From the bottom up no tensor lands higher than it was, as long as sizes are the same.
        yield np.argsort(np.array(earlier, np.int64), kind="stable"), False
    for tightest in (False, True):
        for order in orders(tensors):
            yield order, tightest


def _improve(tensors: Sequence[Tensor], best: Ints, enough: int, deadline: float) -> Ints:
    """Search for `enough` bytes; in between, for peaks half way from there to the best so far."""
    sections = Sections(tensors)
    if sections.incidences > _LARGEST_SEARCH:
        return best
    sections.index()
    low = enough // sections.unit  # the aim; raised where a search proves that it is too low
    aim: Search | None = None
    nodes = _NODES
    while time.perf_counter() < deadline:
        high = _peak(tensors, best) // sections.unit
        if high <= low:
            break
        if aim is None:
            aim = Search(sections, low)
        found = aim.run(deadline, 3 * nodes)
        if found:
            return aim.offsets * sections.unit
        if found is False:
            aim, low = None, low + 1
            continue
        between = Search(sections, (low + high) // 2, seed=nodes)
        if high - low > 1 and between.run(deadline, nodes):
            best = between.offsets * sections.unit
        else:
            nodes *= 2
    return best


def _peak(tensors: Sequence[Tensor], offsets: Ints) -> int:
    sizes = np.array([size for _, _, size in tensors], np.int64)
    return int((offsets + sizes).max())
