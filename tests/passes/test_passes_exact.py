"""Passes that keep every value: each with what it rewrites and what it must leave alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sketch import Sketch, applied, normal, ops, refused

from rooftile.core.errors import InvalidOption
from rooftile.ir.graph import Graph, Node, Value, attrs
from rooftile.ops.evaluate import evaluate
from rooftile.passes import simplify
from rooftile.passes.broadcast import drop_broadcasts
from rooftile.passes.cse import share_common
from rooftile.passes.dead import remove_dead
from rooftile.passes.fold import fold_constants
from rooftile.passes.identity import remove_identities
from rooftile.passes.onehot import one_hot_to_gather
from rooftile.passes.operands import constants_right
from rooftile.passes.padding import zero_blocks_to_pad
from rooftile.passes.sink import sink_transposes
from rooftile.passes.views import merge_views


def test_dead_code() -> None:
    s = Sketch()
    x = s.input(2, 3)
    s("exp", s("add", x, 1.0))
    graph = applied(remove_dead, s.graph(s("neg", x)))
    assert ops(graph) == ["neg"] and not graph.constants
    refused(remove_dead, graph)


def test_common_subexpressions() -> None:
    s = Sketch()
    x, z = s.input(2, 3), s.input(2, 3)
    pairs = [s("add", x, z), s("add", z, x), s("add", x, 1.0), s("add", x, 1.0)]
    total = s("add", s("mul", pairs[0], pairs[1]), s("mul", pairs[2], pairs[3]))
    graph = applied(share_common, s.graph(total))
    assert ops(graph) == ["add", "add", "mul", "mul", "add"]
    assert len(graph.constants) == 1


def test_what_differs_is_not_shared() -> None:
    s = Sketch()
    x, z = s.input(2, 3), s.input(2, 3)
    total = s("add", s("sub", x, z), s("sub", z, x))
    total = s("add", total, s("add", s("mul", x, 0.0), s("mul", x, -0.0)))
    a, b = (s("reduce", x, op=op, dims=(1,)) for op in ("max", "min"))
    refused(share_common, s.graph(s("add", total, s("add", a, b))))


def test_two_equal_outputs_stay_two() -> None:
    s = Sketch()
    x = s.input(2, 3)
    graph = applied(share_common, s.graph(s("neg", x), s("neg", x)))
    assert ops(graph) == ["neg", "reshape"]
    assert simplify(graph) is graph


def late(op: str, array: Any, **attributes: Any) -> Graph:
    """x0 + op(constant), the constant not folded when it was written."""
    s = Sketch()
    x = s.input(*np.shape(array))
    c = s.constant(array)
    made = Value("made", x.shape, "f32")
    s.builder.append(Node(op, (c.name,), (made,), attrs(**attributes)))
    return s.graph(s("add", x, made))


def test_constant_folding() -> None:
    graph = applied(fold_constants, late("exp", normal(2, 3)), rtol=1e-6)
    assert ops(graph) == ["add"]
    assert [array.dtype for array in graph.constants.values()] == [np.float32]
    s = Sketch()
    refused(fold_constants, s.graph(s("exp", s.input(2))))


def test_large_results_and_bad_indices_are_not_folded() -> None:
    s = Sketch()
    big = s("broadcast", s.constant([[1.0]]), shape=(1024, 1024))
    row = s("gather", s.constant([1.0, 2.0]), s.constant([5], "i64"), axis=0)
    refused(fold_constants, s.graph(big, row))


def test_constants_go_right() -> None:
    s = Sketch()
    x = s.input(2, 3)
    two = s.constant([[2.0]])
    graph = applied(constants_right, s.graph(s("mul", two, s("max", two, x))))
    assert all(node.inputs[0] not in graph.constants for node in graph.nodes)
    s = Sketch()
    refused(constants_right, s.graph(s("div", s.constant([[2.0]]), s.input(2, 3))))


IDENTITIES: list[tuple[str, dict[str, Any]]] = [
    ("cast", {"dtype": "f32"}),
    ("reshape", {"shape": (2, 3)}),
    ("broadcast", {"shape": (2, 3)}),
    ("slice", {"starts": (0, 0), "limits": (2, 3), "strides": (1, 1)}),
    ("pad", {"low": (0, 0), "high": (0, 0), "value": 1.0}),
    ("transpose", {"perm": (0, 1)}),
    ("concat", {"axis": 1}),
    ("reduce", {"dims": (), "op": "sum"}),
    (
        "reduce_window",
        {
            "op": "max",
            "window": (1, 1),
            "strides": (1, 1),
            "dilations": (1, 1),
            "pads_low": (0, 0),
            "pads_high": (0, 0),
        },
    ),
]


@pytest.mark.parametrize(("op", "attributes"), IDENTITIES)
def test_ops_that_change_nothing(op: str, attributes: dict[str, Any]) -> None:
    s = Sketch()
    x = s.input(2, 3)
    graph = s.graph(s("exp", s(op, s("neg", x), **attributes)))
    assert ops(applied(remove_identities, graph)) == ["neg", "exp"]


@pytest.mark.parametrize(("op", "neutral"), [("add", 0), ("sub", 0), ("mul", 1), ("div", 1)])
def test_neutral_operands(op: str, neutral: float) -> None:
    s = Sketch()
    x = s.input(2, 3)
    graph = s.graph(s("exp", s(op, x, neutral)))
    assert ops(applied(remove_identities, graph)) == ["exp"]
    s = Sketch()
    grown = s(op, s.input(1, 3), [[neutral], [neutral]])
    refused(remove_identities, s.graph(s("exp", grown)))
    s = Sketch()
    refused(remove_identities, s.graph(s("exp", s(op, s.input(2, 3), 2.0))))


def test_views_that_do_change_something_stay() -> None:
    s = Sketch()
    x = s.input(3, 3)
    y = s("transpose", x, perm=(1, 0))
    y = s("slice", y, starts=(2, 0), limits=(-1, 3), strides=(-1, 1))
    window = {"window": (3, 1), "pads_low": (1, 0), "pads_high": (1, 0)}
    y = s("reduce_window", y, op="max", strides=(1, 1), dilations=(1, 1), **window)
    refused(remove_identities, s.graph(s("exp", y)))


@pytest.mark.parametrize(
    ("start", "through", "end", "left"),
    [
        ("f32", "f64", "f32", 0),
        ("i32", "f64", "i32", 0),
        ("u8", "i16", "f32", 1),
        ("bool", "f32", "i64", 1),
        ("f32", "f16", "f32", 2),
        ("i64", "f32", "i64", 2),
        ("i8", "u8", "i32", 2),
        ("f32", "i32", "f32", 2),
    ],
)
def test_casts_through_wider_types(start: str, through: str, end: str, left: int) -> None:
    s = Sketch()
    x = s.input(4, dtype=start)
    y = s("cast", s("cast", x, dtype=through), dtype=end)
    graph = remove_identities(s.graph(s("eq", y, y)))
    assert ops(graph).count("cast") == left


def test_chains_of_views() -> None:
    s = Sketch()
    x = s.input(2, 3, 4)
    y = s("reshape", s("reshape", x, shape=(6, 4)), shape=(4, 6))
    z = s("transpose", s("transpose", x, perm=(1, 2, 0)), perm=(0, 2, 1))
    one = s("reshape", x, shape=(1, 24, 1))
    b = s("broadcast", s("broadcast", one, shape=(2, 24, 1)), shape=(2, 24, 3))
    graph = applied(merge_views, s.graph(y, z, b))
    assert sorted(ops(graph)) == ["broadcast", "reshape", "reshape", "transpose"]
    assert graph.producers["y1"].attr("perm") == (1, 0, 2)
    assert graph.producers["y0"].origin == ("reshape1", "reshape0")


def test_transposes_of_small_dims_are_reshapes() -> None:
    s = Sketch()
    y = s("transpose", s.input(2, 1, 3), perm=(1, 0, 2))
    assert ops(applied(merge_views, s.graph(y))) == ["reshape"]
    s = Sketch()
    refused(merge_views, s.graph(s("transpose", s.input(2, 1, 3), perm=(2, 1, 0))))


def test_broadcasts_into_elementwise() -> None:
    s = Sketch()
    x, z = s.input(2, 3), s.input(1, 3)
    wide = s("broadcast", z, shape=(2, 3))
    assert ops(applied(drop_broadcasts, s.graph(s("add", x, wide)))) == ["add"]
    alone = applied(drop_broadcasts, s.graph(s("exp", s("add", wide, wide))))
    assert ops(alone) == ["add", "exp", "broadcast"]
    s = Sketch()
    refused(drop_broadcasts, s.graph(s("broadcast", s.input(1, 3), shape=(2, 3))))


def test_repeated_constants_shrink() -> None:
    s = Sketch()
    y = s("add", s.input(2, 3), s.constant([[1, 2, 3], [1, 2, 3]]))
    graph = applied(drop_broadcasts, s.graph(y))
    assert [array.shape for array in graph.constants.values()] == [(1, 3)]
    s = Sketch()
    refused(drop_broadcasts, s.graph(s("add", s.input(2), s.constant([0.0, -0.0]))))


def test_blocks_of_zeros() -> None:
    s = Sketch()
    x = s.input(2, 3)
    zeros = s.constant(np.zeros((2, 2)))
    graph = applied(zero_blocks_to_pad, s.graph(s("concat", zeros, x, x, zeros, axis=1)))
    assert ops(graph) == ["concat", "pad"]
    assert graph.nodes[1].attr("low") == graph.nodes[1].attr("high") == (0, 2)
    one = applied(zero_blocks_to_pad, s.graph(s("concat", x, zeros, axis=1)))
    assert ops(one) == ["pad"]


def test_other_blocks_stay() -> None:
    s = Sketch()
    x = s.input(2, 3)
    ones, minus = s.constant(np.ones((2, 2))), s.constant(np.full((2, 2), -0.0))
    inside = s("concat", x, s.constant(np.zeros((2, 1))), x, axis=1)
    refused(
        zero_blocks_to_pad,
        s.graph(s("concat", x, ones, axis=1), s("concat", x, minus, axis=1), inside),
    )


def one_hot(dtype: str = "i32", table: Any = None, steps: Any = None, clamp: bool = False) -> Graph:
    s = Sketch()
    x = s.input(2, 4, dtype=dtype)
    index = s("min", s("max", x, 0), 4) if clamp else x
    index = s("reshape", index, shape=(2, 4, 1))
    count = 5
    steps = np.arange(count) if steps is None else steps
    hot = s("eq", index, s.constant(np.reshape(steps, (1, 1, count)), dtype))
    hot = s("cast", hot, dtype="f32")
    return s.graph(s.dot(hot, s.constant(normal(count, 3) if table is None else table)))


def test_one_hot_products() -> None:
    graph = applied(one_hot_to_gather, one_hot())
    assert ops(graph) == ["reshape", "reshape", "lt", "min", "where", "gather"]
    feeds = {"x0": np.array([[-1, 0, 4, 5], [2**31 - 1, -(2**31), 3, 1]], np.int32)}
    before, after = (evaluate(item, feeds)["y0"] for item in (one_hot(), graph))
    np.testing.assert_array_equal(before, after)
    assert not after[0, 0].any() and after[0, 1].any()


def test_indices_known_to_be_in_range_need_no_check() -> None:
    graph = applied(one_hot_to_gather, one_hot(clamp=True))
    assert ops(graph).count("where") == 0 and ops(graph)[-1] == "gather"
    assert graph.constants[graph.nodes[-1].inputs[0]].shape == (5, 3)
    assert "cast" in ops(applied(one_hot_to_gather, one_hot("u8")))


def test_other_products_stay() -> None:
    infinite = normal(5, 3)
    infinite[0, 0] = np.inf
    refused(one_hot_to_gather, one_hot(table=infinite))
    refused(one_hot_to_gather, one_hot(steps=[0, 1, 2, 4, 3]))
    refused(one_hot_to_gather, one_hot("f32"))
    refused(one_hot_to_gather, one_hot("u64"))
    s = Sketch()
    refused(one_hot_to_gather, s.graph(s.dot(s.input(2, 5), s.constant(normal(5, 3)))))


def test_transposes_sink_below_constants() -> None:
    s = Sketch()
    y = s("transpose", s.input(2, 3, 4), perm=(0, 2, 1))
    y = s("exp", s("mul", y, s.constant(normal(1, 4, 1))))
    graph = applied(sink_transposes, s.graph(y))
    assert ops(graph) == ["mul", "exp", "transpose"]
    assert [array.shape for array in graph.constants.values()] == [(1, 1, 4)]


def test_transposes_that_stay_above() -> None:
    s = Sketch()
    x = s.input(1, 3)
    y = s("transpose", x, perm=(1, 0))
    grown = s("add", y, s.constant(normal(3, 2)))
    z = s("transpose", s.input(2, 3), perm=(1, 0))
    twice = s("add", s("exp", z), z)
    refused(sink_transposes, s.graph(grown, twice))


def test_levels() -> None:
    s = Sketch()
    graph = s.graph(s("div", s("add", s.input(2), 0.0), 3.0))
    assert ops(simplify(graph, 0)) == ["div"]
    assert ops(simplify(graph, 1)) == ["mul"]
    with pytest.raises(InvalidOption, match=r"level 2 must be one of 0\.\.1"):
        simplify(graph, 2)


def test_simplify_reaches_a_fixpoint() -> None:
    s = Sketch()
    x = s.input(1, 3, 4, 5)
    y = s.conv(s("transpose", x, perm=(0, 2, 3, 1)), 1, 1, 2)
    y = s("transpose", s("add", y, 1.0), perm=(0, 3, 1, 2))
    graph = simplify(s.graph(s("mul", y, 2.0), x))
    assert simplify(graph) is graph
    assert ops(graph) == ["transpose", "conv", "add", "transpose", "reshape"]
