"""`rooftile show`: a model at any stage of the compiler, as text."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping
from typing import Any

import rooftile
from rooftile.cli import arguments as shared
from rooftile.cli.feeds import feeds_for
from rooftile.cli.output import note
from rooftile.core.errors import InvalidOption
from rooftile.ir import graph, program
from rooftile.ir.tile.text import to_text as tile_text
from rooftile.native import assembly, host_target

Compilation = Any


def _tiles(compilation: Compilation) -> dict[str, str]:
    return {name: tile_text(kernel) for name, kernel in compilation.kernels.items()}


def _assembly(compilation: Compilation) -> dict[str, str]:
    target = host_target()
    return {name: assembly(text, target) for name, text in compilation.llvm.items()}


WHOLE: Mapping[str, Callable[[Compilation], str]] = {
    "graph": lambda compilation: graph.to_text(compilation.graph),
    "regions": lambda compilation: graph.regions_to_text(compilation.regions),
    "program": lambda compilation: program.to_text(compilation.program),
}
"""Stages that show the model as one text."""

BY_KERNEL: Mapping[str, Callable[[Compilation], dict[str, str]]] = {
    "tile": _tiles,
    "llvm": lambda compilation: dict(compilation.llvm),
    "asm": _assembly,
}
"""Stages that show kernels one by one."""

STAGES = ("graph", "regions", "tile", "program", "llvm", "asm")


def add(parsers: shared.Parsers) -> None:
    """The parser of the command."""
    about = "print a model at a stage of the compiler"
    parser = shared.new_command(parsers, "show", about, command)
    shared.add_model(parser)
    shared.add_fuse(parser)
    parser.add_argument("--stage", choices=STAGES, required=True, help="what to print")
    parser.add_argument(
        "--kernel", metavar="NAME", help="one kernel, by its name or the start of it"
    )


def command(arguments: argparse.Namespace) -> None:
    """Compile and print."""
    stage, wanted = arguments.stage, arguments.kernel
    if wanted is not None and stage not in BY_KERNEL:
        listed = ", ".join(BY_KERNEL)
        raise InvalidOption(f"stage {stage} shows the whole model; --kernel goes with {listed}")
    feeds, notes = feeds_for(arguments.model, arguments.shape, arguments.feed)
    for line in notes:
        note(f"{line}; --shape chooses others")
    shapes = {name: array.shape for name, array in feeds.items()}
    options = shared.compile_options(arguments)
    compilation = rooftile.compile(arguments.model, options, shapes).compilation
    if stage in WHOLE:
        sys.stdout.write(WHOLE[stage](compilation))
        return
    texts = BY_KERNEL[stage](compilation)
    for name in chosen(list(texts), wanted):
        sys.stdout.write(texts[name].rstrip("\n") + "\n\n")


def chosen(names: list[str], wanted: str | None) -> list[str]:
    """The kernels whose names start with what is wanted; InvalidOption lists them if none does."""
    found = [name for name in names if wanted is None or name.startswith(wanted)]
    if not found and wanted is not None:
        raise InvalidOption(f"no kernel is called {wanted!r}; there are {', '.join(names)}")
    return found
