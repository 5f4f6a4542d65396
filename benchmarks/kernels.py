"""Share of the multiply-add peak that generated matmuls and 3x3 convolutions reach, one thread.

    python benchmarks/kernels.py [--seconds S] [--json FILE] [NAME...]

Each is a small ONNX model, compiled through the public API. The peak is measured in this process,
before and after each kernel, so that both see the clock of the moment. Products with padding do
not count as work.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper

import rooftile
from rooftile.machine import peak_flops

MATMULS = ((384, 768, 768), (128, 384, 1536), (3136, 64, 256), (196, 256, 1024))
"""Rows, inner dim, columns."""
CONVS = ((56, 64), (28, 128), (112, 32), (14, 256), (7, 512))
"""Side of the image, channels in and out."""


def matmul(rows: int, inner: int, columns: int) -> tuple[Any, tuple[int, ...], int]:
    """The model of `x @ w`, the shape of x, the operations."""
    node = helper.make_node("MatMul", ["x", "w"], ["y"], name="matmul")
    model = _model([node], (rows, inner), (rows, columns), (inner, columns))
    return model, (rows, inner), 2 * rows * inner * columns


def conv(side: int, channels: int, last: bool) -> tuple[Any, tuple[int, ...], int]:
    """The model of a 3x3 convolution with padding 1, the shape of x, the operations.

    `last`: channels last at the model's edges, as between the layers of a network; else ONNX's
    order, so that the kernel turns its input and its output too.
    """
    shape = (1, side, side, channels) if last else (1, channels, side, side)
    nodes = [helper.make_node("Conv", ["a", "w"], ["b"], name="conv", pads=[1] * 4)]
    if last:
        nodes.insert(0, helper.make_node("Transpose", ["x"], ["a"], perm=[0, 3, 1, 2]))
        nodes.append(helper.make_node("Transpose", ["b"], ["y"], perm=[0, 2, 3, 1]))
    else:
        nodes[0].input[0], nodes[0].output[0] = "x", "y"
    model = _model(nodes, shape, shape, (channels, channels, 3, 3))
    inside = (3 * side - 2) ** 2  # pairs of a place and a tap that lie within the image
    return model, shape, 2 * inside * channels * channels


def _model(nodes: list[Any], x: tuple[int, ...], y: tuple[int, ...], w: tuple[int, ...]) -> Any:
    weight = np.random.default_rng(0).standard_normal(w).astype(np.float32)
    given = helper.make_tensor_value_info("x", TensorProto.FLOAT, x)
    found = helper.make_tensor_value_info("y", TensorProto.FLOAT, y)
    tensors = [numpy_helper.from_array(weight, "w")]
    graph = helper.make_graph(nodes, "kernel", [given], [found], tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def measure(made: tuple[Any, tuple[int, ...], int], seconds: float) -> dict[str, float]:
    """Time and share of the kernel that multiplies, and of the whole model with its transposes."""
    model, shape, flops = made
    compiled = rooftile.compile(model)
    x = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
    once = sum(compiled.executable.profile([x], 3))
    peak = peak_flops("f32", 0.1)
    times = compiled.executable.profile([x], max(5, int(seconds / once)))
    peak = max(peak, peak_flops("f32", 0.1))
    kernel = max(times)
    return {
        "flops": flops,
        "kernel_us": kernel * 1e6,
        "model_us": sum(times) * 1e6,
        "gflops": flops / kernel / 1e9,
        "peak_gflops": peak / 1e9,
        "share": flops / kernel / peak,
    }


def main() -> int:
    """Measure, print, write; 0."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="those that start so; else all")
    parser.add_argument("--seconds", type=float, default=1.0, help="for each kernel (default 1)")
    parser.add_argument("--json", type=Path, help="write the figures")
    arguments = parser.parse_args()
    cases = {"matmul_" + "x".join(map(str, dims)): matmul(*dims) for dims in MATMULS}
    cases |= {f"conv3x3_{side}x{side}x{c}": conv(side, c, last=True) for side, c in CONVS}
    cases |= {f"nchw_conv3x3_{side}x{side}x{c}": conv(side, c, last=False) for side, c in CONVS}
    wanted = tuple(arguments.names) or ("",)
    rows = {}
    print(f"{'kernel':24s} {'us':>9s} {'GFLOP/s':>8s} {'peak':>7s} {'share':>6s} {'model us':>9s}")
    for name in cases:
        if not name.startswith(wanted):
            continue
        row = rows[name] = measure(cases[name], arguments.seconds)
        print(
            f"{name:24s} {row['kernel_us']:9.1f} {row['gflops']:8.1f} {row['peak_gflops']:7.1f} "
            f"{row['share']:6.1%} {row['model_us']:9.1f}",
            flush=True,
        )
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
