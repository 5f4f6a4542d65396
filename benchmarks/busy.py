"""Latency while another process burns a core: rooftile and onnxruntime on chains of products.

    python benchmarks/busy.py [--threads N] [--rounds N] [--json FILE]

Each engine runs in a process of its own; engines take turns in blocks of 0.3 seconds, first on an
idle machine, then beside a process that never sleeps. Microseconds of a call; `idle` is the CPU
time that the engine's process uses in a second without calls, as a share of one core.
"""

from __future__ import annotations

import argparse
import itertools
import json
import multiprocessing as mp
import statistics
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from onnx import TensorProto, helper, numpy_helper

BLOCK_S, IDLE_S = 0.3, 1.0
ENGINES = ("rooftile", "onnxruntime")
CHAINS = {
    "8 x 128x384x384": (128, [384] * 9),
    "8 x 32x256x256": (32, [256] * 9),
    "384x768x3072 and back": (384, [768, 3072, 768]),
}
"""Rows, and the columns of each product."""


def chain(rows: int, widths: list[int]) -> tuple[bytes, npt.NDArray[np.float32]]:
    """A model of products with ReLU between them, and an input."""
    rng = np.random.default_rng(0)
    nodes, weights = [], []
    pairs = list(itertools.pairwise(widths))
    for place, (before, after) in enumerate(pairs):
        array = rng.normal(size=(before, after)).astype(np.float32) / np.float32(before**0.5)
        weights.append(numpy_helper.from_array(array, f"w{place}"))
        nodes.append(helper.make_node("MatMul", [f"x{place}", f"w{place}"], [f"p{place}"]))
        nodes.append(helper.make_node("Relu", [f"p{place}"], [f"x{place + 1}"]))
    ends = (("x0", widths[0]), (f"x{len(pairs)}", widths[-1]))
    values = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [rows, w]) for n, w in ends]
    graph = helper.make_graph(nodes, "chain", values[:1], values[1:], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return model.SerializeToString(), rng.normal(size=(rows, widths[0])).astype(np.float32)


def engine_process(pipe: Connection, engine: str, rows: int, widths: list[int], n: int) -> None:
    """Answers "block" with the seconds of calls, "idle" with the CPU used in a pause."""
    model, x = chain(rows, widths)
    runtime: Any = __import__(engine)
    options = runtime.SessionOptions()
    options.intra_op_num_threads = n
    session = runtime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    feeds = {"x0": x}
    session.run(None, feeds)
    while (order := pipe.recv()) != "end":
        if order == "idle":
            time.sleep(0.2)
            began = time.process_time()
            time.sleep(IDLE_S)
            pipe.send((time.process_time() - began) / IDLE_S)
            continue
        times: list[float] = []
        end = time.perf_counter() + BLOCK_S
        while (start := time.perf_counter()) < end:
            session.run(None, feeds)
            times.append(time.perf_counter() - start)
        pipe.send(times[2:])


def burn() -> None:
    """Use a core until the process is ended."""
    while True:
        pass


@contextmanager
def neighbour(there: bool) -> Iterator[None]:
    """A process that burns a core meanwhile."""
    process = mp.get_context("spawn").Process(target=burn, daemon=True)
    if there:
        process.start()
        time.sleep(0.5)
    yield
    if there:
        process.kill()
        process.join()


def measured(rows: int, widths: list[int], arguments: argparse.Namespace) -> dict[str, Any]:
    """What both engines need for one chain, alone and beside a neighbour."""
    context = mp.get_context("spawn")
    pipes, found = {}, {}
    for engine in ENGINES:
        pipes[engine], theirs = context.Pipe()
        given = (theirs, engine, rows, widths, arguments.threads)
        context.Process(target=engine_process, args=given, daemon=True).start()
    for word in ("idle machine", "busy neighbour"):
        times: dict[str, list[float]] = {engine: [] for engine in ENGINES}
        with neighbour(word == "busy neighbour"):
            for turn in range(arguments.rounds):
                for engine in ENGINES[:: 1 if turn % 2 else -1]:
                    pipes[engine].send("block")
                    times[engine] += pipes[engine].recv()
        found[word] = {engine: summed(each) for engine, each in times.items()}
    for engine, pipe in pipes.items():
        pipe.send("idle")
        found.setdefault("idle", {})[engine] = pipe.recv()
        pipe.send("end")
    return found


def summed(times: list[float]) -> dict[str, float]:
    """Microseconds: mean, median, and the 95th and 99th of a hundred."""
    ordered = sorted(time * 1e6 for time in times)
    cuts = statistics.quantiles(ordered, n=100)
    return {
        "mean": statistics.fmean(ordered),
        "median": statistics.median(ordered),
        "p95": cuts[94],
        "p99": cuts[98],
    }


def main() -> int:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, default=2, help="of each engine")
    parser.add_argument("--rounds", type=int, default=8, help="blocks of each engine")
    parser.add_argument("--json", type=Path, help="write the figures")
    arguments = parser.parse_args()
    rows = {}
    for name, (count, widths) in CHAINS.items():
        row = rows[name] = measured(count, widths, arguments)
        print(name)
        for word in ("idle machine", "busy neighbour"):
            for engine, each in row[word].items():
                shown = " / ".join(f"{value:.0f}" for value in each.values())
                print(f"  {word:15s} {engine:12s} mean / median / p95 / p99: {shown} us")
            ratio = row[word]["rooftile"]["mean"] / row[word]["onnxruntime"]["mean"]
            print(f"  {word:15s} mean of rooftile over onnxruntime: {ratio:.2f}")
        idle = ", ".join(f"{engine} {share:.1%}" for engine, share in row["idle"].items())
        print(f"  CPU between calls: {idle}", flush=True)
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
