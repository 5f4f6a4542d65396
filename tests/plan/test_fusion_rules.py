"""Each fusion rule joins what it is for, and says why it does not join what it must not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from planning import plan
from sketch import Sketch

from rooftile.ir.graph import Value
from rooftile.plan.fusion import RULES


def pool(s: Sketch, x: Value, size: int, stride: int, pad: int = 0) -> Value:
    dims = {"dilations": (1, 1, 1, 1), "pads_low": (0, pad, pad, 0), "pads_high": (0, pad, pad, 0)}
    window, strides = (1, size, size, 1), (1, stride, stride, 1)
    made: Value = s("reduce_window", x, op="max", window=window, strides=strides, **dims)
    return made


def weights(s: Sketch, *shape: int) -> Value:
    return s.constant(np.random.default_rng(0).standard_normal(shape))


def taken(s: Sketch, *outputs: Value) -> dict[tuple[str, ...], str]:
    """The rules that joined pairs, by the ops of the pair's last nodes; all became one region."""
    planned = plan(s.graph(*outputs))
    ops = {node.name: node.op for node in planned.graph.nodes}
    assert len(planned.regions) == 1, [(e.subject, e.verdict, e.reason) for e in planned.ledger]
    return {tuple(ops[n] for n in e.subject): e.facts["rule"] for e in planned.ledger}


def refused(s: Sketch, pair: tuple[str, str], *outputs: Value) -> tuple[Any, str]:
    """The rule and the reason of a pair that was not joined."""
    entry = plan(s.graph(*outputs)).verdict(*pair)
    assert entry.verdict == "refused"
    return entry.facts["rule"], entry.reason


def test_each_rule_is_tested_here() -> None:
    assert [rule.name for rule in RULES] == [
        "elementwise chain",
        "epilogue",
        "rows",
        "rows behind a dot",
        "attention",
        "pooling",
        "pooled operand",
        "prologue",
        "depthwise and pointwise",
    ]


def test_elementwise_chain() -> None:
    s = Sketch()
    x = s("transpose", s("exp", s.input(40, 50)), perm=(1, 0))
    assert taken(s, s("neg", x)) == {("exp", "neg"): "elementwise chain"}


def test_what_is_needed_elsewhere_stays() -> None:
    s = Sketch()
    x = s("exp", s.input(40, 50))
    y = s("neg", x)
    rule, reason = refused(s, ("exp", "neg"), y, x)
    assert (rule, reason) == ("elementwise chain", "%y1 is needed elsewhere too")


def test_epilogue() -> None:
    s = Sketch()
    product = s.dot(s.input(40, 50), weights(s, 50, 60))
    assert taken(s, s("tanh", product)) == {("dot", "tanh"): "epilogue"}


def test_no_epilogue_where_results_are_repeated() -> None:
    s = Sketch()
    product = s.dot(s.input(40, 50), weights(s, 50, 1))
    wide = s("add", product, s.input(40, 30))
    rule, reason = refused(s, ("dot", "add"), wide)
    assert rule == "epilogue"
    assert reason == "its 40 results would be computed again for 1200 elements"


def test_rows() -> None:
    s = Sketch()
    x = s.input(40, 50)
    raised = s("exp", s("sub", x, s("reduce", x, op="max", dims=(1,))))
    rules = taken(s, s("div", raised, s("reduce", raised, op="sum", dims=(1,))))
    assert set(rules.values()) == {"rows"}


def test_rows_that_do_not_lie_together() -> None:
    s = Sketch()
    x = s.input(40, 50)
    rule, reason = refused(s, ("reduce", "sub"), s("sub", x, s("reduce", x, op="max", dims=(0,))))
    assert rule == "rows"
    assert reason == "the reduced dims are not the innermost: its rows do not lie together"


def test_rows_behind_a_dot() -> None:
    s = Sketch()
    product = s.dot(s.input(40, 50), weights(s, 50, 60))
    top = s("reduce", product, op="max", dims=(1,))
    assert taken(s, top) == {("dot", "reduce"): "rows behind a dot"}


def test_rows_behind_a_dot_must_be_the_dot_s_own() -> None:
    s = Sketch()
    product = s.dot(s.input(40, 50), weights(s, 50, 60))
    rule, reason = refused(s, ("dot", "reduce"), s("reduce", product, op="max", dims=(0,)))
    assert rule == "rows behind a dot"
    assert reason == "the reduced dims are not the innermost: no tile of rows holds them"


def attention(s: Sketch, batched: bool) -> Value:
    lead = (4,) if batched else ()
    batch = (
        {"lhs_batch": (0,), "rhs_batch": (0,)} if batched else {"lhs_batch": (), "rhs_batch": ()}
    )
    first = len(lead)
    q, k, v = (s.input(*lead, 64, 32) for _ in range(3))
    both = {"lhs_contract": (first + 1,)}
    scores = s("dot", q, k, rhs_contract=(first + 1,), **both, **batch)
    top = s("reduce", scores, op="max", dims=(first + 1,))
    raised = s("exp", s("sub", scores, top))
    rows = s("div", raised, s("reduce", raised, op="sum", dims=(first + 1,)))
    return s("dot", rows, v, rhs_contract=(first,), **both, **batch)


def test_attention() -> None:
    s = Sketch()
    assert "attention" in taken(s, attention(s, batched=True)).values()


def test_no_attention_without_batch() -> None:
    s = Sketch()
    planned = plan(s.graph(attention(s, batched=False)))
    reasons = {e.reason for e in planned.ledger if e.facts["rule"] == "attention"}
    assert "without batch dims the second dot would wait for all rows of the first" in reasons
    assert len(planned.regions) > 1


