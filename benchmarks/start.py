"""What a session costs to load, beside onnxruntime: milliseconds and memory, each in new processes.

    python benchmarks/start.py MODEL ... [--repeats N] [--json FILE]

A process imports its engine, then times the constructor and the first run on inputs that fit the
model. `cold`: rooftile with an empty cache; `cached`: the next processes; memory is what load and
run add to the resident set behind the imports. Best of the repeats, medians for memory.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from rooftile.cli.arguments import add_shapes
from rooftile.cli.feeds import feeds_for

CHILD = """
import json, sys, time
import numpy as np
engine, model, feeds = sys.argv[1:]
runtime = __import__(engine)
options = runtime.SessionOptions()
options.intra_op_num_threads = 2
runtime.InferenceSession  # rooftile imports what it needs for this name here
given = dict(np.load(feeds))
def memory(field):
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith(field)) * 1024 / 1e6
before = memory("VmRSS")
began = time.perf_counter()
session = runtime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
loaded = time.perf_counter()
session.run(None, given)
ran = time.perf_counter()
print(json.dumps({"load_ms": (loaded - began) * 1e3, "first_run_ms": (ran - loaded) * 1e3,
                  "added_mb": memory("VmRSS") - before, "peak_mb": memory("VmHWM") - before}))
"""
Row = dict[str, Any]


def measured(engine: str, model: str, feeds: Path, cache: str) -> Row:
    """One process of an engine."""
    known = {**os.environ, "ROOFTILE_CACHE": cache, "ROOFTILE_PROGRAMS": "1"}
    known.pop("PYTHONDONTWRITEBYTECODE", None)
    command = [sys.executable, "-c", CHILD, engine, model, str(feeds)]
    said = subprocess.run(command, env=known, capture_output=True, text=True, check=True).stdout
    found: Row = json.loads(said)
    return found


def summed(rows: list[Row]) -> Row:
    """The best times and the median memory of several processes."""
    times = {key: min(row[key] for row in rows) for key in ("load_ms", "first_run_ms")}
    sizes = {key: statistics.median(row[key] for row in rows) for key in ("added_mb", "peak_mb")}
    return {**times, **sizes}


def judged(model: str, feeds: Path, repeats: int) -> dict[str, Row]:
    """Cold, cached and onnxruntime, of one model; engines take turns."""
    with tempfile.TemporaryDirectory() as cache:
        cold = measured("rooftile", model, feeds, cache)
        cached, rival = [], []
        for _ in range(repeats):
            cached.append(measured("rooftile", model, feeds, cache))
            rival.append(measured("onnxruntime", model, feeds, cache))
    return {"cold": cold, "cached": summed(cached), "onnxruntime": summed(rival)}


def main() -> int:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="+", help="ONNX files")
    add_shapes(parser)
    parser.add_argument("--repeats", type=int, default=5, help="processes of each engine")
    parser.add_argument("--json", type=Path, help="write the figures")
    arguments = parser.parse_args()
    rows = {}
    for model in arguments.models:
        with tempfile.TemporaryDirectory() as folder:
            feeds = Path(folder) / "feeds.npz"
            np.savez(feeds, **feeds_for(model, arguments.shape, arguments.feed)[0])
            rows[model] = judged(model, feeds, arguments.repeats)
        print(model)
        for word, row in rows[model].items():
            print(
                f"  {word:12s} load {row['load_ms']:8.1f} ms, first run {row['first_run_ms']:8.1f} "
                f"ms, adds {row['added_mb']:7.1f} MB, peak {row['peak_mb']:7.1f} MB",
                flush=True,
            )
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
