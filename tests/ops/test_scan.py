"""scan: shapes, the reference in both precisions, what is refused, and the builder."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rooftile.core.errors import InvalidModel
from rooftile.ir.graph import Graph, attrs, parse, to_text
from rooftile.ops import OPS
from rooftile.ops.builder import Builder
from rooftile.ops.evaluate import check_types, evaluate
from rooftile.ops.scan_builder import ScanBuilder

RNG = np.random.default_rng(0)


def sums(dtype: str = "f32", trip: int = 5) -> Graph:
    """s' = s + scale * x[t] from the end; the last state, all states, and x[t] from the front."""
    outer = Builder()
    x = outer.input("x", (trip, 3), dtype)
    start, scale = outer.input("start", (3,), dtype), outer.input("scale", (3,), dtype)
    scan = ScanBuilder(outer, trip)
    state, part = scan.state(start), scan.slice(x, backward=True)
    other = scan.slice(x)
    assert scan.capture(scale) is scan.capture(scale)
    scaled = scan.body.emit("mul", part, scan.capture(scale))
    after = scan.body.emit("add", state, scaled)
    last, states, passed = scan.finish([after], [after, other], [True, False])
    return check_types(outer.finish("sums", {"last": last, "states": states, "passed": passed}))


def feeds(trip: int = 5) -> dict[str, Any]:
    return {
        "x": RNG.standard_normal((trip, 3)),
        "start": RNG.standard_normal(3),
        "scale": RNG.standard_normal(3),
    }


def test_states_and_stacks() -> None:
    given = feeds()
    found = evaluate(sums("f64"), given)
    want = given["start"] + np.cumsum(given["x"][::-1] * given["scale"], axis=0)
    np.testing.assert_allclose(found["last"], want[-1])
    np.testing.assert_allclose(found["states"], want[::-1])
    np.testing.assert_array_equal(found["passed"], given["x"])


@pytest.mark.parametrize(("precision", "dtype"), [("f64", np.float64), ("native", np.float32)])
def test_precision_is_that_of_the_graph(precision: Any, dtype: Any) -> None:
    given = {name: array.astype(np.float32) for name, array in feeds().items()}
    found = evaluate(sums(), given, precision)
    assert {array.dtype for array in found.values()} == {np.dtype(dtype)}


def test_half_precision_states_are_rounded_at_each_step() -> None:
    given = {name: array.astype(np.float16) for name, array in feeds(40).items()}
    found = evaluate(sums("f16", 40), given, "native")["last"]
    state = given["start"]
    for part in given["x"][::-1]:
        state = state + (part.astype(np.float32) * given["scale"]).astype(np.float16)
    np.testing.assert_array_equal(found, state.astype(np.float16))


def test_no_iterations_give_the_start_and_nothing() -> None:
    given = feeds(0)
    found = evaluate(sums("f64", 0), given)
    np.testing.assert_array_equal(found["last"], given["start"])
    assert found["states"].shape == (0, 3)


def test_operations_count_once_an_iteration() -> None:
    graph = sums()
    [node] = [node for node in graph.nodes if node.op == "scan"]
    values = [graph.values[name] for name in node.inputs]
    flops = OPS["scan"].flops(dict(node.attrs), values, node.outputs)
    assert flops == 5 * sum(
        OPS[n.op].flops(dict(n.attrs), [node.attr("body").values[i] for i in n.inputs], n.outputs)
        for n in node.attr("body").nodes
    )


def test_it_prints_and_parses() -> None:
    graph = sums()
    assert parse(to_text(graph)) == graph


def test_captured_constants_are_constants_of_the_body() -> None:
    outer = Builder()
    x = outer.input("x", (2, 3), "f32")
    weight = outer.constant(np.ones(3, np.float32))
    scan = ScanBuilder(outer, 2)
    part = scan.slice(x)
    inner = scan.capture(weight)
    assert scan.capture(weight) is inner
    [stack] = scan.finish([], [scan.body.emit("mul", part, inner)])
    graph = outer.finish("g", {"y": stack})
    assert len(graph.nodes[0].inputs) == 1 and graph.nodes[0].attr("body").constants


def refused(**changes: Any) -> None:
    [node] = [node for node in sums().nodes if node.op == "scan"]
    graph = sums()
    inputs = [graph.values[name] for name in node.inputs]
    OPS["scan"].infer(dict(attrs(**{**dict(node.attrs), **changes})), inputs)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"body": 3}, "body must be a graph"),
        ({"trip": -1}, "must not be < 0"),
        ({"trip": 4}, r"%x f32\[5,3\] does not fit what the body takes"),
        ({"carried": 2}, "the body gives 3 values, not 2"),
        ({"sliced": (False,) * 9}, "4 inputs do not fit a body that takes 4"),
        ({"stacked": ()}, "the body gives 3 values, not 1"),
    ],
)
def test_what_does_not_fit_is_refused(changes: Any, message: str) -> None:
    with pytest.raises(InvalidModel, match=message):
        refused(**changes)


def test_states_keep_their_type() -> None:
    outer = Builder()
    scan = ScanBuilder(outer, 2)
    state = scan.state(outer.input("s", (1,), "f32"))
    grown = scan.body.emit("broadcast", state, shape=(4,))
    with pytest.raises(InvalidModel, match="a state must keep its type"):
        scan.finish([grown], [])
