"""Layout: transposes that cancel, those that cannot, and what the journal says of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import zoo
from hypothesis import given, settings
from hypothesis import strategies as st
from sketch import Sketch, applied, normal, ops

from rooftile.core.journal import Journal
from rooftile.frontends.onnx import read
from rooftile.ir.graph import Graph, Value
from rooftile.passes import simplify
from rooftile.plan.layout import channels_last, moving_transposes
from rooftile.plan.orders import carried, natural, needed

LAST, SECOND = (0, 2, 3, 1), (0, 3, 1, 2)
LEFT = {
    "ppocr_cls_mobilenetv3": ["conv"],
    "blazeface_back_256": [],
    "ppocrv4_rec_svtr": ["conv", "reshape", "reshape"],
    "paraphrase_minilm_l3": ["reshape"] * 3,
    "magika_v3_3": [],
}
"""Who still needs a transpose in each model: the first layer, and joining attention's heads."""


def laid_out(graph: Graph) -> Graph:
    return applied(lambda item: channels_last(item, Journal()), graph)


def nchw_conv(s: Sketch, x: Value, features: int) -> Value:
    y = s.conv(s("transpose", x, perm=LAST), 1, 1, features)
    return s("transpose", y, perm=SECOND)


def test_only_the_first_transpose_is_left_of_a_chain() -> None:
    s = Sketch()
    a = nchw_conv(s, s.input(1, 3, 4, 5), 3)
    b = s("mul", s("exp", a), s("logistic", s("add", a, normal(1, 3, 1, 1))))
    mean = s("reduce", s("add", a, nchw_conv(s, b, 3)), op="sum", dims=(2, 3))
    graph = laid_out(s.graph(s("reshape", mean, shape=(1, 3))))
    assert ops(graph).count("transpose") == 1
    assert graph.producers[graph.nodes[0].name].op == "transpose"


FOLLOWING: list[tuple[str, dict[str, Any]]] = [
    ("reduce", {"op": "max", "dims": (2,)}),
    ("pad", {"low": (0, 1, 0, 2), "high": (0, 0, 1, 0), "value": 0.0}),
    ("slice", {"starts": (0, 1, 0, 3), "limits": (1, 3, 4, -1), "strides": (1, 1, 2, -2)}),
    (
        "reduce_window",
        {
            "op": "max",
            "window": (1, 1, 2, 3),
            "strides": (1, 1, 2, 1),
            "dilations": (1, 1, 1, 1),
            "pads_low": (0, 0, 0, 1),
            "pads_high": (0, 0, 0, 1),
        },
    ),
    ("concat", {"axis": 1}),
    ("cast", {"dtype": "f64"}),
]


@pytest.mark.parametrize(("op", "attributes"), FOLLOWING)
def test_ops_that_transposes_pass(op: str, attributes: dict[str, Any]) -> None:
    s = Sketch()
    x = s("exp", s.input(1, 4, 5, 3))
    y = s("transpose", x, perm=SECOND)
    both = [y, s.constant(normal(1, 2, 4, 5))] if op == "concat" else [y]
    y = s("transpose", s(op, *both, **attributes), perm=LAST)
    graph = laid_out(s.graph(s("exp", y)))
    assert ops(graph) == ["exp", op, "exp"]


def test_broadcasts_and_small_operands_follow() -> None:
    s = Sketch()
    x, small = s.input(1, 4, 5, 3), s.input(1, 3, 1, 1)
    y = s("mul", s("transpose", x, perm=SECOND), s("broadcast", small, shape=(1, 3, 4, 5)))
    graph = laid_out(s.graph(s("transpose", y, perm=LAST)))
    assert not moving_transposes(graph)


def test_reshapes_between_ranks() -> None:
    s = Sketch()
    x = s.input(1, 1, 5, 6)
    y = s("reshape", s("transpose", s("exp", x), perm=SECOND), shape=(1, 6, 5))
    y = s("transpose", s("neg", y), perm=(0, 2, 1))
    assert ops(laid_out(s.graph(s("exp", y)))) == ["exp", "reshape", "neg", "exp"]
    s = Sketch()
    y = s("transpose", s("exp", s.input(2, 6)), perm=(1, 0))
    y = s("transpose", s("exp", s("reshape", y, shape=(2, 3, 2))), perm=(2, 0, 1))
    assert ops(laid_out(s.graph(y))) == ["exp", "reshape", "exp"]


def test_a_reshape_that_joins_transposed_dims_needs_them_in_order() -> None:
    s = Sketch()
    y = s("transpose", s.input(2, 3, 4), perm=(0, 2, 1))
    graph = laid_out(s.graph(s("exp", s("reshape", y, shape=(2, 12)))))
    assert ops(graph) == ["transpose", "reshape", "exp"]


def test_dots_take_operands_in_any_order() -> None:
    s = Sketch()
    a, b = s.input(2, 5, 3, 4), s.input(2, 6, 3, 4)
    q, k = s("transpose", a, perm=(0, 2, 1, 3)), s("transpose", b, perm=(0, 2, 3, 1))
    bound = {"lhs_batch": (0, 1), "rhs_batch": (0, 1), "lhs_contract": (3,), "rhs_contract": (2,)}
    graph = laid_out(s.graph(s("dot", q, k, **bound)))
    [node] = graph.nodes
    assert (node.attr("lhs_batch"), node.attr("rhs_contract")) == ((0, 2), (3,))


