"""Scales and shifts: what is folded, and what would not be right to fold."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sketch import Sketch, applied, normal, ops, refused

from rooftile.ir.graph import Graph, Value
from rooftile.passes import simplify
from rooftile.passes.affine import fold_affine


def folded(graph: Graph) -> Graph:
    return applied(fold_affine, graph, rtol=1e-5)


def test_quotients_and_differences() -> None:
    s = Sketch()
    x = s.input(2, 3)
    graph = folded(s.graph(s("div", x, 3.0), s("sub", x, 3.0)))
    assert ops(graph) == ["mul", "add"]


@pytest.mark.parametrize("divisor", [0.0, np.inf, 1e-45, 3e38])
def test_quotients_without_a_sound_inverse(divisor: float) -> None:
    s = Sketch()
    refused(fold_affine, s.graph(s("div", s.input(2, 3), divisor)))


def test_integers_and_constants_on_the_left_stay() -> None:
    s = Sketch()
    x, n = s.input(2, 3), s.input(2, 3, dtype="i32")
    refused(
        fold_affine,
        s.graph(s("div", n, 3), s("div", s.constant([[1.0]]), x), s("sub", s.constant([[1.0]]), x)),
    )


def test_chains() -> None:
    s = Sketch()
    x = s.input(2, 3)
    y = s("add", s("add", x, 1.0), [[1.0, 2.0, 3.0]])
    z = s("mul", s("mul", x, [[1.0, 2.0, 3.0]]), 3.0)
    assert ops(folded(s.graph(y, z))) == ["add", "mul"]


def test_chains_that_stay() -> None:
    s = Sketch()
    x = s.input(2, 3)
    used = s("add", x, 1.0)
    twice = s("mul", s("add", used, 2.0), used)
    outer = s("add", s("add", x, normal(1, 3)), normal(2, 1))
    small = s("mul", s("mul", x, 1e-30), 1e-30)
    refused(fold_affine, s.graph(twice, outer, small))
    s = Sketch()
    refused(fold_affine, s.graph(s("mul", s("mul", s.input(2, 3), 1e30), 1e30)))


def layer(kind: str, s: Sketch) -> Value:
    if kind == "conv":
        return s.conv(s.input(1, 4, 5, 6), 3, 2, 4)
    if kind == "depthwise":
        return s.conv(s.input(1, 4, 5, 6), 3, 3, 6, groups=6)
    if kind == "dot":
        return s.dot(s.input(2, 3, 5), s.constant(normal(5, 4)))
    return s("dot", s.constant(normal(4, 5)), s.input(5, 2), **CONTRACT)


CONTRACT: dict[str, Any] = {
    "lhs_contract": (1,),
    "rhs_contract": (0,),
    "lhs_batch": (),
    "rhs_batch": (),
}


@pytest.mark.parametrize("kind", ["conv", "depthwise", "dot", "left dot"])
def test_scales_go_into_weights(kind: str) -> None:
    s = Sketch()
    y = layer(kind, s)
    scale = [1] * y.rank
    axis = 0 if kind == "left dot" else y.rank - 1
    scale[axis] = y.dims[axis]
    c = s.constant(normal(*scale, seed=3))
    graph = folded(s.graph(s("mul", s("add", y, c), c)))
    assert ops(graph) == [y_op(kind), "add"]
    assert set(graph.nodes[0].origin) == {f"{y_op(kind)}0", "mul2"}


def y_op(kind: str) -> str:
    return "dot" if "dot" in kind else "conv"


def test_a_batch_normalization_disappears_behind_a_transpose() -> None:
    s = Sketch()
    x = s("transpose", s.input(1, 3, 4, 5), perm=(0, 2, 3, 1))
    y = s("transpose", s.conv(x, 1, 1, 6), perm=(0, 3, 1, 2))
    y = s("add", s("mul", y, normal(1, 6, 1, 1)), normal(1, 6, 1, 1, seed=1))
    graph = applied(simplify, s.graph(s("div", y, 2.0)), rtol=1e-5)
    assert ops(graph) == ["transpose", "conv", "add", "transpose"]


def test_weights_that_must_stay() -> None:
    s = Sketch()
    y = s.conv(s.input(1, 4, 5, 6), 3, 2, 4)
    spatial = s("mul", y, normal(1, 2, 1, 1))
    refused(fold_affine, s.graph(spatial))
    s = Sketch()
    y = s.conv(s.input(1, 4, 5, 6), 3, 2, 4)
    refused(fold_affine, s.graph(s("mul", y, 2.0), y))
    s = Sketch()
    product = s.dot(s.input(2, 3), s.input(3, 4))
    refused(fold_affine, s.graph(s("mul", product, 2.0)))
    s = Sketch()
    y = s.conv(s.input(1, 4, 5, 6), 3, 2, 4)
    refused(fold_affine, s.graph(s("mul", y, np.inf)))


def test_shifts_of_other_values_are_not_distributed() -> None:
    s = Sketch()
    refused(fold_affine, s.graph(s("mul", s("add", s.input(2, 3), 1.0), 2.0)))
