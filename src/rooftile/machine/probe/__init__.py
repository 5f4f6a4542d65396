"""The probe: roofs of the machine at hand, measured with micro-kernels of its own."""

from __future__ import annotations

import re

from rooftile.machine.model import Machine
from rooftile.machine.probe.bandwidth import effective_sizes, measure_bandwidth
from rooftile.machine.probe.calls import (
    ASSUMED_BARRIER_S,
    measure_barrier,
    measure_calls,
    measure_wake,
)
from rooftile.machine.probe.peak import PeakKernel, measure_peaks, peak_flops, peak_kernel
from rooftile.machine.probe.system import cache_sizes, core_count, cpu_model
from rooftile.machine.probe.timing import FULL, QUICK
from rooftile.native import host_target

__all__ = ["OVERLAP", "PeakKernel", "peak_flops", "peak_kernel", "probe"]

OVERLAP = {"dot": 0.05, "elementwise": 1.0}
"""Alpha by kind of work, fitted on measured kernels; not probed."""


def probe(quick: bool = False) -> Machine:
    """Measure this machine: about 0.3 s where quick, else some seconds.

    The full probe also sweeps working sets and lowers cache sizes to the part that is really
    there. The target is `host_target()`, so ROOFTILE_TARGET lowers the roofs as well.
    """
    target = host_target()
    effort = QUICK if quick else FULL
    cores = core_count()
    cache, told = cache_sizes()
    alone, together = measure_bandwidth(target, cache, cores, effort)
    nominal = cache
    if not quick:
        cache = effective_sizes(target, cache, alone, effort)
    launch, tile_call = measure_calls(target, effort)
    cpu = cpu_model()
    return Machine(
        name=re.sub(r"[^a-z0-9]+", "-", f"{cpu} {target.isa}".lower()).strip("-"),
        cpu=cpu,
        isa=target.isa,
        cores=cores,
        vector_bytes=target.vector_bytes,
        registers=target.registers,
        peak=measure_peaks(target, effort),
        bandwidth=alone,
        cache=cache,
        launch_s=launch,
        barrier_s=measure_barrier(target) if cores > 1 else ASSUMED_BARRIER_S,
        wake_s=measure_wake(),
        tile_call_s=tile_call,
        overlap=dict(OVERLAP),
        source=_source(quick, told, cache == nominal),
        bandwidth_all=together,
    )


def _source(quick: bool, told: bool, whole: bool) -> str:
    measured = "measured by the quick probe" if quick else "measured by the full probe"
    sizes = "cache sizes from the system" if told else "cache sizes assumed"
    swept = "" if whole else ", lowered to what the sweep found"
    return f"{measured}; {sizes}{swept}; overlap as fitted on measured kernels"
