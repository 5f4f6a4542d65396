"""The probe: a sane record of this machine, kernels for every target, and what the system tells."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from rooftile.core.errors import InvalidOption
from rooftile.machine import Machine, peak_flops, peak_kernel
from rooftile.machine.probe import bandwidth, calls, kernels, probe, system
from rooftile.machine.probe.kernels import accumulators, multiply_add, peak_text, read_text
from rooftile.machine.probe.timing import Effort, best
from rooftile.native import Target, assemble, assembly, cross_target, host_target
from rooftile.native.target import make_target

SMALL = {"l1": 32 << 10, "l2": 256 << 10}


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROOFTILE_CACHE", str(tmp_path / "rooftile"))


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Working sets small enough for a test."""
    monkeypatch.setattr(bandwidth, "_SMALLEST", 1 << 20)
    monkeypatch.setattr(bandwidth, "_LARGEST", 4 << 20)


def test_a_probe_fills_the_record(small: None) -> None:
    probed = probe(quick=True)
    target = host_target()
    assert (probed.isa, probed.vector_bytes) == (target.isa, target.vector_bytes)
    assert {"f32", "f64"} <= set(probed.peak)
    assert min(probed.peak.values()) > 1e7
    assert set(probed.bandwidth) == {*probed.cache, "dram"}
    assert set(probed.bandwidth_all) == set(probed.bandwidth)
    for level, rate in probed.bandwidth.items():
        assert rate <= probed.bandwidth_all[level] <= rate * probed.cores
    assert probed.name.endswith(target.isa.replace(".", "-"))
    assert "quick probe" in probed.source
    assert Machine.from_json(probed.to_json()) == probed


def test_a_full_probe_sweeps_caches(small: None, monkeypatch: pytest.MonkeyPatch) -> None:
    module = probe.__globals__
    monkeypatch.setitem(module, "FULL", Effort(0.0005, 5))
    monkeypatch.setitem(module, "cache_sizes", lambda: (SMALL, False))
    monkeypatch.setitem(module, "core_count", lambda: 1)
    machine = probe()
    assert all(machine.cache[level] <= size for level, size in SMALL.items())
    assert machine.bandwidth_all == machine.bandwidth
    assert machine.barrier_s == calls.ASSUMED_BARRIER_S
    assert machine.source.startswith("measured by the full probe; cache sizes assumed")


def test_a_cache_that_is_not_really_there_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    class Pretend:
        def __init__(self, target: Target, nbytes: int) -> None:
            pass

        def rate(self, nbytes: int, effort: Effort) -> float:
            return 100.0 if nbytes <= 200 else 10.0

    monkeypatch.setattr(bandwidth, "Reader", Pretend)
    alone = {"l1": 100.0, "l2": 100.0, "l3": 100.0, "dram": 10.0}
    cache = {"l1": 200, "l2": 260, "l3": 4000}
    found = bandwidth.effective_sizes(host_target(), cache, alone, Effort(0.001, 5))
    assert found["l2"] == 195
    assert found["l3"] == 2000


def test_peak_kernel_counts_its_operations() -> None:
    kernel = peak_kernel("f32")
    target = host_target()
    lanes = target.vector_bytes // 4
    assert kernel.operations == accumulators(target) * kernels.UNROLL * 2 * lanes
    kernel(3)
    results = kernel._operands[2 * target.vector_bytes :].view(np.float32)
    assert (results[: lanes * accumulators(target)] == 3 * kernels.UNROLL).all()


def test_peak_flops_is_a_rate() -> None:
    assert peak_flops("f32", seconds=0.01) > 1e7


@pytest.mark.parametrize("name", ["aarch64-linux", "aarch64-macos", "x86-64-v2", "x86-64-v3"])
@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_kernels_for_other_targets_call_nothing(name: str, dtype: str) -> None:
    target = cross_target(name)
    listing = assembly(peak_text(dtype, target)[0], target)
    instruction = {"aarch64": "fmla", "x86_64": "vfmadd" if target.has_fma else "mulp"}
    assert instruction[target.arch] in listing
    assert "call" not in listing
    assert "\tbl\t" not in listing
    assert assemble(read_text(target), target)
    assert assemble(kernels.call_text(target), target)


@pytest.mark.parametrize(
    ("features", "dtype", "instruction"),
    [
        ("+avx512bf16", "bf16", "vdpbf16ps"),
        ("+avx512vnni", "i8", "vpdpbusd"),
        ("+avx512fp16", "f16", "vfmadd"),
    ],
)
def test_avx512_dots(features: str, dtype: str, instruction: str) -> None:
    wide = "+avx512f,+avx512bw,+avx512dq,+avx512vl"
    target = make_target("x86_64-unknown-linux-gnu", "x86-64-v4", f"{wide},{features}")
    text, operations = peak_text(dtype, target)
    assert instruction in assembly(text, target)
    assert operations == 16 * 4 * {"bf16": 64, "i8": 128, "f16": 64}[dtype]


@pytest.mark.parametrize(
    ("triple", "cpu", "features", "dtype", "instruction"),
    [
        ("x86_64-unknown-linux-gnu", "x86-64-v3", "+avx2,+fma,+avxvnni", "i8", "vpdpbusd"),
        ("aarch64-unknown-linux-gnu", "generic", "+neon,+dotprod", "i8", "sdot"),
        ("aarch64-unknown-linux-gnu", "generic", "+neon,+bf16", "bf16", "bfdot"),
        ("aarch64-unknown-linux-gnu", "generic", "+neon,+fullfp16", "f16", "fmla"),
    ],
)
def test_narrow_dots(triple: str, cpu: str, features: str, dtype: str, instruction: str) -> None:
    target = make_target(triple, cpu, features)
    assert instruction in assembly(peak_text(dtype, target)[0], target)