def test_pooling() -> None:
    s = Sketch()
    x = s("exp", s.input(1, 32, 32, 16))
    assert taken(s, pool(s, x, 2, 2)) == {("exp", "reduce_window"): "pooling"}


@pytest.mark.parametrize(
    ("size", "stride", "pad", "reason"),
    [
        (3, 2, 0, "the windows overlap: elements would be computed more than once"),
        (2, 2, 1, "the window reads padding around what is computed"),
    ],
)
def test_no_pooling_of_what_is_computed(size: int, stride: int, pad: int, reason: str) -> None:
    s = Sketch()
    x = s("exp", s.input(1, 32, 32, 16))
    found = refused(s, ("exp", "reduce_window"), pool(s, x, size, stride, pad))
    assert found == ("pooling", reason)


def test_no_pool_of_a_pool() -> None:
    s = Sketch()
    x = pool(s, s.input(1, 32, 32, 16), 2, 2)
    rule, reason = refused(s, ("reduce_window", "reduce_window"), pool(s, x, 2, 2))
    assert rule == "pooling"
    assert reason == "one window inside another would compute each element again"


def test_pooled_operand() -> None:
    s = Sketch()
    pooled = pool(s, s.input(1, 32, 32, 16), 2, 2)
    product = s.conv(s.input(1, 16, 16, 8), 1, 1, 16)
    rules = taken(s, s("add", product, pooled))
    assert rules["reduce_window", "add"] == "pooled operand"


def test_no_pooled_operand_of_the_dot_itself() -> None:
    s = Sketch()
    pooled = pool(s, s.input(1, 32, 32, 16), 2, 2)
    rule, reason = refused(s, ("reduce_window", "conv"), s.conv(pooled, 3, 3, 16))
    assert rule == "pooled operand"
    assert reason == "the dot would compute each window again for every tap"


def test_prologue() -> None:
    s = Sketch()
    x = s("exp", s.input(40, 50))
    assert taken(s, s.dot(x, weights(s, 50, 60))) == {("exp", "dot"): "prologue"}


def test_no_prologue_of_a_window() -> None:
    s = Sketch()
    x = s("exp", s.input(1, 32, 32, 16))
    rule, reason = refused(s, ("exp", "conv"), s.conv(x, 3, 3, 16))
    assert rule == "prologue"
    assert reason == "each element would be computed once for every tap of the window"


def test_depthwise_and_pointwise() -> None:
    s = Sketch()
    x = s.conv(s.input(1, 64, 64, 64), 3, 3, 64, groups=64)
    entry = plan(s.graph(s.conv(x, 1, 1, 64))).verdict("conv", "conv")
    assert entry.facts["rule"] == "depthwise and pointwise"
    assert entry.verdict == "taken" or entry.reason == "the roof predicts no gain"


@pytest.mark.parametrize(
    ("first", "groups", "second", "strides", "reason"),
    [
        (
            3,
            1,
            1,
            1,
            "the first conv would be computed again for each tile of the second's channels",
        ),
        (3, 64, 3, 1, "the second conv's window would compute rows of the first more than once"),
        (3, 64, 1, 2, "the second conv skips rows that the first would compute"),
    ],
)
def test_other_pairs_of_convs(
    first: int, groups: int, second: int, strides: int, reason: str
) -> None:
    s = Sketch()
    x = s.conv(s.input(1, 32, 32, 64), first, first, 64, groups=groups)
    y = s.conv(x, second, second, 64, strides=(strides, strides))
    assert refused(s, ("conv", "conv"), y) == ("depthwise and pointwise", reason)


def test_pairs_that_no_rule_is_about() -> None:
    s = Sketch()
    product = s.dot(s.input(40, 50), weights(s, 50, 60))
    entry = plan(s.graph(s.dot(product, weights(s, 60, 70)))).verdict("dot", "dot")
    assert (entry.verdict, entry.reason) == ("refused", "no rule joins these kinds of work")
    assert entry.facts["rule"] == ""


def test_a_reduction_of_columns_takes_what_follows_it_in_place() -> None:
    s = Sketch()
    total = s("reduce", s.input(40, 50), op="sum", dims=(0,))
    assert taken(s, s("mul", total, 1 / 40)) == {("reduce", "mul"): "rows"}


def test_a_row_is_not_computed_for_every_row() -> None:
    s = Sketch()
    row = s("sqrt", s("exp", s.input(1, 64)))
    rule, reason = refused(s, ("sqrt", "mul"), s("mul", s.input(4096, 64), row))
    assert rule == "elementwise chain"
    assert reason == "it is one row, which would be computed again for every row"


def test_a_row_for_few_rows_is_no_kernel_of_its_own() -> None:
    s = Sketch()
    product = s("mul", s.input(4, 64), s("sqrt", s.input(1, 64)))
    assert taken(s, product) == {("sqrt", "mul"): "elementwise chain"}


def test_small_values_that_repeat_along_rows_are_stored() -> None:
    s = Sketch()
    group = s("broadcast", s("exp", s.input(1, 8, 1)), shape=(1, 8, 2))
    planned = plan(s.graph(s("add", s.input(64, 16), s("reshape", group, shape=(1, 16)))))
    assert [region[-1] for region in planned.groups] == ["reshape", "add"]
    [copy] = planned.journal.of("copies")
    why = "its elements repeat along the rows, which would fall apart into short runs"
    assert (copy.verdict, copy.reason) == ("stored", why)
    assert planned.verdict("reshape", "add").reason == why


def test_values_that_repeat_in_whole_rows_are_read_through() -> None:
    s = Sketch()
    row = s("broadcast", s.input(8, 1, 16), shape=(8, 8, 16))
    planned = plan(s.graph(s("neg", s("reshape", row, shape=(64, 16)))))
    assert len(planned.regions) == 1 and not planned.journal.of("copies")
