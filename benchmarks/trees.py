"""Tree ensembles beside onnxruntime: milliseconds a run, one thread, each engine in processes of
its own, in turn, best of all runs.

    python benchmarks/trees.py

Trees are random: each branch ends early by chance, so leaves lie at all depths; f32.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from onnx import helper, save

CASES = [
    (trees, depth, batch) for trees, depth in ((100, 6), (500, 10)) for batch in (1, 100, 10000)
]
FEATURES = 50
ENDS = 0.1
"""The chance that a branch ends before the full depth."""
SECONDS = 2.0
ROUNDS = 3


def ensemble(trees: int, depth: int, batch: int) -> Any:
    """A TreeEnsembleRegressor of one target."""
    rng = np.random.default_rng(trees + depth)
    rows: list[tuple[Any, ...]] = []
    leaves: list[tuple[int, int]] = []

    def grow(tree: int, numbers: list[int], left: int) -> int:
        number = len(numbers)
        numbers.append(number)
        if left == 0 or (left < depth and rng.random() < ENDS):
            rows.append((tree, number, "LEAF", 0, 0.0, 0, 0))
            leaves.append((tree, number))
            return number
        holds, fails = grow(tree, numbers, left - 1), grow(tree, numbers, left - 1)
        feature, split = int(rng.integers(FEATURES)), float(rng.normal())
        rows.append((tree, number, "BRANCH_LEQ", feature, split, holds, fails))
        return number

    for tree in range(trees):
        grow(tree, [], depth)
    rows.sort(key=lambda row: row[:2])
    names = ("treeids", "nodeids", "modes", "featureids", "values", "truenodeids", "falsenodeids")
    attributes: dict[str, Any] = {
        f"nodes_{name}": [row[place] for row in rows] for place, name in enumerate(names)
    }
    attributes |= {
        "n_targets": 1,
        "target_treeids": [tree for tree, _ in leaves],
        "target_nodeids": [node for _, node in leaves],
        "target_ids": [0] * len(leaves),
        "target_weights": rng.normal(size=len(leaves)).tolist(),
    }
    node = helper.make_node(
        "TreeEnsembleRegressor", ["x"], ["y"], domain="ai.onnx.ml", **attributes
    )
    x = helper.make_tensor_value_info("x", 1, [batch, FEATURES])
    y = helper.make_tensor_value_info("y", 1, [batch, 1])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)]
    graph = helper.make_graph([node], "trees", [x], [y])
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def session(engine: str, path: str) -> Callable[[Any], Any]:
    """What runs the model once."""
    if engine == "rooftile":
        import rooftile as module
    else:
        import onnxruntime as module
    options = module.SessionOptions()
    options.intra_op_num_threads = 1
    found = module.InferenceSession(path, options)
    return lambda feed: found.run(None, feed)


def worker(engine: str, path: str, batch: int) -> None:
    """Print the best time of one run in ms, and the sum of the results."""
    run = session(engine, path)
    feed = {"x": np.random.default_rng(0).normal(size=(batch, FEATURES)).astype(np.float32)}
    total, best = float(np.abs(run(feed)[0]).sum()), float("inf")
    end = time.perf_counter() + SECONDS
    while time.perf_counter() < end:
        start = time.perf_counter()
        run(feed)
        best = min(best, time.perf_counter() - start)
    print(best * 1e3, total)


def main() -> None:
    """One line a case."""
    if len(sys.argv) > 1:
        worker(sys.argv[1], sys.argv[2], int(sys.argv[3]))
        return
    print("| trees | depth | rows | rooftile ms | onnxruntime ms | times faster |")
    print("|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "model.onnx")
        for trees, depth, batch in CASES:
            save(ensemble(trees, depth, batch), path)
            best: dict[str, float] = {}
            totals: list[float] = []
            for _ in range(ROUNDS):
                for engine in ("rooftile", "onnxruntime"):
                    command = [sys.executable, __file__, engine, path, str(batch)]
                    printed = subprocess.run(command, capture_output=True, text=True, check=True)
                    took, total = map(float, printed.stdout.split())
                    best[engine] = min(took, best.get(engine, took))
                    totals.append(total)
            np.testing.assert_allclose(totals, totals[0], rtol=1e-4)
            mine, theirs = best["rooftile"], best["onnxruntime"]
            line = f"{trees} | {depth} | {batch} | {mine:.4f} | {theirs:.4f} | {theirs / mine:.2f}"
            print(f"| {line} |", flush=True)


if __name__ == "__main__":
    main()
