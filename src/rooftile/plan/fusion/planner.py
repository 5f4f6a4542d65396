"""Which nodes become one kernel: legal by a rule, lowered on trial, and worth it on the roof.

Best gain first; each pair that was looked at leaves its verdict in the journal.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Container
from dataclasses import dataclass
from importlib import import_module

from rooftile.core.errors import NotLowered, UnsupportedOp
from rooftile.core.journal import Journal
from rooftile.ir.graph import Graph, Node, Region
from rooftile.machine.model import Machine
from rooftile.ops import OPS
from rooftile.plan.cost import Prediction, nbytes, predict
from rooftile.plan.fusion.base import Rule
from rooftile.plan.fusion.repeated import AGAIN, RUNS, is_row_again, repeats_along_rows
from rooftile.plan.partition import ALONE, VIEWS, Group, Partition, alone, is_alone

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

MOST_NODES = 64
"""Kernels of more nodes take long to compile and save little; those of networks are smaller."""
MOST_VIEWS = 32
"""Behind so many views in a row what they show is stored."""

MEMORY_READERS = frozenset(("concat", *(op.name for op in OPS.values() if op.kind in ALONE)))

Trial = Callable[[Region], int]
"""Lowers a region and gives the operations its program does; raises NotLowered with the reason."""


@dataclass(frozen=True)
class Verdict:
    """What was found about joining two groups: `gain` in seconds, `seconds` of the two as one
    (0 where they cannot be)."""

    gain: float
    rule: str
    reason: str = ""
    bytes_saved: int = 0
    flops_added: int = 0
    seconds: float = 0.0


class Planner:
    """One run of the planner over a graph."""

    def __init__(
        self,
        graph: Graph,
        machine: Machine,
        journal: Journal,
        trial: Trial,
        aliases: Container[str] = (),
    ) -> None:
        self.graph = graph
        self.machine = machine
        self.journal = journal
        self.trial = trial
        self.partition = Partition(graph, MEMORY_READERS, aliases)
        self.predictions: dict[tuple[str, ...], Prediction] = {}
        self.verdicts: dict[tuple[str, str], tuple[str, Verdict]] = {}
        self.refused: dict[str, set[tuple[str, str]]] = {}
        """By the name of a group, the pairs with it that were refused."""

    def run(self, fuse: bool = True) -> tuple[Region, ...]:
        """The regions, in an order in which they can run."""
        self._store_repeating_views()
        self._store_unreadable_views()
        if fuse:
            self._join()
        partition = self.partition
        found = {n: partition.region(group) for n, group in partition.groups.items()}
        for number, node in enumerate(self.graph.nodes):
            if is_alone(node):
                found[number] = alone(self.graph, node)
        return tuple(found[number] for number in sorted(found))

    # -- views that cannot be read through, or not well

    def _store_repeating_views(self) -> None:
        """Small views in which elements repeat along the rows of a reader become copies."""
        for number in sorted(self.partition.groups):
            group = self.partition.groups[number]
            for view in self.partition.region(group).nodes:
                apart = view.name not in self.partition.owner
                if apart and repeats_along_rows(self.graph, view, group.root):
                    self.partition.make(view)
                    self.journal.add("copies", (view.name, group.name), "stored", RUNS)

    def _store_unreadable_views(self) -> None:
        """Where a group cannot compute through the views it reads, the views become copies."""
        todo = sorted(self.partition.groups)
        while todo:
            group = self.partition.groups[todo.pop(0)]
            region = self.partition.region(group)
            views = [n for n in region.nodes if n.op in VIEWS and n not in group.nodes]
            nearest = 1
            try:
                if len(views) > MOST_VIEWS:
                    nearest = MOST_VIEWS
                    raise NotLowered(f"it reads through more than {MOST_VIEWS} views")
                self.trial(region)
            except NotLowered as refusal:
                if not views:
                    raise _unsupported(group.root, refusal) from refusal
                stored = views[-nearest]
                copy = self.partition.make(stored)
                self.journal.add("copies", (stored.name, group.name), "stored", str(refusal))
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
            verdict = self._look_at(producer, consumer)
            if verdict.gain <= 0:
                continue
            if -gain > verdict.gain * (1 + 1e-9) or -gain < verdict.gain * (1 - 1e-9):
                heapq.heappush(heap, (-verdict.gain, first, second))
                continue
            merged = self._merge(producer, consumer, verdict)
            self._push(heap, merged)
            for reader in sorted(self.partition.readers(merged.name)[0]):
                self._push(heap, groups[reader])
        for pair, (word, verdict) in self.verdicts.items():
            self._tell(pair, word, verdict)

    def _merge(self, producer: Group, consumer: Group, verdict: Verdict) -> Group:
        """Let one group stand for both; what was said about the producer's other pairs lapses."""
        between = self.partition.between(producer, consumer)
        assert between is not None
        groups = (producer, *between, consumer)
        merged = self.partition.joined(*groups)
        self.partition.replace(groups, merged)
        for group in groups[:-1]:
            for pair in self.refused.pop(group.name, ()):
                if self.verdicts.get(pair, ("taken",))[0] == "refused":
                    del self.verdicts[pair]
        self.verdicts[producer.name, consumer.name] = ("taken", verdict)
        return merged

    def _push(self, heap: list[tuple[float, int, int]], group: Group) -> None:
        """Look at a group with each of its producers and each of its readers."""
        groups = self.partition.groups
        pairs = [(groups[number], group) for number in self.partition.producers(group)]
        readers = sorted(self.partition.readers(group.name)[0] - {group.number})
        pairs += [(group, groups[number]) for number in readers]
        for producer, consumer in pairs:
            verdict = self._look_at(producer, consumer)
            if verdict.gain > 0:
                heapq.heappush(heap, (-verdict.gain, producer.number, consumer.number))

    def _look_at(self, producer: Group, consumer: Group) -> Verdict:
        """What is to be said about a pair now; it stands as refused until the pair is joined."""
        verdict = self._judge(producer, consumer)
        pair = (producer.name, consumer.name)
        self.verdicts[pair] = ("refused", verdict)
        for name in pair:
            self.refused.setdefault(name, set()).add(pair)
        return verdict

    def _judge(self, producer: Group, consumer: Group) -> Verdict:
        """Whether two groups, with those on the paths between them, can and should be one."""
        between = self.partition.between(producer, consumer)
        if between is None:
            rule = _rule(producer, consumer)
            name = self.partition.escaping(producer, consumer)
            return Verdict(0.0, rule.name if rule else "", f"%{name} is needed elsewhere too")
        groups = (producer, *between, consumer)
        merged = producer
        for group in groups[1:]:
            rule = _rule(merged, group)
            if rule is None:
                return Verdict(0.0, "", "no rule joins these kinds of work")
            reason = rule.refuse(self.partition, merged, group)
            if reason:
                return Verdict(0.0, rule.name, reason)
            merged = self.partition.joined(merged, group)
        assert rule is not None
        if repeats_along_rows(self.graph, producer.root, consumer.root):
            return Verdict(0.0, rule.name, RUNS)
        if is_row_again(self.graph, self.machine, producer, consumer):
            return Verdict(0.0, rule.name, AGAIN)
        try:
            together = self._predict(merged)
        except NotLowered as refusal:
            return Verdict(0.0, rule.name, str(refusal))
        alone = [self._predict(group) for group in groups]
        gain = sum(part.seconds for part in alone) - together.seconds
        added = together.flops - sum(part.flops for part in alone)
        regions = (self.partition.region(group) for group in groups[:-1])
        saved = 2 * sum(nbytes(value) for region in regions for value in region.outputs)
        word = "" if gain > 0 else "the roof predicts no gain"
        return Verdict(gain, rule.name, word, saved, added, together.seconds)

    def _predict(self, group: Group) -> Prediction:
        key = tuple(node.name for node in group.nodes)
        if key not in self.predictions:
            region = self._region_of(group)
            if len(region.nodes) > MOST_NODES:
                raise NotLowered(f"a kernel of more than {MOST_NODES} nodes")
            flops = self.trial(region)
            self.predictions[key] = predict(region, self.machine, flops)
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

    def _tell(self, pair: tuple[str, str], word: str, verdict: Verdict) -> None:
        self.journal.add(
            "fusion",
            pair,
            word,
            verdict.reason or f"{verdict.rule}: saves {verdict.gain * 1e6:.2f} us",
            rule=verdict.rule,
            bytes_saved=verdict.bytes_saved if word == "taken" else 0,
            flops_added=verdict.flops_added,
            predicted_ms=verdict.seconds * 1e3,
        )


def fuse(
    graph: Graph,
    machine: Machine,
    journal: Journal,
    trial: Trial,
    join: bool = True,
    aliases: Container[str] = (),
) -> tuple[Region, ...]:
    """The graph as regions; `join=False` gives one region a node.

    `aliases`: outputs that need no kernel (see `plan.alias`). UnsupportedOp names a node for which
    there is no kernel.
    """
    return Planner(graph, machine, journal, trial, aliases).run(join)


def _rule(producer: Group, consumer: Group) -> Rule | None:
    """The first rule that is about a pair."""
    return next((rule for rule in RULES if rule.applies(producer, consumer)), None)


def _unsupported(node: Node, reason: NotLowered) -> UnsupportedOp:
    where = f"node {', '.join(node.origin)}" if node.origin else f"%{node.name}"
    return UnsupportedOp(f"{where}: no kernel can be made for its {node.op}: {reason}")
