"""Sessions under load for a long time: memory must stay flat, and nothing may hang.

    python benchmarks/soak.py [--runs 10000] [--threads 8]

Threads make sessions of several models, run them on inputs of varied shapes, check the values, and
drop them. Every tenth part the resident memory is printed. Exit code 1 where it grew by more than
`--most-mb` in the second half, where a value is wrong, or where nothing moves for a minute.
"""

from __future__ import annotations

import argparse
import faulthandler
import itertools
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper

import rooftile as rt

STUCK_S = 60.0
RUNS_A_SESSION = 25
WIDTH = 64
Case = tuple[bytes, Callable[[np.random.Generator], dict[str, Any]], Callable[..., Any]]


def _model(nodes: list[Any], inputs: dict[str, list[Any]], weights: dict[str, Any]) -> bytes:
    given = [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in inputs.items()]
    result = [helper.make_empty_tensor_value_info("y")]
    held = [numpy_helper.from_array(array, name) for name, array in weights.items()]
    graph = helper.make_graph(nodes, "soak", given, result, held)
    opsets = [helper.make_opsetid("", 17)]
    return bytes(helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString())


def cases() -> list[Case]:
    """Models with their inputs and what they compute: a layer, an open matmul, sizes of the run."""
    rng = np.random.default_rng(0)
    w = rng.standard_normal((WIDTH, WIDTH)).astype(np.float32)
    make = helper.make_node

    def rows(rng: np.random.Generator) -> dict[str, Any]:
        return {"x": rng.standard_normal((int(rng.integers(1, 200)), WIDTH)).astype(np.float32)}

    def fixed(rng: np.random.Generator) -> dict[str, Any]:
        return {"x": rng.standard_normal((96, WIDTH)).astype(np.float32)}

    layer = [make("MatMul", ["x", "w"], ["a"]), make("Relu", ["a"], ["y"])]
    sized = [
        make("NonZero", ["x"], ["n"]),
        make("Cast", ["n"], ["f"], to=1),
        make("ReduceSum", ["f"], ["y"], keepdims=0),
    ]
    return [
        (_model(layer, {"x": [96, WIDTH]}, {"w": w}), fixed, lambda x: np.maximum(x @ w, 0)),
        (_model(layer, {"x": ["N", WIDTH]}, {"w": w}), rows, lambda x: np.maximum(x @ w, 0)),
        (_model(sized, {"x": ["N", WIDTH]}, {}), rows, lambda x: np.sum(np.nonzero(x))),
    ]


def resident_mb() -> float:
    """Resident memory of this process, in MB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / 1e6


@dataclass
class Progress:
    """Counts runs; threads share it."""

    runs: int
    done: int = 0
    moved: float = 0.0

    def __post_init__(self) -> None:
        self.lock = threading.Lock()
        self.resident: list[float] = []

    def step(self) -> bool:
        """Count one run; False where there were enough."""
        with self.lock:
            self.done += 1
            self.moved = time.monotonic()
            if self.done % max(1, self.runs // 10) == 0:
                self.resident.append(resident_mb())
                print(f"{self.done:7d} runs  {self.resident[-1]:8.1f} MB", flush=True)
            return self.done < self.runs


def work(progress: Progress, number: int) -> None:
    """What each thread does."""
    rng = np.random.default_rng(number)
    for model, feeds, truth in itertools.cycle(cases()):
        options = rt.SessionOptions()
        options.intra_op_num_threads = int(rng.integers(1, 3))
        session = rt.InferenceSession(model, options)
        for _ in range(RUNS_A_SESSION):
            given = feeds(rng)
            (found,) = session.run(None, given)
            np.testing.assert_allclose(found, truth(**given), rtol=1e-4, atol=1e-4)
            if not progress.step():
                return


def watch(progress: Progress) -> None:
    """End the process with all stacks where no run ends for a minute."""
    while True:
        time.sleep(1)
        if time.monotonic() - progress.moved > STUCK_S:
            faulthandler.dump_traceback(all_threads=True)
            sys.stderr.write(f"nothing moved for {STUCK_S:.0f} s after {progress.done} runs\n")
            sys.stderr.flush()
            import os

            os._exit(1)


def main() -> int:
    """Run and judge."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--threads", type=int, default=8)
    parser.add_argument("--most-mb", type=float, default=4.0)
    given = parser.parse_args()
    progress = Progress(given.runs, moved=time.monotonic())
    threading.Thread(target=watch, args=(progress,), daemon=True).start()
    with ThreadPoolExecutor(given.threads) as pool:
        for outcome in [pool.submit(work, progress, n) for n in range(given.threads)]:
            outcome.result()
    middle = max(progress.resident[: len(progress.resident) // 2])
    grown = max(progress.resident) - middle
    print(f"grown by {grown:.1f} MB in the second half, {given.most_mb:.1f} MB are allowed")
    return int(grown > given.most_mb)


if __name__ == "__main__":
    sys.exit(main())
