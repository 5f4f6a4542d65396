"""Regions become tile programs."""

from collections.abc import Callable, Mapping, Sequence

from rooftile.ir.graph import Graph, Region, symbols_in
from rooftile.ir.tile.cost import cost
from rooftile.lower.records import Lowered, View
from rooftile.lower.region import lower
from rooftile.plan.concat import Part

__all__ = ["Lowered", "View", "lower", "lower_all", "trial"]


def _lower(graph: Graph, region: Region, parts: Mapping[str, Part]) -> Lowered:
    names = [value.name for value in (*region.inputs, *region.outputs)]
    mine = {name: parts[name] for name in names if name in parts}
    views = {
        name: View(part.buffer, graph.values[part.buffer].dims, part.start)
        for name, part in mine.items()
    }
    return lower(region, graph.constants, views)


def trial(
    graph: Graph,
    parts: Mapping[str, Part],
    further: Callable[[Lowered], object] | None = None,
) -> Callable[[Region], int]:
    """A function that lowers a region for the planner and counts the operations of the result.

    `further` may refuse what was lowered, by NotLowered.
    """
    symbols = symbols_in(graph.values.values())

    def count(region: Region) -> int:
        lowered = _lower(graph, region, parts)
        if further is not None:
            further(lowered)
        return cost(lowered.kernel, symbols.hints if symbols else None).total_flops

    return count


def lower_all(graph: Graph, regions: Sequence[Region], parts: Mapping[str, Part]) -> list[Lowered]:
    """The tile program of each region."""
    return [_lower(graph, region, parts) for region in regions]
