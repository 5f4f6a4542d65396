"""`rooftile bench`: a fair race against other engines."""

from __future__ import annotations

import argparse
from typing import Any

from rich import box
from rich.table import Table

from rooftile.bench.engines import RIVALS
from rooftile.bench.rows import OURS, Row, row
from rooftile.cli import arguments as shared
from rooftile.cli.feeds import feeds_for
from rooftile.cli.output import console, note, progress, wants_json_alone, write_json
from rooftile.core.errors import RooftileError
from rooftile.machine import current
from rooftile.report.facts import machine_facts
from rooftile.report.units import count, percent, scaled

WRONG = 2e-3
"""A difference above this, relative to the largest value, counts as wrong values."""


def add(parsers: shared.Parsers) -> None:
    """The parser of the command."""
    about = "race engines on models, each in a process of its own, and compare values"
    parser = shared.new_command(parsers, "bench", about, command)
    parser.add_argument("models", metavar="MODEL", nargs="+", help="ONNX files")
    parser.add_argument(
        "--vs",
        type=rivals,
        default=rivals("onnxruntime,openvino"),
        metavar="NAMES",
        help="rivals, with commas between: onnxruntime, openvino (f32 and its default), torch",
    )
    threads = "of each engine (default 1)"
    parser.add_argument("--threads", type=shared.positive, default=1, metavar="N", help=threads)
    about_seconds = "how long each model is raced (default 5)"
    parser.add_argument("--seconds", type=shared.seconds, default=5.0, help=about_seconds)
    shared.add_shapes(parser)
    parser.add_argument(
        "--no-float64", action="store_true", help="skip the comparison with float64"
    )
    shared.add_json(parser)


def rivals(text: str) -> tuple[str, ...]:
    """Engines for the names of --vs."""
    names = [name for name in text.split(",") if name]
    for name in names:
        if name not in RIVALS:
            raise argparse.ArgumentTypeError(f"{name!r} is none of {', '.join(RIVALS)}")
    return tuple(engine for name in dict.fromkeys(names) for engine in RIVALS[name])


def command(arguments: argparse.Namespace) -> None:
    """Race each model; RooftileError where rooftile failed on one, or gave wrong values."""
    alone = wants_json_alone(arguments.json)
    rows, failures = [], []
    for model in arguments.models:
        try:
            found = _race(model, arguments)
        except RooftileError as error:
            found = {"model": model, "failed": str(error)}
        rows.append(found)
        failures += _failures(found)
        if not alone:
            _show(found, arguments.threads)
    machine = machine_facts(current(), arguments.threads)
    write_json({"machine": machine, "rows": rows}, arguments.json)
    if failures:
        raise RooftileError("; ".join(failures))


def _race(model: str, arguments: argparse.Namespace) -> Row:
    feeds, notes = feeds_for(model, arguments.shape, arguments.feed)
    for line in notes:
        note(f"{line}; --shape chooses others")
    with progress(f"racing on {model}"):
        return row(
            model,
            feeds,
            arguments.vs,
            arguments.threads,
            arguments.seconds,
            not arguments.no_float64,
        )


def _failures(found: Row) -> list[str]:
    model = found["model"]
    if "failed" in found:
        return [f"{model}: {found['failed']}"]
    ours, error = found["engines"][OURS], found["error"]
    if "failed" in ours:
        return [f"{model}: {ours['failed']}"]
    if "why" in error:
        return [f"{model}: values differ from {error['vs']}: {error['why']}"]
    if (error["max_rel"] or 0.0) > WRONG:
        return [f"{model}: values differ from {error['vs']} by {error['max_rel']:.1e}"]
    return []


def _show(found: Row, threads: int) -> None:
    out = console()
    if "failed" in found:
        out.print(f"{found['model']}: {found['failed']}", markup=False)
        return
    out.print(f"{found['model']}, {count(threads, 'thread')}", markup=False)
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1), pad_edge=False)
    table.add_column("engine")
    table.add_column("precision")
    for name in ("best ms", "median ms", "rooftile is", "load ms", "first run ms", "peak MB"):
        table.add_column(name, justify="right")
    for name, figures in found["engines"].items():
        table.add_row(name, *_cells(figures, found["speedup"].get(name)))
    out.print(table)
    if "failed" not in found["engines"][OURS]:
        out.print(_summary(found), markup=False)


def _cells(figures: dict[str, Any], speedup: float | None) -> list[str]:
    if "failed" in figures:
        return ["", f"failed: {figures['failed']}"]
    faster = "" if speedup is None else f"{speedup:.2f}x as fast"
    times = [f"{figures[key]:.4g}" for key in ("best_ms", "median_ms")]
    rest = [f"{figures[key]:.0f}" for key in ("load_ms", "first_run_ms", "rss_mb")]
    return [figures["precision"], *times, faster, *rest]


def _summary(found: Row) -> str:
    roof, memory, error = found["roof"], found["memory"], found["error"]
    against = []
    for key, name in (("max_rel", error["vs"]), ("vs_float64", "float64")):
        if error.get(key) is not None:
            against.append(f"{error[key]:.1e} from {name}")
    share = "" if roof["share"] is None else f", {percent(roof['share'])} of the roof"
    return (
        f"{found['kernels']} kernels for {found['nodes']} nodes{share}; values differ by "
        f"{', '.join(against) or 'an unknown amount'}; arena {scaled(memory['arena_bytes'], 'B')}"
    )
