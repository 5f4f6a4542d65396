"""`rooftile run`: one inference."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

import numpy as np
from rich import box
from rich.table import Table

import rooftile
from rooftile.cli import arguments as shared
from rooftile.cli.feeds import feeds_for
from rooftile.cli.output import console, note, progress
from rooftile.ir.graph import Array


def add(parsers: shared.Parsers) -> None:
    """The parser of the command."""
    parser = shared.new_command(parsers, "run", "run a model once and show its outputs", command)
    shared.add_model(parser)
    parser.add_argument(
        "--input",
        type=shared.named_file,
        action="append",
        default=[],
        metavar="NAME=FILE.npy",
        help="an input; those that are not given are random, but the same in each run",
    )
    parser.add_argument("--seed", type=int, default=0, help="of random inputs (default 0)")
    parser.add_argument("--output", type=Path, metavar="DIR", help="write outputs as .npy files")


def command(arguments: argparse.Namespace) -> None:
    """Compile, run, show, write."""
    feeds, notes = feeds_for(
        arguments.model, arguments.shape, arguments.feed, arguments.input, arguments.seed
    )
    for line in notes:
        note(f"{line}; --shape chooses others")
    with progress("compiling"):
        session = rooftile.InferenceSession(arguments.model, shared.session_options(arguments))
        results = session.run(None, feeds)
    outputs = {
        item.name: np.asarray(array)
        for item, array in zip(session.get_outputs(), results, strict=True)
    }
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1), pad_edge=False)
    for column in ("output", "dtype", "shape", "least", "mean", "greatest", "first values"):
        table.add_column(column)
    for name, array in outputs.items():
        table.add_row(name, str(array.dtype), str(list(array.shape)), *_figures(array))
    console().print(table)
    if arguments.output is not None:
        _write(outputs, arguments.output)


def _figures(array: Array) -> tuple[str, str, str, str]:
    values = array.reshape(-1)[:6].tolist()
    first = " ".join(f"{v:.4g}" if isinstance(v, float) else str(v) for v in values)
    if not array.size or array.dtype.kind in "OUS":
        return "", "", "", first
    wide = array.astype(np.float64)
    least, mean, greatest = wide.min(), wide.mean(), wide.max()
    return f"{least:.6g}", f"{mean:.6g}", f"{greatest:.6g}", first


def _write(outputs: dict[str, Array], folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, array in outputs.items():
        # Names of values are not trusted: they may hold slashes.
        file = folder / (re.sub(r"[^\w.-]", "_", name).lstrip(".") + ".npy")
        np.save(file, array)
        print(file)
