"""The machine record: levels, rates, text forms, and messages for broken records."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from typing import Any

import pytest

from rooftile.core.cost import Cost
from rooftile.core.errors import InvalidOption
from rooftile.machine import Machine

MACHINE = Machine(
    name="toy",
    cpu="Toy 1",
    isa="avx2",
    cores=4,
    vector_bytes=32,
    registers=16,
    peak={"f32": 100.0, "f64": 50.0, "i8": 400.0},
    bandwidth={"l1": 80.0, "l2": 40.0, "dram": 10.0},
    cache={"l1": 1000, "l2": 20_000},
    launch_s=0.5,
    barrier_s=0.25,
    wake_s=2.0,
    tile_call_s=0.125,
    overlap={"dot": 0.0, "elementwise": 1.0},
    source="invented",
    bandwidth_all={"dram": 15.0},
)


@pytest.mark.parametrize(
    ("nbytes", "level"),
    [(0, "l1"), (1000, "l1"), (1001, "l2"), (20_000, "l2"), (20_001, "dram"), (1e12, "dram")],
)
def test_level_of(nbytes: float, level: str) -> None:
    assert MACHINE.level_of(nbytes) == level


def test_levels_skip_what_is_not_there() -> None:
    assert MACHINE.levels == ("l1", "l2", "dram")


@pytest.mark.parametrize(
    ("dtype", "peak"),
    [("f32", 100), ("f64", 50), ("i8", 400), ("u8", 400), ("bf16", 100), ("i64", 50), ("i32", 100)],
)
def test_a_dtype_without_a_rate_runs_as_a_wider_one(dtype: str, peak: float) -> None:
    assert MACHINE.peak_of(dtype) == peak
    assert MACHINE.peak_of(dtype, threads=3) == 3 * peak
    assert MACHINE.peak_of(dtype, threads=9) == 4 * peak


def test_bandwidth_of_threads_is_bounded_where_a_level_is_shared() -> None:
    assert MACHINE.bandwidth_of("dram") == 10
    assert MACHINE.bandwidth_of("dram", threads=4) == 15
    assert MACHINE.bandwidth_of("l2", threads=4) == 160
    with pytest.raises(InvalidOption, match=r"toy has no l3; it has l1, l2, dram"):
        MACHINE.bandwidth_of("l3")


def test_time_overlaps_by_the_kind_of_work() -> None:
    cost = Cost({"f32": 300, "i8": 400}, read=10, written=10)
    assert MACHINE.time(cost, "dram") == 4.0
    assert MACHINE.time(cost, "dram", work="elementwise") == 6.0
    assert MACHINE.time(cost, "l1", threads=2) == 2.0


def test_json_round_trip() -> None:
    assert Machine.from_json(MACHINE.to_json()) == MACHINE


def test_toml() -> None:
    lines = []
    tables = []
    for key, value in asdict(MACHINE).items():
        if isinstance(value, dict):
            tables.append(f"[{key}]\n" + "\n".join(f"{k} = {v}" for k, v in value.items()))
        else:
            lines.append(f"{key} = {json.dumps(value)}")
    assert Machine.from_toml("\n".join([*lines, *tables])) == MACHINE


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"cores": 0}, r"machine 'toy': cores must be a positive number, not 0"),
        ({"cores": True}, r"cores must be a positive number, not True"),
        ({"wake_s": "soon"}, r"wake_s must be a positive number, not 'soon'"),
        ({"launch_s": float("inf")}, r"launch_s must be a positive number, not inf"),
        ({"isa": 3}, r"machine 'toy': isa must be text"),
        ({"peak": {"f64": 1.0}}, r"peak lacks f32"),
        ({"peak": {"f32": 1.0, "float32": 1.0}}, r"peak has no key float32; it may have f64, f32"),
        ({"peak": 5}, r"peak must be a table"),
        ({"bandwidth": {"l1": 1.0}}, r"bandwidth lacks dram"),
        ({"cache": {"l1": 1000}}, r"cache lacks l2"),
        ({"cache": {"l1": 1000, "l2": -1}}, r"cache.l2 must be a positive number, not -1"),
        ({"overlap": {"dot": 0}}, r"overlap lacks elementwise"),
        ({"bandwidth_all": {"l4": 1.0}}, r"bandwidth_all has no key l4; it may have l1, l2, l3"),
    ],
)
def test_a_broken_record_says_where(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidOption, match=message):
        replace(MACHINE, **change)


def test_missing_and_unknown_keys() -> None:
    record = asdict(MACHINE)
    del record["cpu"], record["cores"], record["bandwidth_all"]
    with pytest.raises(InvalidOption, match=r"my.toml lacks cores, cpu"):
        Machine.from_record(record, "my.toml")
    odd = {**asdict(MACHINE), "colour": "red"}
    with pytest.raises(InvalidOption, match=r"my.toml has unknown keys colour; remove them"):
        Machine.from_record(odd, "my.toml")


def test_text_that_is_no_record() -> None:
    with pytest.raises(InvalidOption, match=r"this is not a machine in JSON"):
        Machine.from_json("{")
    with pytest.raises(InvalidOption, match=r"must be a table of keys and values"):
        Machine.from_json("[]")
    with pytest.raises(InvalidOption, match=r"toy.toml is not TOML"):
        Machine.from_toml("name = ", "toy.toml")
