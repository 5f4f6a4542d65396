"""The version of the package."""

from __future__ import annotations

import pytest

import rooftile as rt
from rooftile.core import version as module


def test_a_tree_that_is_not_installed_has_a_version_too(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(_: str) -> str:
        raise module.metadata.PackageNotFoundError

    assert rt.__version__ == rt.get_version_string() == module.version()
    monkeypatch.setattr(module.metadata, "version", missing)
    module.version.cache_clear()
    assert module.version() == "unknown"
    module.version.cache_clear()
