"""Options that several commands share, and how their values are read."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rooftile.core.options import LEVELS, CompileOptions
from rooftile.session import GraphOptimizationLevel, SessionOptions

Parsers = Any
"""What argparse's add_subparsers gives; its class has no public name."""

Command = Callable[[argparse.Namespace], None]


def new_command(parsers: Parsers, name: str, about: str, command: Command) -> Any:
    """A parser for one command."""
    parser = parsers.add_parser(name, help=about, description=about[0].upper() + about[1:] + ".")
    parser.set_defaults(command=command)
    return parser


def add_model(parser: argparse.ArgumentParser) -> None:
    """MODEL, the shapes of its inputs, and how it is compiled."""
    parser.add_argument("model", metavar="MODEL", help="an ONNX file")
    add_shapes(parser)
    parser.add_argument(
        "--level", type=int, choices=LEVELS, default=1, help="0: no rewrite that changes values"
    )


def add_fuse(parser: argparse.ArgumentParser) -> None:
    """--no-fuse."""
    parser.add_argument("--no-fuse", action="store_true", help="one kernel for each node")


def add_shapes(parser: argparse.ArgumentParser) -> None:
    """--shape and --feed."""
    parser.add_argument(
        "--shape",
        type=named_shape,
        action="append",
        default=[],
        metavar="NAME=1x3x224x224",
        help="the shape of an input whose dims the model leaves open",
    )
    parser.add_argument(
        "--feed", type=Path, metavar="FILE.npz", help="inputs: one array for each by name"
    )


def add_json(parser: argparse.ArgumentParser) -> None:
    """--json."""
    parser.add_argument(
        "--json", metavar="FILE", help="write the facts as JSON; - prints them and nothing else"
    )


def compile_options(arguments: argparse.Namespace) -> CompileOptions:
    """The options that `add_model` reads."""
    return CompileOptions(level=arguments.level, fuse=not arguments.no_fuse)


def session_options(arguments: argparse.Namespace) -> SessionOptions:
    """The same for a session, which always fuses."""
    options = SessionOptions()
    all_rewrites = GraphOptimizationLevel.ORT_ENABLE_ALL
    options.graph_optimization_level = all_rewrites if arguments.level else 0
    return options


def named_shape(text: str) -> tuple[str, tuple[int, ...]]:
    """`NAME=1x3x224x224`; nothing behind the sign is a scalar."""
    name, sign, dims = text.rpartition("=")
    if not sign or not name or not re.fullmatch(r"(\d+(x\d+)*)?", dims):
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form NAME=1x3x224x224")
    return name, tuple(int(dim) for dim in dims.split("x") if dim)


def named_file(text: str) -> tuple[str, Path]:
    """`NAME=FILE.npy`."""
    name, sign, path = text.partition("=")
    if not sign or not name or not path:
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form NAME=FILE.npy")
    return name, Path(path)


def positive(text: str) -> int:
    """A whole number of at least 1."""
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 1")
    return int(text)


def seconds(text: str) -> float:
    """A time above 0."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a time above 0")
    return value
