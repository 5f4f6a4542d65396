"""Machines that are known without a probe: one TOML file each, with a source for each figure."""

from __future__ import annotations

from functools import lru_cache
from importlib import resources

from rooftile.core.errors import InvalidOption
from rooftile.machine.model import Machine


def preset(name: str) -> Machine:
    """The preset called `name`; InvalidOption lists the names."""
    known = presets()
    if name not in known:
        raise InvalidOption(f"no machine is called {name!r}; there are {', '.join(known)}")
    return known[name]


def presets() -> dict[str, Machine]:
    """Every preset by name, in order of names."""
    return dict(_presets())


@lru_cache(maxsize=1)
def _presets() -> dict[str, Machine]:
    found = {}
    folder = resources.files("rooftile.machine") / "presets"
    for file in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if file.name.endswith(".toml"):
            machine = Machine.from_toml(file.read_text(encoding="utf-8"), file.name)
            if machine.name != file.name.removesuffix(".toml"):
                raise InvalidOption(f"{file.name} calls its machine {machine.name!r}; use one name")
            found[machine.name] = machine
    return found
