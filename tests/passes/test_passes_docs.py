"""The pass that docs/add-a-pass.md writes works as it says."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from sketch import Sketch, applied, ops, refused

GUIDE = Path(__file__).parents[2] / "docs" / "add-a-pass.md"


def test_the_guide_s_pass() -> None:
    [snippet] = re.findall(r"```python\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)
    names: dict[str, Any] = {}
    exec(compile(snippet, str(GUIDE), "exec", flags=0, dont_inherit=True), names)
    run = names["drop_double_negation"]
    s = Sketch()
    x = s.input(2, 3)
    graph = s.graph(s("exp", s("neg", s("neg", x))))
    assert ops(applied(run, graph)) == ["exp"]
    s = Sketch()
    refused(run, s.graph(s("neg", s("exp", s("neg", s.input(2, 3))))))
