"""`rooftile machine`: the roofs of this machine, and the presets."""

from __future__ import annotations

import argparse
import json

from rich import box
from rich.table import Table

from rooftile.cli import arguments as shared
from rooftile.cli.output import console, progress, wants_json_alone, write_json
from rooftile.machine import Machine, current, presets, probe
from rooftile.machine.current import keep, machine_file
from rooftile.report.units import scaled, seconds


def add(parsers: shared.Parsers) -> None:
    """The parser of the command."""
    about = "show the roofs of this machine, measured once and kept"
    parser = shared.new_command(parsers, "machine", about, command)
    parser.add_argument("--probe", action="store_true", help="measure again, some seconds long")
    shared.add_json(parser)


def command(arguments: argparse.Namespace) -> None:
    """Measure where asked, show, list the presets."""
    with progress("measuring"):
        machine = probe() if arguments.probe else current()
    kept = keep(machine) if arguments.probe else True
    if not wants_json_alone(arguments.json):
        _show(machine)
        if not kept:
            print(f"{machine_file()} cannot be written: the next command measures again")
        print(f"presets (ROOFTILE_MACHINE=NAME plans for one): {', '.join(presets())}")
    write_json(json.loads(machine.to_json()), arguments.json)


def _show(machine: Machine) -> None:
    out = console()
    out.print(f"{machine.name}: {machine.cpu}, {machine.isa}, {machine.cores} cores")
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1), pad_edge=False)
    for column in ("roof", "1 core", f"{machine.cores} cores", "size"):
        table.add_column(column)
    for dtype in machine.peak:
        rates = [scaled(machine.peak_of(dtype, n), "FLOP/s") for n in (1, machine.cores)]
        table.add_row(f"{dtype} multiply-add", *rates)
    for level in machine.levels:
        rates = [scaled(machine.bandwidth_of(level, n), "B/s") for n in (1, machine.cores)]
        size = scaled(machine.cache[level], "B") if level in machine.cache else ""
        table.add_row(f"{level} reads", *rates, size)
    out.print(table)
    out.print(
        f"a kernel call {seconds(machine.launch_s)}, a microkernel call "
        f"{seconds(machine.tile_call_s)}, a barrier {seconds(machine.barrier_s)}, waking a helper "
        f"{seconds(machine.wake_s)}"
    )
    out.print(f"source: {machine.source}")
