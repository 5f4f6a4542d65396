"""From scheduled kernels to objects: names by content, each distinct text compiled once."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from rooftile.codegen.llvm.kernel import KernelText, emit
from rooftile.codegen.llvm.link import Linked, Unit, link
from rooftile.core.dtype import DType
from rooftile.ir.graph import Array, Graph, Region, Value
from rooftile.ir.program import KernelFacts, Program
from rooftile.ir.tile import Hints, Kernel
from rooftile.ir.tile.text import to_text
from rooftile.machine.model import Machine
from rooftile.native.cache import build as compile_objects
from rooftile.native.target import Target, host_target
from rooftile.plan.concat import Part
from rooftile.plan.cost import nbytes, predict


@dataclass(frozen=True)
class Work:
    """A region's kernel, ready for generation; `arguments` name the values behind its buffers."""

    region: Region
    kernel: Kernel
    hints: Hints
    arguments: tuple[str, ...]


@dataclass(frozen=True)
class Built:
    """All that a program needs to run, and the kernels and texts it came from, by symbol."""

    program: Program
    objects: list[bytes]
    symbols: Mapping[str, str]
    constants: Array
    kernels: Mapping[str, Kernel]
    texts: Mapping[str, str]


def build(
    graph: Graph, works: Sequence[Work], parts: Mapping[str, Part], machine: Machine
) -> Built:
    """Generate, compile and link."""
    target = host_target()
    texts: dict[str, KernelText] = {}
    kernels: dict[str, Kernel] = {}
    units: list[Unit] = []
    for work in works:
        kernel = named(work.kernel, work.region, work.hints)
        if kernel.name not in texts:
            texts[kernel.name] = _emit(kernel, target, work)
            kernels[kernel.name] = kernel
        facts = facts_of(work, machine, graph.constants)
        units.append(Unit(kernel, texts[kernel.name], work.arguments, facts))
    linked: Linked = link(graph, units, _places(graph, parts), {})
    sources = [*(text.text for text in texts.values()), linked.entry]
    objects = compile_objects(sources, target)
    symbols = {name: name for name in texts}
    shown = {name: text.text for name, text in texts.items()}
    return Built(linked.program, objects, symbols, linked.constants, kernels, shown)


def _emit(kernel: Kernel, target: Target, work: Work) -> KernelText:
    return emit(kernel, target, work.hints)


def named(kernel: Kernel, region: Region, hints: Hints) -> Kernel:
    """The kernel under a name made of its ops and of a digest of its text and hints."""
    ops = list(dict.fromkeys(node.op for node in region.nodes))
    first = [op for op in ops if op in ("conv", "dot", "reduce", "reduce_window")]
    words = first + [op for op in ops if op not in first]
    digest = hashlib.sha256((to_text(kernel) + repr(hints)).encode()).hexdigest()[:8]
    return replace(kernel, name="_".join((*words[:4], digest)))


def facts_of(work: Work, machine: Machine, constants: Mapping[str, Array]) -> KernelFacts:
    """What reports need to know of a kernel."""
    region = work.region
    prediction = predict(region, machine, constants)
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
        schedule=(*tiles, *registers, ("isa", machine.isa), ("threads", 1)),
    )


def _places(graph: Graph, parts: Mapping[str, Part]) -> Mapping[str, Value]:
    return graph.values
