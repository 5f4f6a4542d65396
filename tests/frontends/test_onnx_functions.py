"""Functions of models and of ONNX itself, read as the nodes of their bodies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from onnx import defs, helper
from onnx_models import Const, agrees, floats, model_of, one_node, same

from rooftile.core.errors import InvalidModel, UnsupportedOp
from rooftile.frontends.onnx import functions, nodes, read
from rooftile.ops.evaluate import evaluate

X = floats(2, 3)
OPSETS = [helper.make_opsetid("", 17), helper.make_opsetid("mine", 1)]


def body(name: str, inputs: Sequence[str], outputs: Sequence[str], *steps: Any, **more: Any) -> Any:
    """A function of the domain "mine"."""
    return helper.make_function("mine", name, inputs, outputs, steps, OPSETS, **more)


def model(steps: Sequence[Any], bodies: Sequence[Any], outputs: Sequence[str] = ("y",)) -> Any:
    """A model with one input x."""
    made = model_of(steps, {"x": X}, outputs, domains=["mine"])
    made.functions.extend(bodies)
    return made


def call(
    op: str, inputs: Sequence[str], outputs: Sequence[str], name: str = "", **attributes: Any
) -> Any:
    """A node that calls a function."""
    return helper.make_node(op, inputs, outputs, domain="mine", name=name, **attributes)


def scaled() -> Any:
    """alpha * x + alpha, in names that callers use as well."""
    constant = helper.make_node("Constant", [], ["y"])
    reference = helper.make_attribute("value_float", 0.0)
    reference.ref_attr_name = "alpha"
    constant.attribute.append(reference)
    return body(
        "Scaled",
        ["x"],
        ["z"],
        constant,
        helper.make_node("Mul", ["x", "y"], ["t"]),
        helper.make_node("Add", ["t", "y"], ["z"]),
        attribute_protos=[helper.make_attribute("alpha", 3.0)],
    )


def test_nested_functions_with_attributes() -> None:
    twice = body(
        "Twice",
        ["a"],
        ["b"],
        call("Scaled", ["a"], ["x"], alpha=0.5),
        call("Scaled", ["x"], ["b"]),
    )
    graph = agrees(model([call("Twice", ["x"], ["y"], "Twice")], [twice, scaled()]), {"x": X})
    assert {node.origin for node in graph.nodes} == {("Twice",)}


def test_inputs_and_outputs_that_a_caller_leaves_out() -> None:
    clip = body(
        "Both",
        ["x", "low", "high"],
        ["y", "z"],
        helper.make_node("Clip", ["x", "low", "high"], ["y"]),
        helper.make_node("Unknown", ["x"], ["z"]),
    )
    steps = [helper.make_node("ReduceMax", ["x"], ["top"], keepdims=0)]
    steps.append(call("Both", ["x", "", "top"], ["y"], "Both"))
    made = model(steps, [clip])
    found = evaluate(read(made), {"x": X})
    np.testing.assert_array_equal(found["y"], X.astype(np.float64))
    made.graph.node[1].output.append("other")
    with pytest.raises(UnsupportedOp, match=r"node Both/Unknown_1: op Unknown of ai.onnx"):
        read(made)


def test_functions_that_never_end() -> None:
    first = body("First", ["x"], ["y"], call("Second", ["x"], ["y"]))
    second = body("Second", ["x"], ["y"], call("First", ["x"], ["y"]))
    made = model([call("First", ["x"], ["y"])], [first, second])
    with pytest.raises(InvalidModel, match=r"function mine\.First calls itself"):
        read(made)


def test_functions_that_grow_without_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    def layer(number: int) -> Any:
        inner = f"F{number - 1}" if number else "Identity"
        steps = [
            helper.make_node(inner, [a], [b], domain="mine" if number else "")
            for a, b in (("x", "t"), ("t", "y"))
        ]
        return body(f"F{number}", ["x"], ["y"], *steps)

    monkeypatch.setattr(nodes, "MAX_NODES", 1000)
    made = model([call("F12", ["x"], ["y"])], [layer(number) for number in range(13)])
    with pytest.raises(InvalidModel, match=r"come to more than 1000 nodes"):
        read(made)
    monkeypatch.setattr(nodes, "MAX_DEPTH", 8)
    with pytest.raises(InvalidModel, match=r"functions call functions more than 8 deep"):
        read(made)


@pytest.mark.parametrize(
    ("bodies", "step", "message"),
    [
        ([scaled(), scaled()], None, r"function mine\.Scaled is defined twice"),
        ([scaled()], call("Scaled", ["x", "x"], ["y"]), r"has 2 inputs, function mine\.Scaled"),
        ([scaled()], call("Scaled", ["x"], ["y", "w"]), r"has 2 outputs, function mine\.Scaled"),
        ([body("Empty", ["x"], ["z"])], call("Empty", ["x"], ["y"]), r"output 'z' is not computed"),
    ],
)
def test_functions_that_do_not_fit(bodies: list[Any], step: Any, message: str) -> None:
    step = step or call("Scaled", ["x"], ["y"])
    with pytest.raises(InvalidModel, match=message):
        read(model([step], bodies))


def test_names_that_are_not_text_are_refused() -> None:
    made = model([call("Scaled", ["x"], ["y"])], [scaled()])
    raw = made.SerializeToString().replace(b"\x12\x01t", b"\x12\x01\xff")
    with pytest.raises(InvalidModel):
        read(raw)


@pytest.mark.parametrize("causal", [0, 1])
def test_attention_is_read_as_its_body(causal: int) -> None:
    q, k, v = floats(2, 4, 3, 8), floats(2, 2, 5, 8, seed=1), floats(2, 2, 5, 6, seed=2)
    made, feeds = one_node("Attention", q, k, v, opset=23, is_causal=causal)
    graph = read(made)
    assert {node.origin for node in graph.nodes} == {("it",)}
    k, v = (np.repeat(part, 2, 1) for part in (k, v))
    scores = np.einsum("bhqd,bhkd->bhqk", q, k) / np.sqrt(8)
    if causal:
        scores = np.where(np.tri(3, 5, dtype=bool), scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    wanted = np.einsum("bhqk,bhkd->bhqd", weights, v)
    np.testing.assert_allclose(evaluate(graph, feeds)["out0"], wanted, 1e-5, 1e-5)


def test_losses_are_read_as_their_bodies() -> None:
    scores, labels = floats(3, 5, 2), np.array([[0, 1], [4, 2], [3, 3]], np.int64)
    for reduction in ("mean", "sum", "none"):
        same("SoftmaxCrossEntropyLoss", scores, labels, reduction=reduction)
        more = {"reduction": reduction, "ignore_index": 3}
        same("NegativeLogLikelihoodLoss", scores, labels, Const(floats(5)), **more)


def test_the_body_nearest_to_the_opset_is_taken() -> None:
    assert functions._nearest([18, 13], 17) == 13
    assert functions._nearest([18], 9) == 18
    assert functions._nearest([], 9) is None
    same("Shrink", X, opset=9, bias=0.25, lambd=0.5)  # its body is of opset 18


def test_every_context_of_a_schema_can_be_asked_for() -> None:
    """Ops whose bodies depend on their inputs give none where the inputs make no sense."""
    node = helper.make_node("Attention", ["q"], ["y"])
    assert functions.standard_function(node, "", {"": defs.onnx_opset_version()}, [None]) is None
