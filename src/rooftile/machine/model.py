"""What the planner, the scheduler and the report know of a machine: rates, sizes and costs."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from rooftile.core.cost import Cost
from rooftile.core.dtype import DTYPES, DType
from rooftile.core.errors import InvalidOption

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

LEVELS = ("l1", "l2", "l3", "dram")
"""Levels of memory, the nearest first; a machine may lack l2 or l3."""

WORK = ("dot", "elementwise")
"""Kinds of work in `Machine.overlap`: dot and conv, or everything else."""

_STAND_INS: dict[DType, tuple[DType, ...]] = {
    "i8": ("i8", "f32"),
    "u8": ("i8", "f32"),
    "f16": ("f16", "f32"),
    "bf16": ("bf16", "f32"),
    "f64": ("f64",),
    "i64": ("f64", "f32"),
    "u64": ("f64", "f32"),
}


@dataclass(frozen=True)
class Machine:
    """Roofs of one machine. Rates are of one core, read bandwidth in bytes/s, times in seconds.

    `peak` is flop/s by dtype (a multiply-add counts two). `bandwidth_all` is what all cores
    together read. `cache` is bytes of one instance of l1, l2, l3. `launch_s` is a kernel call in a
    native program, `barrier_s` the meeting of all threads, `wake_s` a parked helper to running,
    `tile_call_s` a call of a microkernel. `overlap` is alpha, by kind of work, in
    `time = max + alpha * (sum - max)`: 1 where nothing hides behind the longest part.
    """

    name: str
    cpu: str
    isa: str
    cores: int
    vector_bytes: int
    registers: int
    peak: Mapping[DType, float]
    bandwidth: Mapping[str, float]
    cache: Mapping[str, int]
    launch_s: float
    barrier_s: float
    wake_s: float
    tile_call_s: float
    overlap: Mapping[str, float]
    source: str
    bandwidth_all: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _check(self)

    @property
    def levels(self) -> tuple[str, ...]:
        """The levels of memory that this machine has, the nearest first."""
        return tuple(level for level in LEVELS if level in self.bandwidth)

    def level_of(self, nbytes: float) -> str:
        """The nearest level that holds a working set of `nbytes`."""
        for level in self.levels[:-1]:
            if nbytes <= self.cache[level]:
                return level
        return self.levels[-1]

    def peak_of(self, dtype: DType, threads: int = 1) -> float:
        """flop/s of `threads` cores; a dtype without a rate of its own runs as a wider one."""
        for candidate in (dtype, *_STAND_INS.get(dtype, ()), "f32"):
            if candidate in self.peak:
                return self.peak[candidate] * min(threads, self.cores)
        raise AssertionError("a machine has a peak for f32")

    def bandwidth_of(self, level: str, threads: int = 1) -> float:
        """bytes/s that `threads` cores read from `level` together."""
        if level not in self.bandwidth:
            raise InvalidOption(f"{self.name} has no {level}; it has {', '.join(self.levels)}")
        alone = self.bandwidth[level] * min(threads, self.cores)
        return min(alone, self.bandwidth_all.get(level, alone))

    def time(self, cost: Cost, level: str, threads: int = 1, work: str = "dot") -> float:
        """Seconds of one pass whose bytes all come from `level`, without launches."""
        compute = sum(count / self.peak_of(dtype, threads) for dtype, count in cost.flops.items())
        traffic = cost.nbytes / self.bandwidth_of(level, threads)
        return max(compute, traffic) + self.overlap[work] * min(compute, traffic)

    def to_json(self) -> str:
        """The record as JSON text; `from_json` reads it back."""
        return json.dumps(asdict(self), indent=1)

    @classmethod
    def from_json(cls, text: str) -> Machine:
        """Read what `to_json` wrote; InvalidOption for anything else."""
        try:
            record = json.loads(text)
        except ValueError as error:
            raise InvalidOption(f"this is not a machine in JSON: {error}") from error
        return cls.from_record(record, "a machine in JSON")

    @classmethod
    def from_toml(cls, text: str, where: str = "a machine in TOML") -> Machine:
        """Read a preset; InvalidOption names `where` and the key that is wrong."""
        try:
            record = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise InvalidOption(f"{where} is not TOML: {error}") from error
        return cls.from_record(record, where)

    @classmethod
    def from_record(cls, record: Any, where: str) -> Machine:
        """A machine from a mapping of its fields; InvalidOption names what is missing or odd."""
        if not isinstance(record, dict):
            raise InvalidOption(f"{where} must be a table of keys and values")
        known = {entry.name for entry in fields(cls)}
        missing = sorted(known - {"bandwidth_all"} - set(record))
        if missing:
            raise InvalidOption(f"{where} lacks {', '.join(missing)}")
        odd = sorted(set(record) - known)
        if odd:
            raise InvalidOption(f"{where} has unknown keys {', '.join(odd)}; remove them")
        return cls(**record)


def _check(machine: Machine) -> None:
    where = f"machine {machine.name!r}"
    for key in ("name", "cpu", "isa", "source"):
        if not isinstance(getattr(machine, key), str):
            raise InvalidOption(f"{where}: {key} must be text")
    for key in ("cores", "vector_bytes", "registers"):
        _positive(getattr(machine, key), f"{where}: {key}")
    for key in ("launch_s", "barrier_s", "wake_s", "tile_call_s"):
        _positive(getattr(machine, key), f"{where}: {key}")
    _table(machine.peak, tuple(DTYPES), ("f32",), f"{where}: peak")
    _table(machine.bandwidth, LEVELS, ("l1", "dram"), f"{where}: bandwidth")
    _table(machine.bandwidth_all, LEVELS, (), f"{where}: bandwidth_all")
    cached = tuple(level for level in machine.bandwidth if level != "dram")
    _table(machine.cache, LEVELS[:-1], cached, f"{where}: cache")
    _table(machine.overlap, WORK, WORK, f"{where}: overlap", zero=True)


def _table(
    table: Any, allowed: tuple[str, ...], needed: tuple[str, ...], where: str, zero: bool = False
) -> None:
    if not isinstance(table, Mapping):
        raise InvalidOption(f"{where} must be a table")
    for key in needed:
        if key not in table:
            raise InvalidOption(f"{where} lacks {key}")
    for key, value in table.items():
        if key not in allowed:
            raise InvalidOption(f"{where} has no key {key}; it may have {', '.join(allowed)}")
        if not (zero and value == 0):
            _positive(value, f"{where}.{key}")


def _positive(value: Any, where: str) -> None:
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not number or not 0 < value < float("inf"):
        raise InvalidOption(f"{where} must be a positive number, not {value!r}")
