"""docs/coverage.md says what the registries and the list of node cases say."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import onnx
import pytest

from rooftile.frontends.onnx.registry import known
from rooftile.host import BODIES

SCRIPT = Path(__file__).parents[2] / "tools" / "coverage.py"


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("coverage_tool", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def test_the_page_is_not_stale(tool: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    if f"| onnx | {onnx.__version__} |" not in tool.PAGE.read_text(encoding="utf-8"):
        pytest.skip("the page was made with another onnx, whose schemas differ")
    assert tool.main(["--check"]) == 0, capsys.readouterr().err


def test_a_stale_page_fails(
    tool: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tool, "ROOT", tmp_path)
    monkeypatch.setattr(tool, "PAGE", tmp_path / "coverage.md")
    assert tool.main(["--check"]) == 1
    assert tool.main([]) == 0
    assert tool.main(["--check"]) == 0
    monkeypatch.setattr(tool, "rows", list)
    assert tool.main(["--check"]) == 1


def test_every_op_that_is_read_is_listed(tool: ModuleType) -> None:
    found = {(row.domain, row.op): row for row in tool.rows()}
    assert {*known(), *BODIES} <= set(found)
    hows = {key: row.how for key, row in found.items()}
    assert hows["", "Conv"] == tool.COMPILED and not found["", "Conv"].why
    assert hows["", "Attention"] == tool.BODY
    assert hows["", "Upsample"] == tool.COMPILED and found["", "Upsample"].deprecated
    assert hows["", "SequenceMap"] == tool.HOST
    assert hows["", "Cast"] == tool.COMPILED and "strings" in found["", "Cast"].why
    assert hows["", "NonZero"] == tool.HOST
    assert hows["ai.onnx.preview.training", "Gradient"] == tool.MISSING
    assert hows["com.microsoft", "FusedConv"] == tool.COMPILED


def test_most_node_cases_need_no_host(tool: ModuleType) -> None:
    cases = tool.cases_of(tool.CASES.read_text(encoding="utf-8"))
    right = [case for case in cases if case.right]
    native = [case for case in right if not case.hosted]
    assert len(right) >= 0.99 * len(cases)
    assert len(native) >= 0.92 * len(right)
    readme = (tool.ROOT / "README.md").read_text(encoding="utf-8")
    right_of_them = "" if len(right) == len(cases) else f" {len(right):,}"
    assert f"{len(cases):,} node cases{right_of_them} are right" in readme
