"""A program with one of everything, and its journal, for tests of reports."""

from __future__ import annotations

from rooftile.core.journal import Journal
from rooftile.ir.program import Arg, Buffer, HostCall, KernelFacts, Launch, Port, Program, verify
from rooftile.machine import Machine

MACHINE = Machine(
    name="toy",
    cpu="Toy 1",
    isa="avx512",
    cores=2,
    vector_bytes=64,
    registers=32,
    peak={"f32": 100e9, "i8": 400e9},
    bandwidth={"l1": 200e9, "l2": 100e9, "dram": 10e9},
    cache={"l1": 32_000, "l2": 1_000_000},
    launch_s=1e-6,
    barrier_s=1e-7,
    wake_s=1e-5,
    tile_call_s=1e-8,
    overlap={"dot": 0.0, "elementwise": 1.0},
    source="made up",
)
"""Round figures: 100 GFLOP/s, 100 GB/s from l2, 10 GB/s from dram, 1 us a launch."""

DENSE = KernelFacts(
    origin=("gemm", "relu"),
    ops=("dot", "max"),
    flops=10_000_000,
    bytes_read=440_000,
    bytes_written=40_000,
    bytes_unfused=560_000,
    predicted_s=110e-6,
    schedule=(("m", "8"), ("register n", 32), ("isa", "avx512"), ("threads", 1)),
)
TINY = KernelFacts(("scale",), ("mul",), "i8", 1000, 1000, 1000, 2000, 1e-6)


def program() -> Program:
    """A dense kernel with 400 kB of weights, a host op and a kernel smaller than its call."""
    return verify(
        Program(
            "toy_model",
            (Port("x", "x", (100, 100), "f32"),),
            (Port("y", "y", (100, 100), "f32"),),
            (
                Buffer("x", 40_000, "input"),
                Buffer("w", 400_000, "constant"),
                Buffer("a", 40_000, "arena"),
                Buffer("b", 40_000, "arena", 40_064),
                Buffer("y", 40_000, "output"),
            ),
            (
                Launch("dense", (Arg("x"), Arg("w"), Arg("a")), DENSE),
                HostCall(
                    "TopK",
                    (Port("a", "a", (100, 100), "f32"),),
                    (Port("b", "b", (100, 100), "f32"),),
                    origin=("top",),
                ),
                Launch("tiny", (Arg("b"), Arg("y")), TINY),
            ),
            arena_bytes=90_000,
            lower_bound_bytes=80_064,
            no_reuse_bytes=90_000,
        )
    )


def journal() -> Journal:
    """Two fusions, a transpose left, the reason of the host op."""
    made = Journal()
    saved = {"bytes_saved": 80_000, "flops_added": 0, "predicted_ms": 0.11}
    made.add("fusion", ("gemm", "relu"), "taken", "epilogue: saves 4 us", **saved)
    made.add("fusion", ("relu", "top"), "refused", "%relu is needed elsewhere too")
    made.add("layout", ("t",), "left", "%y needs %x with its dims in order 1,0", bytes=80_000)
    made.add("layout", ("u",), "cancelled", "met without moving data", bytes=80_000)
    made.add("host", ("top",), "host", "sorting has no kernel yet")
    return made
