"""The node tests of ONNX: what was right stays right, and the rest is refused in clear words.

`survey.py --write` makes the list of verdicts. By default a sample is run, all with --slow.
"""

from __future__ import annotations

import pytest
from node_cases import EXPECTED, cases, judge

EVERY = 8
"""The default run takes each eighth case: some of every family."""

LINES = [line.split() for line in EXPECTED.read_text(encoding="utf-8").splitlines()]
RIGHT = [name for name, word, *_ in LINES if word == "right"]


def _sampled(names: list[str]) -> list[object]:
    return [
        name if number % EVERY == 0 else pytest.param(name, marks=pytest.mark.slow)
        for number, name in enumerate(names)
    ]


@pytest.mark.parametrize("name", _sampled(RIGHT))
def test_right(name: str) -> None:
    verdict = judge(cases()[name])
    assert verdict.word == "right", verdict.detail


@pytest.mark.parametrize(
    "part", [0, *(pytest.param(n, marks=pytest.mark.slow) for n in range(1, 8))]
)
def test_the_rest_is_refused_with_a_message(part: int) -> None:
    rest = sorted(set(cases()) - set(RIGHT))
    verdicts = {name: judge(cases()[name]) for name in rest[part::8]}
    bad = {name: v for name, v in verdicts.items() if v.word not in ("refused", "right")}
    assert not bad
    for name, verdict in verdicts.items():
        assert len(verdict.detail) > 30 or verdict.word == "right", name
