"""The stages of a compilation against float64, and a stage that is broken on purpose."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import small_models

from rooftile import check
from rooftile.check import compilation
from rooftile.core.errors import InvalidInput, NotLowered


@pytest.mark.parametrize("name", small_models.models())
def test_small_models_are_within_the_bound(name: str) -> None:
    model = small_models.models()[name]
    report = check.stages(model, small_models.feeds_of(model))
    assert [stage.name for stage in report.stages] == ["simplify", "layout", "compiled"]
    assert report.first is None, str(report)
    simplify, layout, compiled = report.stages
    assert simplify.difference is not None and simplify.difference < 1e-6
    assert layout.difference is not None and layout.difference < 1e-6
    assert compiled.difference is not None and 0 < compiled.difference < 1e-5
    assert str(report).endswith("all within 1e-04")


def test_the_first_stage_that_is_wrong_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    model = small_models.elementwise()

    def broken(graph: Any, journal: Any) -> Any:
        constants = {name: array * np.float32(1.01) for name, array in graph.constants.items()}
        return graph.with_nodes(graph.nodes, constants)

    monkeypatch.setattr(compilation, "channels_last", broken)
    report = check.stages(model, small_models.feeds_of(model))
    assert report.first is not None and report.first.name == "layout"
    assert str(report).splitlines()[-1] == "the first beyond 1e-04 is layout"


def test_a_stage_that_fails_is_in_the_report(monkeypatch: pytest.MonkeyPatch) -> None:
    model = small_models.mlp()

    def failing(*arguments: Any) -> Any:
        raise NotLowered("no kernel for dot")

    monkeypatch.setattr(compilation, "compile_model", failing)
    report = check.stages(model, small_models.feeds_of(model))
    assert report.first == check.Stage("compiled", None, "NotLowered: no kernel for dot")
    assert "compiled: NotLowered: no kernel for dot" in str(report)


def test_feeds_must_fit() -> None:
    with pytest.raises(InvalidInput, match="input x is missing"):
        check.stages(small_models.mlp(), {})
