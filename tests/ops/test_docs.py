"""The code of docs/add-an-op.md runs as it stands."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from rooftile.ops import OPS

PAGE = Path(__file__).parents[2] / "docs" / "add-an-op.md"


def test_add_an_op() -> None:
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) == 2
    assert "reciprocal" not in OPS
    try:
        for block in blocks:
            exec(compile(block, str(PAGE), "exec"), {"__name__": "page"})
        assert OPS["reciprocal"].reference({}, [np.array([4.0])])[0] == 0.25
    finally:
        OPS.pop("reciprocal", None)
