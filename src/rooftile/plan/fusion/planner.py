"""Which nodes become one kernel: legal by a rule, lowered on trial, and worth it on the roof.

Best gain first; each pair that was looked at leaves its verdict in the journal.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module

from rooftile.core.errors import NotLowered
from rooftile.core.journal import Journal
from rooftile.ir.graph import Graph, Region
from rooftile.machine.model import Machine
from rooftile.plan.cost import Prediction, nbytes, predict
from rooftile.plan.fusion.base import Rule
from rooftile.plan.partition import VIEWS, Group, Partition

ORDER = (
    "elementwise",
    "epilogue",
    "rows",
    "dot_rows",
    "attention",
    "pool",
    "window_operand",
    "prologue",
    "depthwise",
)
"""Modules of this folder, each with one RULE, in the order in which they are asked: the first that
is about a pair of groups decides whether joining them is legal."""

RULES: tuple[Rule, ...] = tuple(
    import_module(f"rooftile.plan.fusion.{name}").RULE for name in ORDER
)

MEMORY_READERS = frozenset(("concat",))

Trial = Callable[[Region], int]
"""Lowers a region and gives the operations its program does; raises NotLowered with the reason."""


@dataclass(frozen=True)
class Verdict:
    """What was found about joining two groups."""

    gain: float
    rule: str
    reason: str = ""
    bytes_saved: int = 0
    flops_added: int = 0
    seconds: float = 0.0


class Planner:
    """One run of the planner over a graph."""

    def __init__(self, graph: Graph, machine: Machine, journal: Journal, trial: Trial) -> None:
        self.graph = graph
        self.machine = machine
        self.journal = journal
        self.trial = trial
        self.partition = Partition(graph, MEMORY_READERS)
        self.predictions: dict[tuple[str, ...], Prediction] = {}
        self.told: set[tuple[str, str, str]] = set()

    def run(self, fuse: bool = True) -> tuple[Region, ...]:
        """The regions, in an order in which they can run."""
        self._store_unreadable_views()
        if fuse:
            self._join()
        numbers = sorted(self.partition.groups)
        return tuple(self.partition.region(self.partition.groups[n]) for n in numbers)

    # -- views that cannot be read through

    def _store_unreadable_views(self) -> None:
        """Where a group cannot compute through the views it reads, the views become copies."""
        todo = sorted(self.partition.groups)
        while todo:
            group = self.partition.groups[todo.pop(0)]
            region = self.partition.region(group)
            try:
                self.trial(region)
            except NotLowered as refusal:
                views = [n for n in region.nodes if n.op in VIEWS and n not in group.nodes]
                if not views:
                    raise NotLowered(
                        f"%{group.name}: no kernel for {group.root.op}: {refusal}"
                    ) from None
                copy = self.partition.make(views[-1])
                self.journal.add("copies", (views[-1].name, group.name), "stored", str(refusal))
                todo += [copy.number, group.number]

    # -- joining

    def _join(self) -> None:
        heap: list[tuple[float, int, int]] = []
        for number in sorted(self.partition.groups):
            self._push(heap, self.partition.groups[number])
        while heap:
            gain, first, second = heapq.heappop(heap)
            groups = self.partition.groups
            if first not in groups or second not in groups:
                continue
            producer, consumer = groups[first], groups[second]
            verdict = self._judge(producer, consumer)
            if verdict.gain <= 0:
                continue
            if -gain > verdict.gain * (1 + 1e-9) or -gain < verdict.gain * (1 - 1e-9):
                heapq.heappush(heap, (-verdict.gain, first, second))
                continue
            merged = self.partition.joined(producer, consumer)
            self._tell(producer, consumer, verdict, "taken")
            self.partition.replace(producer, consumer, merged)
            self._push(heap, merged)
            for reader in self.partition.readers(merged.name)[0]:
                self._push(heap, groups[reader])

    def _push(self, heap: list[tuple[float, int, int]], consumer: Group) -> None:
        for number in self.partition.producers(consumer):
            producer = self.partition.groups[number]
            verdict = self._judge(producer, consumer)
            if verdict.gain > 0:
                heapq.heappush(heap, (-verdict.gain, producer.number, consumer.number))
            else:
                self._tell(producer, consumer, verdict, "refused")
        for reader in sorted(self.partition.readers(consumer.name)[0]):
            if reader != consumer.number and reader in self.partition.groups:
                other = self.partition.groups[reader]
                verdict = self._judge(consumer, other)
                if verdict.gain > 0:
                    heapq.heappush(heap, (-verdict.gain, consumer.number, reader))

    def _judge(self, producer: Group, consumer: Group) -> Verdict:
        rule = next((r for r in RULES if r.applies(producer, consumer)), None)
        if rule is None:
            return Verdict(0.0, "", "no rule joins these kinds of work")
        escapes = self.partition.escapes(producer, consumer)
        if escapes:
            return Verdict(0.0, rule.name, f"%{escapes[0]} is needed elsewhere too")
        reason = rule.refuse(self.partition, producer, consumer)
        if reason:
            return Verdict(0.0, rule.name, reason)
        merged = self.partition.joined(producer, consumer)
        try:
            together = self._predict(merged)
        except NotLowered as refusal:
            return Verdict(0.0, rule.name, str(refusal))
        first, second = self._predict(producer), self._predict(consumer)
        gain = first.seconds + second.seconds - together.seconds
        added = together.flops - first.flops - second.flops
        saved = 2 * sum(nbytes(value) for value in self.partition.region(producer).outputs)
        word = "" if gain > 0 else "the roof predicts no gain"
        return Verdict(gain, rule.name, word, saved, added, together.seconds)

    def _predict(self, group: Group) -> Prediction:
        key = tuple(node.name for node in group.nodes)
        if key not in self.predictions:
            region = self._region_of(group)
            flops = self.trial(region)
            self.predictions[key] = predict(region, self.machine, self.graph.constants, flops)
        return self.predictions[key]

    def _region_of(self, group: Group) -> Region:
        """The region a group would be, whether or not the partition holds it yet."""
        partition = self.partition
        before = {node.name: partition.owner[node.name] for node in group.nodes}
        for node in group.nodes:
            partition.owner[node.name] = group.number
        region = partition.region(group)
        partition.owner.update(before)
        return region

    def _tell(self, producer: Group, consumer: Group, verdict: Verdict, word: str) -> None:
        key = (producer.name, consumer.name, word)
        if key in self.told:
            return
        self.told.add(key)
        self.journal.add(
            "fusion",
            (producer.name, consumer.name),
            word,
            verdict.reason or f"{verdict.rule}: saves {verdict.gain * 1e6:.2f} us",
            rule=verdict.rule,
            bytes_saved=verdict.bytes_saved if word == "taken" else 0,
            flops_added=verdict.flops_added,
            predicted_ms=verdict.seconds * 1e3,
        )


def fuse(
    graph: Graph, machine: Machine, journal: Journal, trial: Trial, join: bool = True
) -> tuple[Region, ...]:
    """The graph as regions; `join=False` gives one region a node."""
    return Planner(graph, machine, journal, trial).run(join)
