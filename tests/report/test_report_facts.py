"""Facts of an explanation: limits, bounds, shares, memory, the JSON contract."""

from __future__ import annotations

import json
from dataclasses import replace

import explained
import pytest

from rooftile.core.journal import Journal
from rooftile.report import HostRow, explain, explain_parts, limit
from rooftile.report.memory import pinning

SECONDS = [200e-6, 50e-6, 2e-6]


def test_limit_is_the_larger_of_compute_and_each_level() -> None:
    machine = explained.MACHINE
    assert limit({"f32": 10**9}, {}, machine).seconds == pytest.approx(0.01)
    assert limit({"f32": 10**9}, {}, machine).bound == "compute"
    assert limit({"f32": 10**9}, {}, machine, threads=2).seconds == pytest.approx(0.005)
    slow = limit({"f32": 1}, {"l2": 1000, "dram": 500}, machine)
    assert (slow.seconds, slow.bound) == (pytest.approx(50e-9), "dram")


def test_kernels() -> None:
    facts = explain(explained.program(), explained.journal(), explained.MACHINE, SECONDS)
    dense, tiny = facts.kernels
    assert (dense.name, dense.origin, dense.bound) == ("dense", ("gemm", "relu"), "compute")
    assert dense.limit_ms == pytest.approx(0.1)
    assert dense.time_ms == pytest.approx(0.2)
    assert dense.share == pytest.approx(0.5)
    assert dense.lost_ms == pytest.approx(0.1)
    assert dense.intensity == pytest.approx(10_000_000 / 480_000)
    assert dense.schedule == {
        "tile": {"m": "8", "register n": 32},
        "unroll": None,
        "vector": None,
        "threads": 1,
        "isa": "avx512",
    }
    assert (tiny.bound, tiny.limit_ms) == ("launch", pytest.approx(1e-5))


def test_weights_come_from_the_level_that_holds_all_of_them() -> None:
    made = explained.program()
    buffers = tuple(
        replace(buffer, nbytes=2_000_000) if buffer.name == "w" else buffer
        for buffer in made.buffers
    )
    facts = explain(replace(made, buffers=buffers), Journal(), explained.MACHINE)
    # 440 kB are read, all of them may be weights: 44 us from dram, below 100 us of compute.
    assert facts.kernels[0].bound == "compute"
    light = replace(explained.DENSE, flops=1000)
    steps = (replace(made.launches[0], facts=light), *made.steps[1:])
    facts = explain(replace(made, buffers=buffers, steps=steps), Journal(), explained.MACHINE)
    assert facts.kernels[0].bound == "dram"
    assert facts.kernels[0].limit_ms == pytest.approx(0.044)
    facts = explain(replace(made, steps=steps), Journal(), explained.MACHINE)
    assert facts.kernels[0].bound == "l2"
    assert facts.kernels[0].limit_ms == pytest.approx(0.0048)


def test_total_without_and_with_the_work_of_the_graph() -> None:
    made = explained.journal()
    total = explain(explained.program(), made, explained.MACHINE, SECONDS).total
    assert (total.nodes, total.flops, total.bytes) == (4, 10_001_000, 480_000)
    assert total.time_ms == pytest.approx(0.252)
    made.add("work", ("toy",), "counted", "", flops={"f32": 5_000_000}, bytes=20_000_000)
    total = explain(explained.program(), made, explained.MACHINE, SECONDS).total
    assert (total.flops, total.bound) == (5_000_000, "dram")
    assert total.limit_ms == pytest.approx(2.0)
    assert total.share == pytest.approx(2.0 / 0.252)


def test_the_rest() -> None:
    facts = explain(explained.program(), explained.journal(), explained.MACHINE, SECONDS)
    assert facts.precision == {"f32": 2, "i8": 1}
    (host,) = facts.host_ops
    assert (host.node, host.op, host.why) == ("top", "TopK", "sorting has no kernel yet")
    assert host.time_ms == pytest.approx(0.05)
    assert [(row.name, row.bytes) for row in facts.layout] == [("t", 80_000)]
    assert [row.verdict for row in facts.ledger] == ["taken", "refused"]
    assert facts.ledger[0].bytes_saved == 80_000
    assert facts.memory.pinning == ("a", "b")
    assert facts.machine["peak_flops"] == {"f32": 100e9, "i8": 400e9}
    without = explain(explained.program(), Journal(), explained.MACHINE)
    assert without.host_ops[0].why == "no kernel can be generated for it"


def test_pinning_is_where_most_bytes_are_live() -> None:
    made = explained.program()
    assert [buffer.name for buffer in pinning(made)] == ["a", "b"]
    alone = replace(made, steps=(made.steps[0],), outputs=())
    assert [buffer.name for buffer in pinning(alone)] == ["a"]


def test_predictions_stand_in_for_times() -> None:
    facts = explain(explained.program(), explained.journal(), explained.MACHINE)
    assert facts.kernels[0].time_ms is None and facts.kernels[0].share is None
    assert facts.kernels[0].lost_ms == pytest.approx(0.01)
    assert facts.total.spent_ms == pytest.approx(0.111)
    assert facts.host_ops[0].time_ms is None


def test_a_model_in_parts() -> None:
    made = explained.program()
    between = [HostRow("sorted", "TopK", "sorting has no kernel yet", 0.5)]
    machine = explained.MACHINE
    parts = [(made, SECONDS), (made, SECONDS)]
    facts = explain_parts("both", parts, explained.journal(), machine, between)
    assert facts.model == "both"
    assert [kernel.name for kernel in facts.kernels] == ["dense", "tiny"] * 2
    assert [row.node for row in facts.host_ops] == ["sorted", "top", "top"]
    assert facts.total.time_ms == pytest.approx(0.5 + 2 * 0.252)
    assert (facts.total.flops, facts.total.nodes) == (2 * 10_001_000, 5)
    assert facts.memory.arena_bytes == 180_000
    unknown = explain_parts("both", [(made, SECONDS), (made, None)], Journal(), machine)
    assert unknown.total.time_ms is None


def test_json_has_the_keys_of_the_contract() -> None:
    facts = explain(explained.program(), explained.journal(), explained.MACHINE, SECONDS)
    found = json.loads(json.dumps(facts.to_dict(), allow_nan=False))
    keys = {"kernels", "ledger", "memory", "precision", "host_ops"}
    assert keys <= set(found)
    kernel = "name origin ops dtype flops bytes_read bytes_written bytes_unfused intensity"
    kernel += " time_ms limit_ms share bound schedule"
    assert set(kernel.split()) <= set(found["kernels"][0])
    schedule = {"tile", "unroll", "vector", "threads", "isa"}
    assert set(found["kernels"][0]["schedule"]) == schedule
    ledger = "producer consumer verdict reason bytes_saved flops_added predicted_ms"
    assert set(found["ledger"][0]) == set(ledger.split())
    assert {"arena_bytes", "lower_bound_bytes", "no_reuse_bytes", "pinning"} <= set(found["memory"])
    assert {"node", "op", "why"} <= set(found["host_ops"][0])
