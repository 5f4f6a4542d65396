"""Tensors of no elements: what is known of them now, and what nothing can be picked from."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sketch import Sketch, ops

from rooftile.core.errors import InvalidModel
from rooftile.passes import simplify
from rooftile.passes.empty import fold_empty

PICKS: tuple[tuple[str, tuple[int, ...], tuple[int, ...], dict[str, Any]], ...] = (
    ("gather", (0, 4), (3,), {"axis": 0}),
    ("gather", (4, 0), (3,), {"axis": 1}),
    ("gather_elements", (0, 4), (2, 4), {"axis": 0}),
    ("gather_nd", (0, 4), (2, 1), {"batch": 0}),
)


@pytest.mark.parametrize(("op", "shape", "places", "attributes"), PICKS)
def test_nothing_is_picked_from_a_tensor_without_elements(
    op: str, shape: tuple[int, ...], places: tuple[int, ...], attributes: dict[str, Any]
) -> None:
    """A kernel would read at 0 where there is no element, whatever it makes of the index."""
    s = Sketch()
    graph = s.graph(s(op, s.input(*shape), s.input(*places, dtype="i64"), **attributes))
    message = rf"'{op}0': picks from \[{shape[0]}, {shape[1]}\], which has no element; check the"
    with pytest.raises(InvalidModel, match=message):
        simplify(graph)


def test_picking_nothing_is_right() -> None:
    s = Sketch()
    graph = s.graph(s("gather", s.input(0, 4), s.input(0, dtype="i64"), axis=0))
    folded = fold_empty(graph)
    assert ops(folded) == ["reshape"]
    [found] = folded.constants.values()
    assert found.shape == (0, 4) and found.dtype == np.float32
