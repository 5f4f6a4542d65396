"""`rooftile cache`: what is kept on disk."""

from __future__ import annotations

import argparse

from rooftile.cli import arguments as shared
from rooftile.native import default_cache
from rooftile.report.units import count, scaled
from rooftile.session.kept import program_cache, spared


def add(parsers: shared.Parsers) -> None:
    """The parser of the command."""
    about = "show or clear what is kept of compiled models"
    parser = shared.new_command(parsers, "cache", about, command)
    parser.add_argument("--clear", action="store_true", help="remove every file")


def command(arguments: argparse.Namespace) -> None:
    """Tell what is there; remove it where asked."""
    programs, objects = program_cache(), default_cache()
    for cache, word in ((programs, "file"), (objects, "object")):
        stats = cache.stats()
        what = "of whole models" if cache is programs else "of kernels"
        print(f"{count(stats.entries, word)} {what}, {scaled(stats.bytes, 'B')} in {stats.folder}")
        if arguments.clear:
            cache.clear()
            print(f"removed {count(stats.entries, word)}")
    if not arguments.clear:
        seconds = spared(programs.folder)
        print(f"models loaded from here spared {seconds:.1f} s of compilation so far")
