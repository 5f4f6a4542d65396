"""What LLVM says of this CPU, kept in a file: starting a program needs it, but not LLVM."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

from rooftile.native.files import cache_folder, write_atomic

_CPUINFO = Path("/proc/cpuinfo")
_DECIDING = (
    "vendor_id",
    "cpu family",
    "model",
    "model name",
    "stepping",
    "microcode",
    "flags",
    "CPU implementer",
    "CPU architecture",
    "CPU variant",
    "CPU part",
    "CPU revision",
    "Features",
)
"""The lines of /proc/cpuinfo that say which CPU it is; others change from moment to moment."""
_FIRST_BYTES = 1 << 14
"""Holds all that is said of one CPU; the kernel takes its time to list those of a large machine."""

Description = tuple[str, str, str]
"""Triple, name of the CPU, and features, as LLVM spells them."""


def described_host() -> Description:
    """This process's CPU: from the file where there is one for it, else from LLVM."""
    known = _fingerprint()
    path = cache_folder() / f"host-{known}.json" if known else None
    found = _read(path) if path else None
    if found is None:
        found = ask_llvm()
        if path:
            write_atomic(path, json.dumps([*found, _digest(found)]).encode())
    return found


def ask_llvm() -> Description:
    """What LLVM finds out itself."""
    import llvmlite.binding as llvm

    features = llvm.get_host_cpu_features().flatten()
    return llvm.get_process_triple(), llvm.get_host_cpu_name(), features


def llvm_stamp() -> str:
    """Tells installations of LLVM apart, without loading it: where it lies, since when."""
    from importlib.util import find_spec

    spec = find_spec("llvmlite")
    origin = spec.origin if spec else None
    return f"{origin} {os.stat(origin).st_mtime_ns}" if origin else "none"


def _fingerprint() -> str | None:
    """Names this CPU under this kernel and LLVM; None where the system does not tell."""
    try:
        with open(_CPUINFO, "rb") as file:
            first = file.read(_FIRST_BYTES).decode(errors="replace").split("\n\n")[0]
    except OSError:
        return None
    lines = [line for line in first.split("\n") if line.split("\t")[0].strip() in _DECIDING]
    system = os.uname()
    facts = "\n".join((*lines, system.release, system.machine, llvm_stamp()))
    return hashlib.sha256(facts.encode()).hexdigest()[:32]


def _read(path: Path) -> Description | None:
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None
    if not isinstance(found, list) or [type(item) for item in found] != [str] * 4:
        return None
    triple, cpu, features, digest = found
    return (triple, cpu, features) if digest == _digest((triple, cpu, features)) else None


def _digest(found: Description) -> str:
    """Tells a damaged file: features that are not there would end the process."""
    return hashlib.sha256("\n".join(found).encode()).hexdigest()
