"""One program for all shapes against one compiled for the shapes at hand, one thread.

    python benchmarks/open_dims.py MODEL --shape NAME=1x3x320x320... [--rounds N] [--json FILE]

Both run in this process, in blocks by turns; best milliseconds of all blocks.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

import rooftile
from rooftile.bench.worker import block
from rooftile.cli.arguments import add_shapes
from rooftile.cli.feeds import feeds_for

PAUSE_S = 0.05


def main() -> int:
    """Measure, print, write; 1 where no dim stays open."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", help="an ONNX file whose inputs have open dims")
    add_shapes(parser)
    parser.add_argument("--rounds", type=int, default=7, help="blocks of each program")
    parser.add_argument("--json", type=Path, help="write the figures")
    arguments = parser.parse_args()
    feeds, _ = feeds_for(arguments.model, arguments.shape, arguments.feed)
    shapes = {name: array.shape for name, array in feeds.items()}
    made = {
        word: rooftile.compile(arguments.model, rooftile.CompileOptions(threads=1), shapes, is_open)
        for word, is_open in (("open", True), ("own", False))
    }
    template = made["open"].template
    if template is None:
        print("no dim of the model stays open at these shapes")
        return 1
    best = dict.fromkeys(made, float("inf"))
    for _ in range(arguments.rounds):
        for word, compiled in made.items():
            time.sleep(PAUSE_S)
            best[word] = min(best[word], *block(lambda run=compiled: run(feeds)))
    row = {f"{word}_ms": seconds * 1e3 for word, seconds in best.items()}
    row["ratio"] = best["open"] / best["own"]
    print(f"open {row['open_ms']:.3f} ms, own {row['own_ms']:.3f} ms, ratio {row['ratio']:.2f}")
    for guard in template.symbols.guards:
        print(f"  holds where {guard}")
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(row, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