def test_a_dtype_without_an_instruction() -> None:
    target = cross_target("x86-64-v2")
    assert multiply_add("bf16", target) is None
    assert multiply_add("i64", target) is None
    with pytest.raises(InvalidOption, match=r"sse4.2 has no instruction that multiplies and adds"):
        peak_text("i8", target)


def test_peaks_of_a_lowered_host(monkeypatch: pytest.MonkeyPatch) -> None:
    try:
        monkeypatch.setenv("ROOFTILE_TARGET", "sse4.2")
        target = host_target()
    except InvalidOption:
        pytest.skip("not an x86-64 host")
    peak_kernel("f64")(2)
    with pytest.raises(InvalidOption, match=r"multiplies and adds bf16"):
        peak_kernel("bf16")
    assert target.isa == "sse4.2"


def test_best_takes_the_least_of_the_rounds() -> None:
    asked: list[int] = []
    assert best(lambda turns: asked.append(turns), Effort(1e-6, 1)) >= 0
    assert len(asked) >= 6


def test_a_meeting_that_never_happens_is_assumed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls, "_meet", lambda meet: None)
    assert calls.measure_barrier(host_target(), rounds=1) == calls.ASSUMED_BARRIER_S


def test_working_sets_lie_in_their_level() -> None:
    cache = {"l1": 64 << 10, "l2": 512 << 10, "l3": 2 << 20}
    sets = bandwidth.working_sets(cache)
    assert list(sets) == ["l1", "l2", "l3", "dram"]
    assert sets["l1"] < cache["l1"] < sets["l2"] < cache["l2"] < sets["l3"] < cache["l3"]
    assert sets["dram"] > 2 * cache["l3"]


def _write(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def _cache(index: int, level: int, kind: str, size: str) -> dict[str, str]:
    folder = f"sys/devices/system/cpu/cpu0/cache/index{index}"
    return {f"{folder}/level": f"{level}\n", f"{folder}/type": kind, f"{folder}/size": size}


def test_the_system_tells_sizes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(system, "usable_cpus", lambda: [0])
    told = _cache(0, 1, "Data", "48K") | _cache(1, 1, "Instruction", "32K")
    told |= _cache(2, 2, "Unified", "2M") | _cache(3, 4, "Unified", "1G")
    root = _write(tmp_path, told)
    assert system.cache_sizes(root) == ({"l1": 48 << 10, "l2": 2 << 20}, True)
    sizes, known = system.cache_sizes(tmp_path / "nothing")
    assert (set(sizes), known) == ({"l1", "l2", "l3"}, False)


def test_the_system_tells_cores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(system, "usable_cpus", lambda: [0, 1, 2, 3])
    topology = "sys/devices/system/cpu/cpu{}/topology/thread_siblings_list"
    root = _write(tmp_path, {topology.format(cpu): f"{cpu % 2},{cpu % 2 + 2}" for cpu in range(4)})
    assert system.core_count(root) == 2
    assert system.core_count(tmp_path / "nothing") == 4
    _write(root, {"sys/fs/cgroup/cpu.max": "150000 100000\n"})
    assert system.core_count(root) == 2
    _write(root, {"sys/fs/cgroup/cpu.max": "50000 100000\n"})
    assert system.core_count(root) == 1
    _write(root, {"sys/fs/cgroup/cpu.max": "max 100000\n"})
    assert system.core_count(root) == 2


def test_the_quota_is_the_least_of_all_groups_above(tmp_path: Path) -> None:
    assert system.quota(tmp_path) == float("inf")
    root = _write(
        tmp_path,
        {
            "proc/self/cgroup": "0::/slice/task\n",
            "sys/fs/cgroup/slice/cpu.max": "300000 100000\n",
            "sys/fs/cgroup/slice/task/cpu.max": "max 100000\n",
        },
    )
    assert system.quota(root) == 3.0
    _write(root, {"sys/fs/cgroup/slice/task/cpu.max": "50000 100000\n"})
    assert system.quota(root) == 0.5
    first = {"proc/self/cgroup": "4:memory:/m\n1:cpu,cpuacct:/box\n"}
    root = _write(tmp_path / "first", first)
    folder = "sys/fs/cgroup/cpu,cpuacct/box"
    _write(root, {f"{folder}/cpu.cfs_quota_us": "-1\n", f"{folder}/cpu.cfs_period_us": "100000\n"})
    assert system.quota(root) == float("inf")
    _write(root, {f"{folder}/cpu.cfs_quota_us": "200000\n"})
    assert system.quota(root) == 2.0


def test_the_system_tells_the_cpu(tmp_path: Path) -> None:
    root = _write(tmp_path, {"proc/cpuinfo": "processor : 0\nmodel name\t: Toy 1 @ 2 GHz\n"})
    assert system.cpu_model(root) == "Toy 1 @ 2 GHz"
    assert system.cpu_model(tmp_path / "nothing")


def test_cpus_without_affinity(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(system.os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(system.os, "cpu_count", lambda: 3)
    assert system.usable_cpus() == [0, 1, 2]
