"""From scheduled kernels to code: names by content, each distinct text compiled once."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from rooftile.codegen.llvm.kernel import KernelText, emit
from rooftile.codegen.llvm.link import link
from rooftile.codegen.llvm.steps import AnyUnit, LoopUnit, Unit
from rooftile.core.dtype import DType
from rooftile.core.symbolic import hint
from rooftile.ir.graph import Array, Graph, Node, Region
from rooftile.ir.program import KernelFacts, Program
from rooftile.ir.tile import Hints, Kernel
from rooftile.ir.tile.text import to_text
from rooftile.machine.model import Machine
from rooftile.native.bounds import checks_bounds
from rooftile.native.cache import build as compile_objects
from rooftile.native.library import link as link_objects
from rooftile.native.target import Target, host_target
from rooftile.plan.concat import Part
from rooftile.plan.cost import nbytes, predict


@dataclass(frozen=True)
class Work:
    """A region's kernel, ready for generation; `arguments` name the values behind its buffers,
    `split` the axis of its grid that threads share, `seconds` is what one thread needs for it."""

    region: Region
    kernel: Kernel
    hints: Hints
    arguments: tuple[str, ...]
    split: str | None
    seconds: float


@dataclass(frozen=True)
class LoopWork:
    """A scan's region with its node (which reads what the body takes), and the body, planned.

    `results` name the values of the body that an iteration gives.
    """

    region: Region
    node: Node
    body: Plan
    results: tuple[str, ...]


@dataclass(frozen=True)
class Plan:
    """A graph as work in order. `aliases`: outputs that lie in another value's memory; `parts`:
    values that are parts of larger buffers."""

    graph: Graph
    works: tuple[Work | LoopWork, ...]
    aliases: Mapping[str, str]
    parts: Mapping[str, Part] = field(default_factory=dict)


@dataclass(frozen=True)
class Built:
    """All that a program needs to run, and the kernels and texts it came from, by symbol."""

    program: Program
    code: bytes
    symbols: Mapping[str, str]
    constants: Array
    kernels: Mapping[str, Kernel]
    texts: Mapping[str, str]


def build(plan: Plan, machine: Machine, threads: int = 1) -> Built:
    """Generate, compile and link for so many threads; the code is checked where ROOFTILE_BOUNDS
    asks for it."""
    target, checked = host_target(), checks_bounds()
    maker = _Maker(machine, target, checked, threads)
    linked = link(plan.graph, maker.units(plan), plan.aliases, plan.parts, checked, threads)
    sources = [*(text.text for text in maker.texts.values()), linked.entry]
    # LLVM takes ten times as long for the many blocks of checked code, unless it is in a hurry.
    code = link_objects(compile_objects(sources, target, level=0 if checked else 1))
    symbols = {name: name for name in maker.texts}
    shown = {name: text.text for name, text in maker.texts.items()}
    return Built(linked.program, code, symbols, linked.constants, maker.kernels, shown)


@dataclass
class _Maker:
    """Generates the text of each distinct kernel once."""

    machine: Machine
    target: Target
    checked: bool
    threads: int
    texts: dict[str, KernelText] = field(default_factory=dict)
    kernels: dict[str, Kernel] = field(default_factory=dict)

    def units(self, plan: Plan) -> tuple[AnyUnit, ...]:
        """The units of a plan, those of its loops inside."""
        return tuple(
            self._kernel(work, plan.graph) if isinstance(work, Work) else self._loop(work)
            for work in plan.works
        )

    def _kernel(self, work: Work, graph: Graph) -> Unit:
        kernel = named(work.kernel, work.region, work.hints, work.split)
        if kernel.name not in self.texts:
            text = emit(kernel, self.target, work.hints, self.checked, work.split)
            self.texts[kernel.name] = text
            self.kernels[kernel.name] = kernel
        facts = facts_of(work, self.machine, self.threads if work.split else 1)
        return Unit(kernel, self.texts[kernel.name], work.arguments, facts, work.seconds)

    def _loop(self, work: LoopWork) -> LoopUnit:
        units, body = self.units(work.body), work.body
        facts = loop_facts(work, [unit.facts for unit in units])
        results, places = work.results, (body.aliases, body.parts)
        return LoopUnit(work.node, body.graph, units, results, *places, facts)


def named(kernel: Kernel, region: Region, hints: Hints, split: str | None = None) -> Kernel:
    """The kernel under a name made of its ops and of a digest of its text and hints."""
    ops = list(dict.fromkeys(node.op for node in region.nodes))
    first = [op for op in ops if op in ("conv", "dot", "reduce", "reduce_window")]
    words = first + [op for op in ops if op not in first]
    content = to_text(kernel) + repr(hints) + (split or "")
    digest = hashlib.sha256(content.encode()).hexdigest()[:8]
    return replace(kernel, name="_".join((*words[:4], digest)))


def facts_of(work: Work, machine: Machine, threads: int = 1) -> KernelFacts:
    """What reports need to know of a kernel."""
    region = work.region
    prediction = predict(region, machine, threads=threads)
    inner = [v for node in region.nodes for v in node.outputs if v not in region.outputs]
    unfused = prediction.read + prediction.written + 2 * sum(nbytes(value) for value in inner)
    dots: list[DType] = [n.output.dtype for n in region.nodes if n.op in ("dot", "conv")]
    tiles = tuple((axis.name, str(axis.tile)) for axis in work.kernel.grid)
    registers = tuple((f"register {name}", size) for name, size in work.hints.register_tile)
    return KernelFacts(
        origin=region.origin,
        ops=tuple(node.op for node in region.nodes),
        dtype=dots[0] if dots else region.outputs[0].dtype,
        flops=prediction.flops,
        bytes_read=prediction.read,
        bytes_written=prediction.written,
        bytes_unfused=unfused,
        predicted_s=prediction.seconds,
        schedule=(*tiles, *registers, ("isa", machine.isa), ("threads", threads)),
    )


def loop_facts(work: LoopWork, inner: Sequence[KernelFacts]) -> KernelFacts:
    """The facts of all iterations together."""
    trip = hint(work.node.attr("trip"))
    dots = [facts.dtype for facts in inner if {"dot", "conv"} & set(facts.ops)]
    threads = max((int(dict(facts.schedule)["threads"]) for facts in inner), default=1)
    return KernelFacts(
        origin=work.region.origin,
        ops=tuple(op for facts in inner for op in facts.ops),
        dtype=dots[0] if dots else work.region.outputs[0].dtype,
        flops=trip * sum(facts.flops for facts in inner),
        bytes_read=trip * sum(facts.bytes_read for facts in inner),
        bytes_written=trip * sum(facts.bytes_written for facts in inner),
        bytes_unfused=trip * sum(facts.bytes_unfused for facts in inner),
        predicted_s=trip * sum(facts.predicted_s for facts in inner),
        schedule=(("iterations", trip), ("threads", threads)),
    )
