"""What a session of rooftile tells of its programs, as plain values that cross a pipe."""

from __future__ import annotations

from typing import Any

from rooftile.ir.program import HostCall
from rooftile.report import limit
from rooftile.report.facts import work_of
from rooftile.report.memory import memory_of


def facts_of(session: Any) -> dict[str, Any]:
    """`session` has `programs` and `decisions`. The keys are those of a row of results.

    `roof` is the limit of the direct algorithm on one thread, which is what kernels run on.
    """
    from rooftile.machine import current

    programs, decisions = session.programs, session.decisions
    compiled: set[str] = set()
    host = {d.subject[0]: str(d.facts.get("op", "?")) for d in decisions if d.stage == "host"}
    for program in programs:
        for launch in program.launches:
            compiled.update(launch.facts.origin)
        for step in program.steps:
            if isinstance(step, HostCall):
                host[", ".join(step.origin) or step.function] = step.function
    compiled -= host.keys()
    every = len(compiled) + len(host)
    machine = current()
    flops, nbytes = work_of(programs, decisions)
    memory = memory_of(programs)
    return {
        "kernels": sum(len(program.launches) for program in programs),
        "host_ops": {op: list(host.values()).count(op) for op in sorted(set(host.values()))},
        "compiled_share": len(compiled) / every if every else 1.0,
        "roof": {
            "flops": sum(flops.values()),
            "bytes": nbytes,
            "limit_ms": limit(flops, {machine.level_of(nbytes): nbytes}, machine).seconds * 1e3,
        },
        "memory": {
            "arena_bytes": memory.arena_bytes,
            "lower_bound_bytes": memory.lower_bound_bytes,
            "no_reuse_bytes": memory.no_reuse_bytes,
        },
    }
