"""The machine at hand, probed once and kept."""

from __future__ import annotations

import json
import os
from functools import lru_cache
from pathlib import Path

from rooftile.core.errors import InvalidOption
from rooftile.machine.model import Machine
from rooftile.machine.preset import preset
from rooftile.machine.probe import probe
from rooftile.machine.probe.system import core_count, cpu_model
from rooftile.native import cache_folder, host_target
from rooftile.native.files import write_atomic

CHOOSE = "ROOFTILE_MACHINE"
"""Environment variable that names a preset to plan for instead of the machine at hand."""


def current() -> Machine:
    """The preset that ROOFTILE_MACHINE names, else this machine, from disk or a quick probe.

    InvalidOption where ROOFTILE_MACHINE names no preset.
    """
    chosen = os.environ.get(CHOOSE)
    if chosen:
        try:
            return preset(chosen)
        except InvalidOption as error:
            raise InvalidOption(f"{CHOOSE}={chosen}: {error}") from error
    return _current(machine_file(), machine_key())


def keep(machine: Machine) -> bool:
    """Make `machine` what `current` returns here; False where the file cannot be written."""
    path, key = machine_file(), machine_key()
    kept = {**_load(path), key: json.loads(machine.to_json())}
    _current.cache_clear()
    return write_atomic(path, (json.dumps(kept, indent=1) + "\n").encode())


def machine_file() -> Path:
    """Where measured machines are kept."""
    return cache_folder() / "machine.json"


def machine_key() -> str:
    """What a measurement holds for: CPU, its cores in use, and the instruction set in use."""
    target = host_target()
    return f"{cpu_model()} | {core_count()} cores | {target.isa} | {target.cpu}"


@lru_cache(maxsize=4)
def _current(path: Path, key: str) -> Machine:
    record = _load(path).get(key)
    if record is not None:
        try:
            return Machine.from_record(record, str(path))
        except InvalidOption:  # written by another version: measure again
            pass
    machine = probe(quick=True)
    kept = {**_load(path), key: json.loads(machine.to_json())}
    write_atomic(path, (json.dumps(kept, indent=1) + "\n").encode())
    return machine


def _load(path: Path) -> dict[str, object]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
