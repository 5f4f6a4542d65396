"""Scripts that run in processes of their own, to be killed, forked or left in the middle."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

PRELUDE = """
import os, signal, sys, threading, time
import numpy as np
from numpy.testing import assert_allclose  # a lazy import would hold Python's lock at a fork
from onnx import helper, numpy_helper
import rooftile as rt

N = 512
W = np.random.default_rng(0).standard_normal((N, N)).astype(np.float32) / N**0.5
X = np.random.default_rng(1).standard_normal((256, N)).astype(np.float32)
WANTED = np.maximum(X @ W, 0) @ W


def model(rows=256):
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["a"]),
        helper.make_node("Relu", ["a"], ["r"]),
        helper.make_node("MatMul", ["r", "w"], ["y"]),
    ]
    ends = [helper.make_tensor_value_info(name, 1, [rows, N]) for name in "xy"]
    graph = helper.make_graph(nodes, "g", ends[:1], ends[1:], [numpy_helper.from_array(W, "w")])
    opset = [helper.make_opsetid("", 17)]
    return helper.make_model(graph, opset_imports=opset, ir_version=8).SerializeToString()


def session(threads=2, rows=256):
    options = rt.SessionOptions()
    options.intra_op_num_threads = threads
    return rt.InferenceSession(model(rows), options)


def check(made, rows=256):
    (found,) = made.run(None, {"x": X[:rows]})
    assert_allclose(found, WANTED[:rows], rtol=1e-3, atol=1e-3)
"""
SOURCES = str(Path(__file__).parents[2] / "src")


def environment(cache: Path | str) -> dict[str, str]:
    """That of a process that has a cache of its own."""
    path = os.pathsep.join(filter(None, [SOURCES, os.environ.get("PYTHONPATH", "")]))
    own = {"ROOFTILE_CACHE": str(cache), "ROOFTILE_PROGRAMS": "1", "PYTHONPATH": path}
    return {**os.environ, **own}


def start(body: str, cache: Path | str, *before: str) -> subprocess.Popen[str]:
    """A process that runs the prelude and a body."""
    return subprocess.Popen(
        [*before, sys.executable, "-c", PRELUDE + body],
        env=environment(cache),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def run(body: str, cache: Path | str, *before: str) -> str:
    """What such a process prints; it must end well, say nothing else, and in a minute."""
    process = start(body, cache, *before)
    try:
        out, errors = process.communicate(timeout=60)
    except subprocess.TimeoutExpired:
        process.kill()
        raise
    assert (process.returncode, errors) == (0, ""), errors
    return out
