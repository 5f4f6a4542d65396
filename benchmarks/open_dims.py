"""One program for all shapes against one compiled for each of them, one thread.

    python benchmarks/open_dims.py MODEL --shape NAME=1x3x320x320 [--shape NAME=1x3x640x320 ...]

Each `--shape` is one case; other inputs follow by the names of their dims. Both programs of a case
run in this process, in blocks by turns; best milliseconds of all blocks, and whether the outputs
agree. The last line says how often a session would have compiled for all cases together.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

import rooftile
from rooftile.bench.worker import block
from rooftile.cli.arguments import add_shapes
from rooftile.cli.feeds import feeds_for
from rooftile.session.programs import Programs, Shapes

PAUSE_S = 0.05
Row = dict[str, Any]


class Bench:
    """A model, and how often it was compiled with open dims or for lack of them."""

    def __init__(self, model: str, rounds: int) -> None:
        self.model, self.rounds = model, rounds
        self.names: list[str] = []
        self.compilations = 0
        self.programs = Programs(self.counted)

    def counted(self, shapes: Shapes, open_dims: bool) -> rooftile.Compiled:
        """A compilation that a session would have made."""
        self.compilations += 1
        return self.compiled(shapes, open_dims)

    def compiled(self, shapes: Shapes, open_dims: bool) -> rooftile.Compiled:
        """The model compiled for one thread."""
        named = dict(zip(self.names, shapes, strict=True))
        options = rooftile.CompileOptions(threads=1)
        return rooftile.compile(self.model, options, named, open_dims)

    def case(self, feeds: dict[str, Any]) -> Row:
        """Best milliseconds of both programs, and the largest difference of their outputs."""
        self.names = list(feeds)
        shapes = tuple(array.shape for array in feeds.values())
        pair = {"open": self.programs.get(shapes), "own": self.compiled(shapes, False)}
        best = dict.fromkeys(pair, float("inf"))
        for _ in range(self.rounds):
            for word, compiled in pair.items():
                time.sleep(PAUSE_S)
                best[word] = min(best[word], *block(lambda run=compiled: run(feeds)))
        row: Row = {f"{word}_ms": seconds * 1e3 for word, seconds in best.items()}
        results = zip(*(compiled(feeds) for compiled in pair.values()), strict=True)
        row["difference"] = max(relative_difference(*outputs) for outputs in results)
        row["ratio"] = best["open"] / best["own"]
        return row


def relative_difference(got: Any, want: Any) -> float:
    """The largest difference of two outputs, relative to the largest value."""
    if not got.size:
        return 0.0
    apart = np.abs(got.astype(np.float64) - want.astype(np.float64)).max()
    return float(apart / max(np.abs(want.astype(np.float64)).max(), 1e-30))


def main() -> int:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", help="an ONNX file whose inputs have open dims")
    add_shapes(parser)
    parser.add_argument("--rounds", type=int, default=5, help="blocks of each program")
    parser.add_argument("--json", type=Path, help="write the figures")
    arguments = parser.parse_args()
    bench = Bench(arguments.model, arguments.rounds)
    rows = {}
    for name, shape in arguments.shape:
        feeds, _ = feeds_for(arguments.model, [(name, shape)])
        row = rows["x".join(map(str, shape))] = bench.case(feeds)
        print(
            f"{name} {list(shape)}: open {row['open_ms']:.3f} ms, own {row['own_ms']:.3f} ms, "
            f"ratio {row['ratio']:.2f}, difference {row['difference']:.1e}",
            flush=True,
        )
    worst = max(row["ratio"] for row in rows.values())
    print(f"{len(rows)} cases, {bench.compilations} compilations, worst ratio {worst:.2f}")
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
