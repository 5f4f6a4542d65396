"""Graphs planned on a machine that never changes."""

from __future__ import annotations

from dataclasses import dataclass

from rooftile.core.journal import Decision, Journal
from rooftile.ir.graph import Graph, Region
from rooftile.lower import trial
from rooftile.machine import preset
from rooftile.plan.alias import output_aliases
from rooftile.plan.concat import place_concats
from rooftile.plan.fusion.planner import Planner

MACHINE = preset("zen5-server")


@dataclass(frozen=True)
class Planned:
    """The regions of a graph, by the names of their nodes, and what was said about each pair."""

    graph: Graph
    regions: tuple[Region, ...]
    journal: Journal

    @property
    def groups(self) -> list[list[str]]:
        """The ops of each region."""
        return [[node.op for node in region.nodes] for region in self.regions]

    @property
    def ledger(self) -> list[Decision]:
        """The decisions about pairs."""
        return self.journal.of("fusion")

    def verdict(self, producer: str, consumer: str) -> Decision:
        """What was decided about two groups, each named by the op of its last node."""
        ops = {node.name: node.op for node in self.graph.nodes}
        found = [
            entry
            for entry in self.ledger
            if [ops[name] for name in entry.subject] == [producer, consumer]
        ]
        assert len(found) == 1, [(e.subject, e.verdict, e.reason) for e in self.ledger]
        return found[0]


def planner(graph: Graph, journal: Journal) -> Planner:
    """A planner for a graph, and what it takes to start one."""
    graph, parts = place_concats(graph, journal)
    return Planner(graph, MACHINE, journal, trial(graph, parts), output_aliases(graph))


def plan(graph: Graph, fuse: bool = True) -> Planned:
    """The graph's plan."""
    journal = Journal()
    made = planner(graph, journal)
    return Planned(made.graph, made.run(fuse), journal)
