"""What all tests share: golden texts, slow tests only on request, and no access outside buffers."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rooftile.core.errors import OutOfBounds

os.environ.setdefault("ROOFTILE_PROGRAMS", "0")  # programs of an earlier run would hide changes
GOLDEN = Path(__file__).parent / "golden"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write tests/golden anew")
    parser.addoption("--slow", action="store_true", help="run the tests marked slow as well")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--slow"):
        return
    for item in items:
        if "slow" in item.keywords:
            item.add_marker(pytest.mark.skip(reason="slow; run with --slow"))


@pytest.fixture(autouse=True)
def nothing_outside(request: pytest.FixtureRequest) -> Iterator[None]:
    """With ROOFTILE_BOUNDS=1 a test fails where checked code stopped, whatever it makes of errors.

    Tests of checked code itself have a fixture `checked` and are left alone.
    """
    if os.environ.get("ROOFTILE_BOUNDS") != "1" or "checked" in request.fixturenames:
        yield
        return
    stopped: list[object] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(OutOfBounds, "__init__", lambda self, *args: stopped.extend(args))
        yield
    assert not stopped


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """`golden(name, text)`: the text must equal tests/golden/NAME, or becomes it on request."""

    def check(name: str, text: str) -> None:
        path = GOLDEN / name
        if request.config.getoption("--update-golden"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        assert path.exists(), f"no golden text {name}: run pytest --update-golden and read it"
        assert text == path.read_text(encoding="utf-8"), f"differs from golden text {name}"

    return check
