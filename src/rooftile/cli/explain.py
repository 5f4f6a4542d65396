"""`rooftile explain`: where the time of a model goes, against the roof of the machine."""

from __future__ import annotations

import argparse

import rooftile
from rooftile.cli import arguments as shared
from rooftile.cli.feeds import Feeds, feeds_for
from rooftile.cli.output import console, note, progress, wants_json_alone, write_json
from rooftile.report import Explanation
from rooftile.report.text import layout


def add(parsers: shared.Parsers) -> None:
    """The parser of the command."""
    about = "show kernels on the roofline, what was fused and why not, memory and types"
    parser = shared.new_command(parsers, "explain", about, command)
    shared.add_model(parser)
    shared.add_fuse(parser)
    shared.add_json(parser)


def command(arguments: argparse.Namespace) -> None:
    """Compile, time each kernel, explain."""
    feeds, notes = feeds_for(arguments.model, arguments.shape, arguments.feed)
    for line in notes:
        note(f"{line}; --shape chooses others")
    with progress("compiling, then timing each kernel"):
        facts = _facts(arguments, feeds)
    if not wants_json_alone(arguments.json):
        console().print(layout(facts))
    write_json(facts.to_dict(), arguments.json)


def _facts(arguments: argparse.Namespace, feeds: Feeds) -> Explanation:
    if not arguments.no_fuse:
        options = shared.session_options(arguments)
        return rooftile.InferenceSession(arguments.model, options).explanation(feeds)
    shapes = {name: array.shape for name, array in feeds.items()}
    chosen = shared.compile_options(arguments)
    return rooftile.compile(arguments.model, chosen, shapes).explanation(feeds)
