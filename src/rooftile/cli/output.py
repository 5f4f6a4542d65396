"""What commands print: JSON, tables, and progress on a terminal only."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console

WIDE = 140
"""Columns where the output is not a terminal."""


def console() -> Console:
    """The console of results: colours on a terminal, plain and wide elsewhere."""
    return Console() if sys.stdout.isatty() else Console(width=WIDE, color_system=None)


def wants_json_alone(target: str | None) -> bool:
    """Whether nothing but JSON may be printed."""
    return target == "-"


def write_json(value: Any, target: str | None) -> None:
    """Write a value to a file, or to standard output for `-`; nothing for None."""
    if target is None:
        return
    text = json.dumps(value, indent=1, allow_nan=False) + "\n"
    if target == "-":
        sys.stdout.write(text)
    else:
        Path(target).write_text(text, encoding="utf-8")


@contextmanager
def progress(message: str) -> Iterator[None]:
    """Show that something takes its time, on a terminal; silent elsewhere."""
    if not sys.stderr.isatty():
        yield
        return
    with Console(stderr=True).status(message):
        yield


def note(message: str) -> None:
    """A remark beside the results."""
    print(f"note: {message}", file=sys.stderr)
