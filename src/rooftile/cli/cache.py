"""`rooftile cache`: what is kept on disk."""

from __future__ import annotations

import argparse

from rooftile.cli import arguments as shared
from rooftile.native import default_cache
from rooftile.report.units import count, scaled


def add(parsers: shared.Parsers) -> None:
    """The parser of the command."""
    parser = shared.new_command(parsers, "cache", "show or clear the object cache", command)
    parser.add_argument("--clear", action="store_true", help="remove every object")


def command(arguments: argparse.Namespace) -> None:
    """Tell what is there; remove it where asked."""
    kept = default_cache()
    stats = kept.stats()
    print(f"{count(stats.entries, 'object')}, {scaled(stats.bytes, 'B')} in {stats.folder}")
    if arguments.clear:
        kept.clear()
        print(f"removed {count(stats.entries, 'object')}")
    elif stats.entries:
        print("each spares its compilation when a model is compiled again")
