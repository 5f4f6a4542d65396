"""Normalization and softmax: groups that keep their dims, rows of scales, one division a row."""

from __future__ import annotations

import pytest
from sketch import Sketch, applied, normal, ops, refused

from rooftile.core.journal import Journal
from rooftile.ir.graph import Graph, Value
from rooftile.passes import simplify
from rooftile.passes.grouped import keep_groups_apart
from rooftile.passes.scales import fold_scales
from rooftile.passes.softmax import divide_once
from rooftile.plan.layout import channels_last, moving_transposes

WIDE = (2, 12, 5, 4)


def normalized(s: Sketch, x: Value, dims: tuple[int, ...], count: int) -> Value:
    """x less its mean over dims, over its deviation."""
    mean = s("mul", s("reduce", x, op="sum", dims=dims), 1.0 / count)
    centred = s("sub", x, mean)
    squares = s("reduce", s("mul", centred, centred), op="sum", dims=dims)
    return s("div", centred, s("sqrt", s("add", s("mul", squares, 1.0 / count), 1e-5)))


def grouped(s: Sketch, x: Value, groups: int) -> Value:
    """A normalization of groups of channels between two reshapes."""
    joined = s("reshape", x, shape=(2, groups, 240 // groups))
    return s("reshape", normalized(s, joined, (2,), 240 // groups), shape=WIDE)


@pytest.mark.parametrize("groups", [3, 6, 12])
def test_groups_keep_their_dims(groups: int) -> None:
    s = Sketch()
    graph = applied(keep_groups_apart, s.graph(grouped(s, s.input(*WIDE), groups)), rtol=1e-5)
    full = [node for node in simplify(graph, 0).nodes if node.output.shape == WIDE]
    assert [node.op for node in full] == ["sub", "mul", "div"]


def test_groups_may_lie_channels_last() -> None:
    s = Sketch()
    x = s("transpose", s.input(2, 5, 4, 12), perm=(0, 3, 1, 2))
    graph = s.graph(s("transpose", grouped(s, x, 3), perm=(0, 2, 3, 1)))
    left = [moving_transposes(channels_last(simplify(graph, n), Journal())) for n in (0, 1)]
    assert [len(some) for some in left] == [2, 0]


def test_groups_of_two_tensors_together() -> None:
    s = Sketch()
    a, b = (s("reshape", s.input(*WIDE), shape=(2, 3, 80)) for _ in range(2))
    both = s("mul", a, s("exp", b))
    top = s("sub", both, s("reduce", both, op="max", dims=(2,)))
    graph = simplify(applied(keep_groups_apart, s.graph(s("reshape", top, shape=WIDE))), 0)
    assert {"mul", "exp", "sub"} == {n.op for n in graph.nodes if n.output.shape == WIDE}


def without(change: str) -> Graph:
    s = Sketch()
    x = s.input(*WIDE)
    joined = s("reshape", x, shape=(2, 3, 80))
    if change == "nothing reduced":
        total = s.input(2, 3, 1)
    else:
        total = s("reduce", joined, op="sum", dims=(1 if change == "other dim" else 2,))
    less = s("sub", joined, s.constant(normal(1, 1, 80)) if change == "varies" else total)
    outputs = [s("reshape", less, shape=WIDE)]
    if change == "an output":
        outputs.append(less)
    if change == "no reshape":
        outputs.append(s("transpose", less, perm=(0, 2, 1)))
    return s.graph(*outputs, *([total] if change == "varies" else []))


@pytest.mark.parametrize(
    "change", ["other dim", "nothing reduced", "varies", "an output", "no reshape"]
)
def test_groups_that_stay(change: str) -> None:
    refused(keep_groups_apart, without(change))


def test_chains_of_rows() -> None:
    s = Sketch()
    x, scale, shift = s.input(128, 6), s.input(1, 6), s.input(1, 6)
    y = s("add", s("mul", s("sub", s("mul", x, scale), shift), scale), shift)
    y = s("sub", s("mul", y, shift), scale)
    graph = s.graph(y)
    for _ in range(4):
        graph = fold_scales(graph)
    graph = applied(lambda item: graph, s.graph(y), rtol=1e-4)
    assert [node.op for node in graph.nodes if node.output.shape == (128, 6)] in (
        ["mul", "add"],
        ["mul", "sub"],
    )


def test_a_normalization_of_columns_is_one_scale_and_one_shift() -> None:
    s = Sketch()
    x = s.input(256, 6)
    y = s("mul", normalized(s, x, (0,), 256), normal(1, 6))
    graph = simplify(s.graph(s("add", y, normal(1, 6))))
    wide = [node for node in graph.nodes if node.output.shape == (256, 6)]
    assert sorted(node.op for node in wide) == ["add", "mul", "mul", "sub"]  # two for the variance
    applied(lambda item: graph, s.graph(s("add", y, normal(1, 6))), rtol=1e-4)


def test_rows_that_stay() -> None:
    s = Sketch()
    x = s.input(128, 6)
    few, column, row = s.input(4, 6), s.input(128, 1), s.input(1, 6)
    refused(
        fold_scales,
        s.graph(
            s("div", x, row),  # no root: its reciprocal may overflow
            s("mul", s("mul", x, column), column),
            s("mul", s("mul", few, row), row),
        ),
    )
    s = Sketch()
    x, row = s.input(128, 6), s.input(1, 6)
    refused(fold_scales, s.graph(s("mul", s("add", x, row), row)))


def softmax(s: Sketch, x: Value, op: str = "max", dims: tuple[int, ...] = (1,)) -> Value:
    below = s("sub", x, s("reduce", x, op=op, dims=(1,)))
    weights = s("exp", below)
    return s("div", weights, s("reduce", weights, op="sum", dims=dims))


def test_a_softmax_divides_once_a_row() -> None:
    s = Sketch()
    graph = applied(divide_once, s.graph(softmax(s, s.input(3, 40))), rtol=1e-6)
    assert [node.op for node in graph.nodes if node.output.shape == (3, 1)].count("div") == 1
    assert "div" not in [node.op for node in graph.nodes if node.output.shape == (3, 40)]


@pytest.mark.parametrize(("op", "dims"), [("min", (1,)), ("max", (0,))])
def test_quotients_that_are_no_softmax(op: str, dims: tuple[int, ...]) -> None:
    s = Sketch()
    refused(divide_once, s.graph(softmax(s, s.input(3, 40), op, dims)))


def test_level_0_keeps_each_operation() -> None:
    s = Sketch()
    graph = s.graph(softmax(s, s.input(3, 40)), grouped(s, s.input(*WIDE), 3))
    assert sorted(ops(simplify(graph, 0))) == sorted(ops(graph))
