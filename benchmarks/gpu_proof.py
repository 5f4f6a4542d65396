"""The five proof kernels on one GPU: values against float64, times beside torch.

    python benchmarks/gpu_proof.py --json gpu.json

Needs torch and triton and a CUDA device. Each case lists a few tile sizes; the best by its time in
a captured graph stands in the table beside torch eager and torch.compile of the same expression.
"""

from __future__ import annotations

import argparse
import json
import math
import platform
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
import triton
import triton.testing

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests")]

import kernels  # noqa: E402

from rooftile.codegen.triton import emit, load  # noqa: E402
from rooftile.ir.tile import Hints, Kernel  # noqa: E402
from rooftile.ir.tile.cost import cost  # noqa: E402

TYPES = {"f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16}
Tensor = torch.Tensor


@dataclass
class Row:
    """One case: microseconds in a captured graph, relative errors against float64."""

    case: str
    best: str = ""
    microseconds: float = math.inf
    error: float = math.nan
    flops: int = 0
    nbytes: int = 0
    roof_microseconds: float = 0.0
    torch: dict[str, float] = field(default_factory=dict)
    torch_error: float = math.nan
    tried: dict[str, Any] = field(default_factory=dict)


@dataclass
class Case:
    """`inputs` in the order of the kernels' buffers, the output last; `expected` in float64."""

    name: str
    dtype: str
    inputs: tuple[Tensor, ...]
    output: Tensor
    expected: Tensor
    candidates: list[tuple[str, Kernel, Hints]]
    rival: Callable[[], Tensor]
    symbols: dict[str, int] = field(default_factory=dict)


def normal(*shape: int, dtype: str = "f32", scale: float = 1.0) -> Tensor:
    """Random values on the device."""
    values = torch.randn(*shape, device="cuda", dtype=torch.float64) * scale
    return values.to(TYPES[dtype])


def relative(found: Tensor, expected: Tensor) -> float:
    """Norm of the difference over the norm; NaN if any element is."""
    gap = found.double().reshape(expected.shape) - expected
    return float(gap.norm() / expected.norm())


def graph_time(call: Callable[[], object]) -> float:
    """Median microseconds in a captured graph."""
    return float(triton.testing.do_bench_cudagraph(call, rep=60, return_mode="median")) * 1e3


def matmul(rows: int, dtype: str) -> Case:
    inner, cols = 768, 3072
    a, b = normal(rows, inner, dtype=dtype), normal(inner, cols, dtype=dtype, scale=inner**-0.5)
    bias = normal(cols, dtype=dtype)
    sizes = [(64, 64, 64, 4, 4), (64, 128, 64, 4, 4), (128, 128, 64, 8, 3), (128, 256, 64, 8, 3)]
    tries = []
    for m, n, k, warps, stages in sizes:
        for swizzle in (0, 8) if rows > 1024 else (0,):
            kernel = kernels.matmul_gelu(rows, inner, cols, m, n, k, dtype)
            label = f"m{m} n{n} k{k} warps {warps} stages {stages} swizzle {swizzle}"
            tries.append((label, kernel, Hints(warps=warps, stages=stages, swizzle=swizzle)))
    expected = F.gelu(torch.addmm(bias.double(), a.double(), b.double()))
    return Case(
        f"matmul + bias + GELU {rows}x{inner}x{cols}",
        dtype,
        (a, b, bias.float()),
        torch.empty(rows, cols, device="cuda", dtype=TYPES[dtype]),
        expected,
        tries,
        lambda: F.gelu(torch.addmm(bias, a, b)),
    )


def softmax(rows: int, cols: int, dtype: str) -> Case:
    x = normal(rows, cols, dtype=dtype, scale=3.0)
    tries = [
        (f"r{r} warps {warps}", kernels.softmax(rows, cols, r, dtype), Hints(warps=warps))
        for r, warps in ((1, 1), (1, 2), (1, 4), (2, 4), (4, 4))
    ]
    expected = torch.softmax(x.double(), 1)
    return Case(
        f"softmax {rows}x{cols}",
        dtype,
        (x,),
        torch.empty_like(x),
        expected,
        tries,
        lambda: torch.softmax(x, 1),
    )


def depthwise(side: int, channels: int, dtype: str) -> Case:
    x = normal(1, channels, side, side, dtype=dtype).to(memory_format=torch.channels_last)
    w, bias = normal(channels, 1, 3, 3, dtype=dtype, scale=1 / 3), normal(channels, dtype=dtype)
    image = x.permute(0, 2, 3, 1).contiguous()[0]
    taps = w[:, 0].permute(1, 2, 0).contiguous()
    tries = []
    for oh, ow, c, warps in (
        (2, 8, 64, 4),
        (4, 8, 64, 4),
        (4, 16, 32, 4),
        (8, 8, 32, 4),
        (2, 8, 128, 8),
        (4, 8, 128, 8),
    ):
        kernel = kernels.depthwise(side, side, channels, oh, ow, c, dtype)
        tries.append((f"oh{oh} ow{ow} c{c} warps {warps}", kernel, Hints(warps=warps)))

    def rival(*parts: Tensor) -> Tensor:
        x, w, bias = parts
        y = F.conv2d(x, w, bias, padding=1, groups=channels)
        return F.relu6(y).permute(0, 2, 3, 1)[0]

    expected = rival(x.double(), w.double(), bias.double())
    return Case(
        f"depthwise 3x3 + bias + relu6 {side}x{side}x{channels}",
        dtype,
        (image, taps, bias.float()),
        torch.empty_like(image),
        expected,
        tries,
        lambda: rival(x, w, bias),
    )


def attention(heads: int, length: int, dtype: str, online: bool, symbolic: bool = False) -> Case:
    q, k, v = (normal(heads, length, 64, dtype=dtype) for _ in range(3))
    tries = []
    if online:
        for m, n, warps, stages in (
            (64, 64, 4, 3),
            (64, 32, 4, 3),
            (128, 64, 8, 3),
            (128, 64, 4, 3),
            (64, 128, 4, 2),
            (128, 128, 8, 2),
        ):
            size: int | str = "S" if symbolic else length
            kernel = kernels.attention_online(heads, 64, m, n, dtype, size)
            label = f"m{m} n{n} warps {warps} stages {stages}"
            tries.append((label, kernel, Hints(warps=warps, stages=stages)))
    else:
        for m, warps in ((16, 4), (32, 4), (32, 8), (64, 8)):
            kernel = kernels.attention(heads, length, 64, m, dtype)
            tries.append((f"m{m} warps {warps}", kernel, Hints(warps=warps)))
    rows = [
        torch.softmax(q[i].double() @ k[i].double().mT / 8, -1) @ v[i].double()
        for i in range(heads)
    ]
    kind = "online, symbolic length" if symbolic else "online" if online else "whole rows"
    return Case(
        f"attention {kind} {heads}x{length}x64",
        dtype,
        (q, k, v),
        torch.empty_like(q),
        torch.stack(rows),
        tries,
        lambda: F.scaled_dot_product_attention(q[None], k[None], v[None])[0],
        {"S": length} if symbolic else {},
    )


def cases() -> Iterator[Callable[[], Case]]:
    """What the table holds."""
    for rows in (384, 8192):
        yield lambda rows=rows: matmul(rows, "bf16")
    for dtype in ("f32", "bf16"):
        yield lambda dtype=dtype: softmax(16384, 1024, dtype)
        yield lambda dtype=dtype: depthwise(448, 128, dtype)
    yield lambda: attention(8, 512, "bf16", online=False)
    yield lambda: attention(128, 512, "bf16", online=False)
    yield lambda: attention(128, 512, "bf16", online=True)
    yield lambda: attention(128, 2048, "bf16", online=True)
    yield lambda: attention(128, 512, "bf16", online=True, symbolic=True)


def measure(case: Case, roofs: dict[str, float]) -> Row:
    """Check and time the candidates of a case and its rivals."""
    need = cost(case.candidates[0][1], case.symbols)
    floor = need.nbytes / roofs["copy"] * 1e6
    if case.dtype == "bf16":
        floor = max(floor, need.total_flops / roofs["matmul_bf16"] * 1e6)
    row = Row(case.name + " " + case.dtype, flops=need.total_flops, nbytes=need.nbytes)
    row.roof_microseconds = floor
    for label, kernel, hints in case.candidates:
        try:
            time, error = candidate(case, kernel, hints)
        except Exception as problem:
            row.tried[label] = f"{type(problem).__name__}: {str(problem)[:200]}"
            continue
        row.tried[label] = {"microseconds": time, "error": error}
        if error < 2e-2 and time < row.microseconds:
            row.best, row.microseconds, row.error = label, time, error
    rivals = {"eager": case.rival, "compile": torch.compile(case.rival, dynamic=False)}
    for name, call in rivals.items():
        try:
            for _ in range(3):
                found = call()
            row.torch_error = relative(found, case.expected)
            row.torch[name] = graph_time(call)
        except Exception as problem:
            row.tried[f"torch {name}"] = f"{type(problem).__name__}: {str(problem)[:200]}"
    return row


def candidate(case: Case, kernel: Kernel, hints: Hints) -> tuple[float, float]:
    """Microseconds and relative error of one schedule."""
    source = emit(kernel, hints)
    function, grid = load(source), source.grid(case.symbols)
    args = (*case.inputs, case.output, *case.symbols.values())

    def call() -> None:
        function[grid](*args, **source.options)

    case.output.fill_(math.nan)
    call()
    torch.cuda.synchronize()
    error = relative(case.output, case.expected)
    return graph_time(call), error


def one_compilation() -> dict[str, Any]:
    """The symbolic kernel at several lengths: errors, and how often it was compiled."""
    source = emit(kernels.attention_online(16, 64, 64, 64, "bf16"), Hints(stages=3))
    function = load(source)
    errors = {}
    for length in (512, 197, 64, 13, 1):
        q, k, v = (normal(16, length, 64, dtype="bf16") for _ in range(3))
        out = torch.full_like(q, math.nan)
        function[source.grid({"S": length})](q, k, v, out, length, **source.options)
        expected = torch.softmax(q.double() @ k.double().mT / 8, -1) @ v.double()
        errors[length] = relative(out, expected)
    caches = getattr(function, "device_caches", {})
    compiled = [len(entry[0]) for entry in caches.values()]
    return {"errors": errors, "compilations": sum(compiled)}


def measure_roofs() -> dict[str, float]:
    """Bytes per second of a large copy, operations per second of a large bf16 product."""
    source = torch.randn(2**28, device="cuda")
    target = torch.empty_like(source)
    # A copy in a graph is a job for the copy engine, which is slower than a kernel.
    seconds = triton.testing.do_bench(lambda: target.copy_(source), return_mode="median") * 1e-3
    copy = 2 * source.nbytes / seconds
    a = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
    product = 2 * 8192**3 / (graph_time(lambda: a @ a) * 1e-6)
    return {"copy": copy, "matmul_bf16": product}


def table(rows: list[Row]) -> str:
    """The rows in Markdown."""
    lines = [
        "| kernel | rooftile, us | eager | torch.compile | roof, us | error | torch's | best |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        rivals = [f"{row.torch[n]:.1f}" if n in row.torch else "-" for n in ("eager", "compile")]
        lines.append(
            f"| {row.case} | {row.microseconds:.1f} | {rivals[0]} | {rivals[1]} | "
            f"{row.roof_microseconds:.1f} | {row.error:.1e} | {row.torch_error:.1e} | {row.best} |"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, help="write all figures to this file")
    options = parser.parse_args()
    torch.manual_seed(0)
    facts = {
        "device": torch.cuda.get_device_name(0),
        "torch": torch.__version__,
        "triton": triton.__version__,
        "python": platform.python_version(),
        "roofs": measure_roofs(),
    }
    print(facts, flush=True)
    rows = []
    for make in cases():
        row = measure(make(), facts["roofs"])
        rows.append(row)
        print(row.case, row.microseconds, row.torch, row.tried, flush=True)
        if options.json:
            found = {**facts, "rows": [asdict(entry) for entry in rows]}
            options.json.write_text(json.dumps(found, indent=1), encoding="utf-8")
        torch._dynamo.reset()
    symbolic = one_compilation()
    print("one compilation:", symbolic)
    if options.json:
        found = {**facts, "rows": [asdict(entry) for entry in rows], "symbolic": symbolic}
        options.json.write_text(json.dumps(found, indent=1), encoding="utf-8")
    print(table(rows))


if __name__ == "__main__":
    main()
