"""The part of an axis that a Slice takes, for its host body and for its reader."""

from __future__ import annotations


def part_of(extent: int, start: int, end: int, step: int) -> tuple[int, int, int]:
    """First element, limit and step inside the axis; an empty part is 0, 0, 1.

    Bounds count from the end where negative and are then brought inside, as the standard says: a
    start before the axis is its first element, with negative steps too (where numpy takes nothing).
    A limit of -1 lies before the axis, not at its end. Extent and bounds may be symbols.
    """
    start, end = (bound + extent if bound < 0 else bound for bound in (start, end))
    if step > 0:
        start, end = min(max(start, 0), extent), min(max(end, 0), extent)
    else:
        start, end = min(max(start, 0), extent - 1), min(max(end, -1), extent - 1)
    return (start, end, step) if -((start - end) // step) > 0 else (0, 0, 1)
