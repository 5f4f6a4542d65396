"""The rule that docs/add-a-fusion-rule.md writes works as it says."""

from __future__ import annotations

import re
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from planning import plan
from sketch import Sketch

from rooftile.plan.fusion import planner

GUIDE = Path(__file__).parents[2] / "docs" / "add-a-fusion-rule.md"


def test_the_guide_s_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    [snippet] = re.findall(r"```python\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)
    names: dict[str, Any] = {}
    exec(compile(dedent(snippet), str(GUIDE), "exec", dont_inherit=True), names)
    monkeypatch.setattr(planner, "RULES", (names["RULE"], *planner.RULES))
    s = Sketch()
    total = s("reduce", s.input(40, 50), op="sum", dims=(1,))
    planned = plan(s.graph(s("cast", total, dtype="f64")))
    [entry] = planned.ledger
    assert (entry.verdict, entry.facts["rule"]) == ("taken", "cast of a reduction")