def test_free_dims_of_a_dot_keep_their_order() -> None:
    s = Sketch()
    x = s("transpose", s.input(2, 3, 4), perm=(1, 0, 2))
    graph = laid_out(s.graph(s.dot(x, s.constant(normal(4, 5)))))
    assert ops(graph) == ["transpose", "dot"]


def test_a_transpose_moves_to_the_smaller_side() -> None:
    s = Sketch()
    x = s("transpose", s.input(64, 2, 3), perm=(1, 2, 0))
    small = s("reduce", s("exp", x), op="sum", dims=(2,))
    graph = laid_out(s.graph(small))
    assert ops(graph) == ["exp", "reduce", "reshape"]
    s = Sketch()
    y = s("reduce", s("transpose", s.input(64, 2, 3), perm=(2, 1, 0)), op="sum", dims=(2,))
    graph = laid_out(s.graph(y))
    assert [moving_transposes(graph)[0].output.shape] == [(3, 2, 1)]


def test_one_copy_serves_all_who_need_it() -> None:
    s = Sketch()
    x = s.input(1, 3, 4, 5)
    convs = [s.conv(s("transpose", x, perm=LAST), 1, 1, n) for n in (2, 6)]
    graph = laid_out(s.graph(*convs))
    assert ops(graph) == ["transpose", "conv", "conv"]


def test_inputs_and_outputs_keep_their_dims() -> None:
    s = Sketch()
    y = nchw_conv(s, s.input(1, 3, 4, 5), 2)
    graph = laid_out(s.graph(s("exp", y), y))
    assert graph.values["y0"].shape == (1, 2, 4, 5)
    assert len(moving_transposes(graph)) == 2  # exp follows the copy that is made for y1


def test_the_journal_says_who_needs_what() -> None:
    s = Sketch()
    y = s("exp", nchw_conv(s, s.input(1, 3, 4, 5), 2))
    y = s("add", s.conv(s("transpose", y, perm=LAST), 1, 1, 2), 1.0)
    journal = Journal()
    graph = channels_last(s.graph(s("transpose", y, perm=SECOND)), journal)
    left = [item for item in journal.of("layout") if item.verdict == "left"]
    assert [item.subject for item in left] == [(node.name,) for node in moving_transposes(graph)]
    assert left[0].reason == (
        f"%{graph.nodes[1].name} (conv) needs %x0 (a model input) with its dims in order 0,2,3,1"
    )
    assert left[0].facts == {"bytes": 2 * 4 * 60}
    assert left[1].reason.startswith("the model's output needs %add_")
    cancelled = [item for item in journal.of("layout") if item.verdict == "cancelled"]
    assert len(cancelled) == 2 and cancelled[0].facts == {"bytes": 2 * 4 * 40}


def test_a_graph_without_transposes_is_not_changed() -> None:
    s = Sketch()
    graph = s.graph(s("exp", s.conv(s.input(1, 4, 5, 3), 1, 1, 2)))
    journal = Journal()
    assert channels_last(graph, journal) == graph
    assert not len(journal)


@pytest.mark.parametrize("name", zoo.ROWS)
def test_transposes_left_in_trained_models(name: str) -> None:
    graph = simplify(read(zoo.path(name), zoo.shapes(name)))
    journal = Journal()
    result = channels_last(graph, journal)
    left = moving_transposes(result)
    needed_by = [item.op for node in left for item in result.consumers[node.name]]
    assert needed_by == LEFT[name]
    assert [item.subject[0] for item in journal if item.verdict == "left"] == [
        node.name for node in left
    ]


@st.composite
def chains(draw: st.DrawFn) -> Graph:
    """Random chains of transposes, reshapes and ops between."""
    s = Sketch()
    x = s.input(*draw(st.permutations([1, 2, 3, 4])))
    for _ in range(draw(st.integers(1, 7))):
        kind = draw(st.sampled_from(["transpose", "reshape", "exp", "add", "reduce", "conv"]))
        if kind == "transpose":
            x = s("transpose", x, perm=tuple(draw(st.permutations(range(x.rank)))))
        elif kind == "reshape":
            parts = [extent for extent in x.dims if extent != 1]
            at = draw(st.integers(0, len(parts)))
            x = s("reshape", x, shape=(*parts[:at], 1, *parts[at:]))
            if draw(st.booleans()) and x.rank > 2:
                x = s("reshape", x, shape=(x.dims[0] * x.dims[1], *x.dims[2:]))
        elif kind == "add":
            x = s("add", x, s("exp", x) if draw(st.booleans()) else normal(*x.dims))
        elif kind == "reduce":
            x = s("reduce", x, op="max", dims=(draw(st.integers(0, x.rank - 1)),))
        elif kind == "conv" and x.rank == 4:
            x = s.conv(x, 1, 1, 2)
        else:
            x = s("exp", s("mul", x, -0.1))
    return s.graph(x)


@settings(max_examples=150, deadline=None)
@given(chains())
def test_random_chains_keep_their_values_and_never_move_more(graph: Graph) -> None:
    applied(lambda item: simplify(item, 0), graph)
    before = applied(simplify, graph, rtol=1e-5)
    after = laid_out(before)
    cost = [
        sum(np.prod(node.output.dims) for node in moving_transposes(item))
        for item in (before, after)
    ]
    assert cost[1] <= cost[0]
    for node in after.nodes:
        for number, name in enumerate(node.inputs):
            have = natural(after.values[name].rank)
            forward = carried(after, node, number, have)
            if forward is not None and name in after.producers:
                back = needed(after, node, forward, number, have)
                assert back == have or node.op == "reshape"
