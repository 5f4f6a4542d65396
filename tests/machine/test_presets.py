"""Every preset against the rules of docs/add-a-machine.md."""

from __future__ import annotations

from importlib import resources

import pytest

from rooftile.core.errors import InvalidOption
from rooftile.machine import preset, presets
from rooftile.native import cross_target

NAMES = tuple(presets())


def test_the_machines_that_ship() -> None:
    wanted = {"zen4-server", "zen5-server", "apple-m1", "raspberry-pi-5", "nvidia-h200"}
    assert wanted <= set(NAMES)
    assert list(NAMES) == sorted(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_levels_get_slower_and_larger(name: str) -> None:
    machine = preset(name)
    rates = [machine.bandwidth[level] for level in machine.levels]
    sizes = [machine.cache[level] for level in machine.levels[:-1]]
    assert rates == sorted(rates, reverse=True)
    assert sizes == sorted(sizes)


@pytest.mark.parametrize("name", NAMES)
def test_all_cores_read_no_less_than_one_and_no_more_than_the_sum(name: str) -> None:
    machine = preset(name)
    for level, rate in machine.bandwidth_all.items():
        assert machine.bandwidth[level] <= rate <= machine.bandwidth[level] * machine.cores


@pytest.mark.parametrize("name", NAMES)
def test_narrower_types_are_no_slower(name: str) -> None:
    machine = preset(name)
    rates = [machine.peak_of(dtype) for dtype in ("f64", "f32", "bf16", "i8")]
    assert rates == sorted(rates)


@pytest.mark.parametrize("name", NAMES)
def test_every_figure_says_where_it_comes_from(name: str) -> None:
    text = (resources.files("rooftile.machine") / "presets" / f"{name}.toml").read_text("utf-8")
    sourced = False
    for line in text.splitlines():
        if line.startswith("["):
            sourced = "#" in line
        elif "=" in line and line.split("=")[0].strip() not in ("name", "cpu", "isa", "source"):
            assert "#" in line or sourced, f"{name}.toml: {line} has no source"


def test_one_table_is_not_shared() -> None:
    presets().clear()
    assert tuple(presets()) == NAMES


def test_vector_widths_agree_with_targets() -> None:
    target = cross_target("aarch64-macos")
    machine = preset("apple-m1")
    assert (machine.vector_bytes, machine.registers) == (target.vector_bytes, target.registers)
    assert machine.isa == target.isa


def test_an_unknown_preset_lists_the_names() -> None:
    with pytest.raises(InvalidOption, match=r"no machine is called 'cray-1'; there are apple-m1, "):
        preset("cray-1")
