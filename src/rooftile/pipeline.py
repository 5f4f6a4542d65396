"""The path of a model, one line a stage: the table of contents of the compiler."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rooftile.codegen.llvm import Work, build
from rooftile.core.journal import Journal
from rooftile.core.options import CompileOptions
from rooftile.frontends import onnx
from rooftile.ir.graph import Graph, Region
from rooftile.ir.program import Program
from rooftile.ir.tile import Kernel
from rooftile.lower import lower_all, trial
from rooftile.machine import Machine, current
from rooftile.passes import simplify
from rooftile.plan.concat import place_concats
from rooftile.plan.fusion import fuse
from rooftile.plan.layout import channels_last
from rooftile.plan.work import record_work
from rooftile.runtime import Executable
from rooftile.schedule import schedule


@dataclass(frozen=True)
class Compilation:
    """A compiled model and every stage it went through. `llvm`: kernel texts by name."""

    executable: Executable
    program: Program
    journal: Journal
    graph: Graph
    regions: tuple[Region, ...]
    kernels: Mapping[str, Kernel]
    llvm: Mapping[str, str]
    machine: Machine


def compile_model(
    model: Any,
    shapes: Mapping[str, tuple[int, ...]] | None = None,
    options: CompileOptions | None = None,
    journal: Journal | None = None,
) -> Compilation:
    """Compile a model: a path, bytes, or a ModelProto. `shapes` bind the inputs' open dims."""
    options, machine = options or CompileOptions(), current()
    journal = Journal() if journal is None else journal  # an empty one is false
    graph = onnx.read(model, shapes)
    graph = simplify(graph, options.level)
    record_work(graph, journal)
    graph = simplify(channels_last(graph, journal), options.level)
    graph, parts = place_concats(graph, journal)
    regions = fuse(graph, machine, journal, trial(graph, parts), options.fuse)
    lowered = lower_all(graph, regions, parts)
    scheduled = [schedule(item.kernel, machine, item.constants(graph)) for item in lowered]
    works = [
        Work(region, plan.kernel, plan.hints, item.arguments)
        for region, item, plan in zip(regions, lowered, scheduled, strict=True)
    ]
    built = build(graph, works, parts, machine)
    executable = Executable(built.program, built.objects, built.symbols, built.constants)
    return Compilation(
        executable, built.program, journal, graph, regions, built.kernels, built.texts, machine
    )
