"""Random whole models give what float64 says; what differs is found and cut down to a node."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
import random_models
from model_values import Array
from random_models import difference, judge, made, reduced

import rooftile

COUNT = 40


@pytest.mark.parametrize("start", range(0, COUNT, 10))
def test_random_models(start: int) -> None:
    for seed in range(start, start + 10):
        verdict = judge(made(seed))
        assert verdict.word == "right", f"model {seed}: {verdict.detail}"
        assert not verdict.hosted, f"model {seed} is not native"


def test_models_of_a_number_are_the_same() -> None:
    first, second = made(7), made(7)
    assert first.model == second.model
    assert 10 <= len(first.model.graph.node) <= 34
    assert made(8).model != first.model


def test_small_differences_are_rounding_and_large_ones_are_not() -> None:
    outputs = made(3).outputs
    arrays = [value.runs[0].astype(value.dtype) for value in outputs]
    assert difference(outputs, arrays) == ""
    place = next(n for n, value in enumerate(outputs) if value.is_float)
    arrays[place] = arrays[place] * (1 + 1e-2)
    assert outputs[place].name in difference(outputs, arrays)


class WrongSession(rooftile.InferenceSession):
    """A session that adds 1 to all that a model with a Conv gives."""

    def __init__(self, content: bytes) -> None:
        super().__init__(content)
        self.wrong = b"Conv" in content

    def run(self, names: Any, feeds: Mapping[str, Any], options: Any = None) -> list[Array]:
        found = super().run(names, feeds)
        return [x + 1 for x in found] if self.wrong else found


def test_a_fault_is_cut_down_to_its_node(monkeypatch: pytest.MonkeyPatch) -> None:
    seed = next(n for n in range(40) if any(x.op_type == "Conv" for x in made(n).model.graph.node))
    monkeypatch.setattr(random_models.rooftile, "InferenceSession", WrongSession)
    found = made(seed)
    assert judge(found).word == "wrong"
    small = reduced(found)
    assert [node.op_type for node in small.model.graph.node].count("Conv") == 1
    assert len(small.model.graph.node) < len(found.model.graph.node)
