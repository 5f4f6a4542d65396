"""The path of a model, one line a stage: the table of contents of the compiler."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from rooftile.codegen.llvm import LoopWork, Plan, Work, build
from rooftile.core.journal import Journal
from rooftile.core.options import CompileOptions
from rooftile.core.symbolic import Symbols
from rooftile.frontends import onnx
from rooftile.ir.graph import Graph, Region, symbols_in
from rooftile.ir.program import Program
from rooftile.ir.tile import Kernel
from rooftile.lower import Lowered, lower_all, trial
from rooftile.machine import Machine, current
from rooftile.native import MAX_THREADS
from rooftile.passes import simplify
from rooftile.plan.alias import output_aliases
from rooftile.plan.columns import columns_innermost
from rooftile.plan.concat import place_concats
from rooftile.plan.cost import predict
from rooftile.plan.fusion import fuse
from rooftile.plan.layout import channels_last
from rooftile.plan.loops import loop_body
from rooftile.plan.work import record_work
from rooftile.runtime import Executable, Template
from rooftile.schedule import Scheduled, schedule


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
    template: Template | None = None


def compile_model(
    model: Any,
    shapes: Mapping[str, tuple[int, ...]] | None = None,
    options: CompileOptions | None = None,
    journal: Journal | None = None,
    symbols: Symbols | None = None,
) -> Compilation:
    """Compile a model: a path, bytes, or a ModelProto. `shapes` bind the inputs' open dims.

    With `symbols` open dims stay open: the compilation has a template that serves other shapes.
    """
    journal = Journal() if journal is None else journal  # an empty one is false
    graph = onnx.read(model, shapes, symbols)
    for name in sorted(symbols.fixed) if symbols is not None else ():
        journal.add("open", (name,), "fixed", "the model computes with the number that it is")
    return compile_graph(graph, options, journal)


def compile_graph(
    graph: Graph, options: CompileOptions | None = None, journal: Journal | None = None
) -> Compilation:
    """Compile a graph of canonical ops."""
    options, machine = options or CompileOptions(), current()
    options = replace(options, threads=min(options.threads, MAX_THREADS))
    journal = Journal() if journal is None else journal  # an empty one is false
    graph = simplify(graph, options.level)
    record_work(graph, journal)
    plan = _planned(graph, options, machine, journal)
    built = build(plan, machine, options.threads)
    symbols, template = symbols_in(graph.inputs), None
    if symbols is None:
        executable = Executable(built.program, built.objects, built.symbols, built.constants)
    else:
        template = Template(built.program, built.objects, built.symbols, built.constants, symbols)
        executable = template.at_hand()
    regions = tuple(work.region for work in plan.works)
    return Compilation(
        executable,
        executable.program,
        journal,
        plan.graph,
        regions,
        built.kernels,
        built.texts,
        machine,
        template,
    )


def _planned(graph: Graph, options: CompileOptions, machine: Machine, journal: Journal) -> Plan:
    """A graph, or the body of a loop, as kernels in order."""
    graph = simplify(channels_last(graph, journal), options.level)
    graph = columns_innermost(graph)
    graph, parts = place_concats(graph, journal)
    aliases = output_aliases(graph)
    symbols = symbols_in(graph.values.values())

    def scheduled(item: Lowered, seconds: float = 0.0) -> Scheduled:
        hints = symbols.hints if symbols else {}
        constants = item.constants(graph)
        return schedule(item.kernel, machine, constants, hints, options.threads, seconds)

    tried = trial(graph, parts, scheduled if symbols else None)
    regions = fuse(graph, machine, journal, tried, options.fuse, aliases)
    works: list[Work | LoopWork] = []
    for region in regions:
        if region.root.op == "scan":
            node, body = loop_body(region.root, graph)
            inner = _planned(simplify(body, options.level), options, machine, journal)
            works.append(LoopWork(region, node, inner, region.root.attr("body").outputs))
        else:
            [item] = lower_all(graph, [region], parts)
            seconds = predict(region, machine).seconds
            chosen = scheduled(item, seconds)
            for name, least in chosen.hints.least:
                assert symbols is not None
                symbols.reaches(chosen.kernel.axes[name].extent, least)
            made = (chosen.kernel, chosen.hints, item.arguments, chosen.split)
            works.append(Work(region, *made, seconds))
    return Plan(graph, tuple(works), aliases, parts)
