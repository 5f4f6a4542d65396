"""The machine at hand: kept by key, chosen by name, tolerant of what is on disk."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from rooftile.core.errors import InvalidOption
from rooftile.machine import Machine, current, preset
from rooftile.machine import current as current_function
from rooftile.machine.current import keep, machine_file, machine_key

MODULE = current_function.__globals__
PROBED = replace(preset("zen4-server"), name="probed")


@pytest.fixture(autouse=True)
def probes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Calls of a pretended probe, with a cache folder of the test's own."""
    asked: list[bool] = []

    def pretend(quick: bool = False) -> Machine:
        asked.append(quick)
        return PROBED

    monkeypatch.setitem(MODULE, "probe", pretend)
    monkeypatch.setenv("ROOFTILE_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("ROOFTILE_MACHINE", raising=False)
    monkeypatch.delenv("ROOFTILE_TARGET", raising=False)
    MODULE["_current"].cache_clear()
    yield asked
    MODULE["_current"].cache_clear()


def _forget() -> None:
    MODULE["_current"].cache_clear()


def test_it_probes_once_and_keeps_the_record(probes: list[bool]) -> None:
    assert current() == PROBED
    assert current() == PROBED
    _forget()
    assert current() == PROBED
    assert probes == [True]
    assert list(json.loads(machine_file().read_text())) == [machine_key()]


def test_another_key_is_measured_and_both_are_kept(
    probes: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    current()
    monkeypatch.setitem(MODULE, "machine_key", lambda: "another")
    current()
    assert probes == [True, True]
    assert set(json.loads(machine_file().read_text())) == {machine_key(), "another"}


def test_the_key_follows_the_forced_target(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = machine_key()
    monkeypatch.setenv("ROOFTILE_TARGET", "sse4.2")
    try:
        assert machine_key() != plain
    except InvalidOption:
        pytest.skip("not an x86-64 host")


@pytest.mark.parametrize("text", ["{", "[]", '{"KEY": {"name": "old"}}', '{"KEY": 5}'])
def test_a_file_that_cannot_be_used_is_measured_anew(probes: list[bool], text: str) -> None:
    machine_file().parent.mkdir(parents=True)
    machine_file().write_text(text.replace("KEY", machine_key()))
    assert current() == PROBED
    assert probes == [True]
    _forget()
    current()
    assert probes == [True]


def test_a_folder_that_cannot_be_written(probes: list[bool], tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("in the way")
    assert current() == PROBED
    assert current() == PROBED
    assert probes == [True]
    assert not keep(PROBED)


def test_keep_replaces_what_current_returns(probes: list[bool]) -> None:
    current()
    better = replace(PROBED, name="better")
    assert keep(better)
    assert current() == better
    assert probes == [True]


def test_a_preset_by_name(probes: list[bool], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROOFTILE_MACHINE", "raspberry-pi-5")
    assert current() == preset("raspberry-pi-5")
    assert probes == []


def test_a_preset_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROOFTILE_MACHINE", "abacus")
    with pytest.raises(InvalidOption, match=r"ROOFTILE_MACHINE=abacus: no machine is called"):
        current()
