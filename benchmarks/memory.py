"""The arena of models against its lower bound, and against that of the unfused program.

    python benchmarks/memory.py [MODEL ...] [--threads 1,2] [--shape NAME=1x3x320x320]
        [--feed FILE.npz] [--json FILE]

MODEL is a path, or the name of a model that `tests/zoo.py` fetched (all of them by default), which
is compiled at its example shapes. Sizes are rounded to 64 bytes and the scratch memory of all
threads counts, in the arena and in its bound. The unfused program has a kernel for each node, in
the order of the file; its bound leaves scratch memory out. A model that runs in steps has a
program for each, and their arenas exist at the same time: their bytes are added up; the ratio to
the bound is the worst of all programs. Exit code 1 where a bar is missed.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import rooftile
from rooftile import memory
from rooftile.cli.arguments import add_shapes
from rooftile.cli.feeds import NamedShapes, feeds_for
from rooftile.core.errors import UnsupportedOp, UnsupportedType
from rooftile.core.options import CompileOptions
from rooftile.frontends.onnx import load, outline
from rooftile.ir.program import Program, lifetimes
from rooftile.session.explanation import programs_of
from rooftile.session.segment import Environment, Shared
from rooftile.session.segmented import Segmented

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
import zoo

Row = dict[str, Any]


def main() -> int:
    """Compile, print, write."""
    arguments = _arguments()
    rows: list[Row] = []
    for name in arguments.models or fetched():
        path, feeds = found(name, arguments.shape, arguments.feed)
        for threads in arguments.threads:
            options = CompileOptions(threads=threads)
            row = {"model": name, "threads": threads, **figures(path, feeds, options)}
            row["missed"] = missed(row, arguments.max_ratio)
            rows.append(row)
            print(line(row), flush=True)
    late = [row for row in rows if row["missed"]]
    print(f"{len(rows)} rows, {len(late)} miss a bar")
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    return 1 if late else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*", metavar="MODEL", help="paths, or names of the zoo")
    add_shapes(parser)
    parser.add_argument("--threads", type=_counts, default=[2], help="1, 2, or both as 1,2")
    parser.add_argument("--max-ratio", type=float, default=1.05, help="arena over its bound")
    parser.add_argument("--json", type=Path, help="write the figures")
    return parser.parse_args()


def _counts(text: str) -> list[int]:
    return [int(part) for part in text.split(",")]


def fetched() -> list[str]:
    """The models of the zoo that are there."""
    return [name for name in zoo.ROWS if (zoo.CACHE / name / "model.onnx").is_file()]


def found(name: str, shapes: NamedShapes, feed: Path | None) -> tuple[Path, dict[str, Any]]:
    """The file of a model, and inputs for it."""
    if name in zoo.ROWS:
        return zoo.path(name), zoo.feed(name)
    feeds, notes = feeds_for(name, shapes, feed)
    for note in notes:
        print(note)
    return Path(name), feeds


def figures(path: Path, feeds: dict[str, Any], options: CompileOptions) -> Row:
    """Bytes of a model's programs together, and the worst ratios of one of them alone."""
    programs = compiled(path, feeds, options)
    unfused = [
        bound_without_scratch(program)
        for program in compiled(path, feeds, replace(options, fuse=False))
    ]
    pairs = list(zip(programs, unfused, strict=True))
    return {
        "arena_bytes": sum(program.arena_bytes for program in programs),
        "lower_bound_bytes": sum(program.lower_bound_bytes for program in programs),
        "scratch_bytes": sum(map(largest_scratch, programs)),
        "unfused_bound_bytes": sum(unfused),
        "ratio": max(ratio(p.arena_bytes, p.lower_bound_bytes) for p in programs),
        "unfused_ratio": ratio(sum(program.arena_bytes for program in programs), sum(unfused)),
        "worst_unfused_ratio": max(ratio(p.arena_bytes, bound) for p, bound in pairs),
        "programs": len(programs),
    }


def compiled(path: Path, feeds: dict[str, Any], options: CompileOptions) -> list[Program]:
    """The program of a model, or those of its steps after a run."""
    shapes = {name: array.shape for name, array in feeds.items()}
    try:
        return [rooftile.compile(path, options, shapes).program]
    except (UnsupportedOp, UnsupportedType):
        steps = Segmented(outline(load(path)), Shared(options))
        steps.run(Environment(feeds))
        return programs_of(steps)


def bound_without_scratch(program: Program) -> int:
    """The largest sum of the sizes of values that are live at one time."""
    spans = lifetimes(program.steps)
    values = [b for b in program.buffers if b.space == "arena" and b.name in spans]
    used = [(*spans[b.name], -(-b.nbytes // 64) * 64) for b in values]
    return memory.lower_bound([(first, last + 1, size) for first, last, size in used])


def largest_scratch(program: Program) -> int:
    """Bytes of the largest scratch memory of a kernel, that of all threads together."""
    return max((b.nbytes for b in program.buffers if b.space == "scratch"), default=0)


def ratio(nbytes: int, bound: int) -> float:
    """Above 1 where more is taken than the bound; 1 for nothing of nothing."""
    if not bound:
        return float("inf") if nbytes else 1.0
    return nbytes / bound


def missed(row: Row, most: float) -> list[str]:
    """The bars that a row misses."""
    bars = {"bound": row["ratio"] <= most, "unfused": row["unfused_ratio"] <= 1}
    return [name for name, met in bars.items() if not met]


def line(row: Row) -> str:
    """A row as text."""
    several, worst = "", ""
    if row["programs"] > 1:
        several = f", {row['programs']} programs"
        worst = f" ({row['worst_unfused_ratio']:.3f} for one of them)"
    bars: Sequence[str] = row["missed"]
    return (
        f"{row['model']}, threads {row['threads']}{several}: arena {row['arena_bytes']}, "
        f"bound {row['lower_bound_bytes']}, ratio {row['ratio']:.3f}, "
        f"scratch {row['scratch_bytes']}, unfused bound {row['unfused_bound_bytes']}, "
        f"ratio {row['unfused_ratio']:.3f}{worst}" + "".join(f", misses {bar}" for bar in bars)
    )


if __name__ == "__main__":
    sys.exit(main())
