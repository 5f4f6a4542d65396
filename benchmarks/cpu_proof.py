"""The five proof kernels of the tile IR as native code: error against float64, time, share of peak.

    python benchmarks/cpu_proof.py [--json FILE]

The texts are those of `gpu_proof.py`; only tile sizes, layouts and halos differ. One thread; the
peak is a plain multiply-add loop in this process. Error: largest difference over largest value.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests")]

import kernels  # noqa: E402

from rooftile.codegen.llvm import emit  # noqa: E402
from rooftile.core.affine import bind  # noqa: E402
from rooftile.ir.tile import Kernel  # noqa: E402
from rooftile.ir.tile.cost import cost  # noqa: E402
from rooftile.ir.tile.interpret import run as interpret  # noqa: E402
from rooftile.ir.tile.layout import pack, unpack  # noqa: E402
from rooftile.machine import peak_flops  # noqa: E402
from rooftile.native.aligned import aligned  # noqa: E402
from rooftile.native.assemble import assemble  # noqa: E402
from rooftile.native.library import Library, link  # noqa: E402
from rooftile.native.target import host_target  # noqa: E402

Symbols = Mapping[str, int]


def cases() -> dict[str, tuple[Kernel, Symbols]]:
    """Kernels with the tile sizes of a CPU, and values for their symbols."""
    packed = "layout 1/32 0 1%32"
    online = kernels.attention_online(8, 64, m=56, n=64)
    return {
        "matmul + bias + GELU 384x768x3072": (
            kernels.matmul_gelu(384, 768, 3072, m=192, n=3072, k=768, layout=packed),
            {},
        ),
        "softmax 384x1024": (kernels.softmax(384, 1024, r=8), {}),
        "depthwise 3x3 + bias + relu6 56x56x128": (
            kernels.depthwise(56, 56, 128, oh=56, ow=56, c=128),
            {},
        ),
        "attention, whole rows 8x512x64": (kernels.attention(8, 512, 64, m=56), {}),
        "attention, online, symbolic length 512": (online, {"S": 512}),
        "attention, online, symbolic length 197": (online, {"S": 197}),
    }


def measure(kernel: Kernel, symbols: Symbols) -> dict[str, float]:
    """Error, best seconds of a call, and share of the peak."""
    rng = np.random.default_rng(0)
    target = host_target()
    text = emit(kernel, target)
    library = Library(link([assemble(text.text, target)]))
    arrays: dict[str, Any] = {}
    memory: dict[str, Any] = {}
    for buf in kernel.bufs:
        shape = tuple(bind(extent, symbols) for extent in buf.shape)
        arrays[buf.name] = rng.standard_normal(shape).astype(np.float32)
        cells = np.ascontiguousarray(pack(buf, arrays[buf.name], symbols)).reshape(-1)
        memory[buf.name] = aligned(cells.nbytes + 64)
        memory[buf.name][: cells.nbytes] = cells.view(np.uint8)
    scratch = aligned(text.scratch_bytes + 64)
    function = ctypes.CFUNCTYPE(ctypes.c_int32)(library.address(text.symbol))
    pointers = [ctypes.c_void_p(memory[buf.name].ctypes.data) for buf in kernel.bufs]
    sizes = [ctypes.c_int64(symbols[name]) for name in text.symbols]
    call = [*pointers, *sizes, ctypes.c_void_p(scratch.ctypes.data)]
    assert function(*call) == 0
    (name,) = kernel.outputs
    buf = kernel.buf(name)
    found = unpack(buf, memory[name].view(np.float32), symbols)
    want = interpret(kernel, arrays, symbols)[name]
    peak = peak_flops("f32", 0.1)
    times = []
    for _ in range(30):
        began = time.perf_counter()
        function(*call)
        times.append(time.perf_counter() - began)
    peak = max(peak, peak_flops("f32", 0.1))
    flops = cost(kernel, symbols).total_flops
    return {
        "error": float(np.abs(found - want).max() / np.abs(want).max()),
        "us": min(times) * 1e6,
        "gflops": flops / min(times) / 1e9,
        "share": flops / min(times) / peak,
    }


def main() -> int:
    """Measure, print, write; 0."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path, help="write the figures")
    arguments = parser.parse_args()
    rows = {}
    print(f"{'kernel':42s} {'error':>8s} {'us':>9s} {'GFLOP/s':>8s} {'share':>6s}")
    for name, (kernel, symbols) in cases().items():
        row = rows[name] = measure(kernel, symbols)
        print(
            f"{name:42s} {row['error']:8.1e} {row['us']:9.1f} {row['gflops']:8.1f} "
            f"{row['share']:6.1%}",
            flush=True,
        )
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
