"""What the operating system tells: the CPU's name, cores that may be used, sizes of caches."""

from __future__ import annotations

import math
import os
import platform
import re
from pathlib import Path

import llvmlite.binding as llvm

_ROOT = Path("/")
_ASSUMED = {"l1": 32 << 10, "l2": 1 << 20, "l3": 8 << 20}
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def cpu_model(root: Path = _ROOT) -> str:
    """The CPU's marketing name, or LLVM's name for it."""
    for line in _read(root / "proc/cpuinfo").splitlines():
        key, _, value = line.partition(":")
        if key.strip() == "model name" and value.strip():
            return value.strip()
    name: str = llvm.get_host_cpu_name()
    return name if name != "generic" else platform.machine()


def usable_cpus() -> list[int]:
    """Numbers of the CPUs that this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


def core_count(root: Path = _ROOT) -> int:
    """Physical cores that this process may use, within its control group's quota."""
    cores = set()
    for cpu in usable_cpus():
        siblings = root / f"sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list"
        cores.add(_read(siblings).strip() or str(cpu))
    return max(1, math.ceil(min(len(cores), quota(root))))


def quota(root: Path = _ROOT) -> float:
    """CPUs' worth of time that the control groups of this process may use; inf without a limit.

    A group is bound by those above it as well. In a container its own group is often the topmost
    that it sees, so that one is looked at whatever the name.
    """
    least = math.inf
    for line in ["0::/", *_read(root / "proc/self/cgroup").splitlines()]:
        number, _, rest = line.partition(":")
        controllers, _, name = rest.partition(":")
        top = root / "sys/fs/cgroup"
        if number != "0":
            if "cpu" not in controllers.split(","):
                continue
            top /= controllers
        parts = [part for part in name.split("/") if part not in ("", "..")]
        for count in range(len(parts) + 1):
            least = min(least, _limit(top.joinpath(*parts[:count])))
    return least


def _limit(group: Path) -> float:
    """The quota of one control group, of the second version or the first."""
    allowed, _, period = _read(group / "cpu.max").strip().partition(" ")
    if not allowed:
        allowed = _read(group / "cpu.cfs_quota_us").strip()
        period = _read(group / "cpu.cfs_period_us").strip()
    fits = allowed.isdigit() and period.isdigit() and int(period) > 0
    return int(allowed) / int(period) if fits else math.inf


def cache_sizes(root: Path = _ROOT) -> tuple[dict[str, int], bool]:
    """Bytes of one instance of l1 (data), l2 and l3, and whether the system told them."""
    found: dict[str, int] = {}
    cpu = usable_cpus()[0]
    for folder in sorted((root / f"sys/devices/system/cpu/cpu{cpu}/cache").glob("index*")):
        size = re.fullmatch(r"(\d+)([KMG]?)", _read(folder / "size").strip())
        level = "l" + _read(folder / "level").strip()
        kind = _read(folder / "type").strip()
        if size and level in _ASSUMED and kind in ("Data", "Unified"):
            found[level] = int(size[1]) * _UNITS[size[2]]
    if "l1" not in found:
        return dict(_ASSUMED), False
    return {level: found[level] for level in ("l1", "l2", "l3") if level in found}, True


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
