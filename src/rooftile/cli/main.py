"""`rooftile COMMAND ...`: the parser, and errors as one line and an exit code."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

import rooftile
from rooftile.cli import bench, cache, demo, explain, machine, run, show
from rooftile.core.errors import RooftileError

COMMANDS = (demo, run, bench, explain, show, machine, cache)
"""Each module adds one parser, whose default `command` does the work."""

DONE, FAILED, WRONG_USAGE, INTERRUPTED = 0, 1, 2, 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; 0 where it is done, 1 where the work failed, 2 for wrong usage."""
    parser = make_parser()
    try:
        arguments = parser.parse_args(argv)
    except SystemExit as stop:  # argparse has said what is wrong, or has shown help
        return int(stop.code or 0)
    if "command" not in arguments:
        parser.print_help(sys.stderr)
        return WRONG_USAGE
    try:
        arguments.command(arguments)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader of our output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except (RooftileError, OSError) as error:
        print(f"error: {_one_line(error)}", file=sys.stderr)
        return FAILED
    except KeyboardInterrupt:
        return INTERRUPTED
    return DONE


def make_parser() -> argparse.ArgumentParser:
    """The parser of all commands."""
    parser = argparse.ArgumentParser(
        prog="rooftile", description="Compiles neural networks, and explains them on the roofline."
    )
    version = f"rooftile {rooftile.__version__}"
    parser.add_argument("--version", action="version", version=version)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    for module in COMMANDS:
        module.add(commands)
    return parser


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__
