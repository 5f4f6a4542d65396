"""Graphs that no exporter writes: circles, depth, growth without end. Each is refused clearly."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from onnx_models import floats, truth
from onnx_sessions import any_of, info

import rooftile as rt
from rooftile.core.errors import InvalidInput, InvalidModel

X = floats(2, 3)
make = helper.make_node
OPSETS = [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]


def model_of(
    nodes: Sequence[Any],
    outputs: Sequence[str] = ("y",),
    inputs: Sequence[Any] = (),
    constants: dict[str, Any] | None = None,
    functions: Sequence[Any] = (),
) -> bytes:
    held = [numpy_helper.from_array(np.asarray(a), n) for n, a in (constants or {}).items()]
    graph = helper.make_graph(
        list(nodes), "hostile", [info("x", X), *inputs], any_of(*outputs), held
    )
    model = helper.make_model(graph, opset_imports=OPSETS, ir_version=8, functions=list(functions))
    return bytes(model.SerializeToString())


def function(name: str, *nodes: Any) -> Any:
    return helper.make_function("own", name, ["a"], ["b"], list(nodes), OPSETS)


def call(name: str, given: str, result: str) -> Any:
    return make(name, [given], [result], domain="own", name=f"call_{result}")


def chain(op: str, count: int) -> list[Any]:
    names = ["a", *(f"t{number}" for number in range(count - 1)), "b"]
    return [call(op, *pair) for pair in pairwise(names)]


def refused(content: bytes, message: str, **feeds: Any) -> None:
    with pytest.raises(InvalidModel, match=message):
        rt.InferenceSession(content).run(None, {"x": X, **feeds})


def test_circles() -> None:
    refused(model_of([make("Add", ["x", "y"], ["y"], name="own")]), "in a cycle: own$")
    nodes = [make("Relu", ["b"], ["y"], name="r"), make("Add", ["x", "y"], ["b"], name="s")]
    refused(model_of(nodes), "in a cycle: r, s$")
    branch = helper.make_graph([make("Neg", ["y"], ["t"])], "branch", [], any_of("t"))
    nodes = [make("If", ["c"], ["y"], name="if", then_branch=branch, else_branch=branch)]
    refused(model_of(nodes, constants={"c": True}), "in a cycle: if$")


@pytest.mark.parametrize("op", ["Relu", "NonZero"])
def test_functions_that_call_themselves(op: str) -> None:
    nodes = [call("F", "x", "h"), make(op, ["h"], ["y"])]
    refused(model_of(nodes, functions=[function("F", call("F", "a", "b"))]), r"own\.F calls itself")
    both = [function("F", call("G", "a", "b")), function("G", call("F", "a", "b"))]
    refused(model_of(nodes, functions=both), r"own\.F calls itself")


def test_functions_that_call_themselves_in_a_branch() -> None:
    branch = helper.make_graph([call("F", "a", "t")], "branch", [], any_of("t"))
    steps = [
        make("ReduceMax", ["a"], ["top"], keepdims=0),
        make("Cast", ["top"], ["c"], to=9),
        make("If", ["c"], ["b"], then_branch=branch, else_branch=branch),
    ]
    content = model_of([call("F", "x", "y")], functions=[function("F", *steps)])
    refused(content, r"function own\.F calls itself")


@pytest.mark.parametrize(("depth", "width"), [(10, 10), (40, 2), (6, 60)])
@pytest.mark.parametrize("last", ["Relu", "NonZero"])
def test_functions_that_stand_for_billions_of_nodes(depth: int, width: int, last: str) -> None:
    bodies = [function(f"F{n}", *chain(f"F{n + 1}", width)) for n in range(depth)]
    bodies.append(function(f"F{depth}", make(last, ["a"], ["b"])))
    content = model_of([call("F0", "x", "y")], functions=bodies)
    refused(content, "node call_y .*: the functions of the model come to more than 100000 nodes")


def test_functions_that_are_called_too_deep() -> None:
    bodies = [function(f"F{n}", call(f"F{n + 1}", "a", "b")) for n in range(80)]
    bodies.append(function("F80", make("Relu", ["a"], ["b"])))
    content = model_of([call("F0", "x", "y")], functions=bodies)
    refused(content, "functions call functions more than 64 deep")


def test_many_small_calls_are_counted_together() -> None:
    body = function(
        "F", *[make("Relu", ["a" if n == 0 else f"t{n - 1}"], [f"t{n}"]) for n in range(999)]
    )
    body.node.append(make("Neg", ["t998"], ["b"]))
    nodes = [call("F", "x", f"y{n}") for n in range(101)]
    content = model_of(nodes, [f"y{n}" for n in range(101)], functions=[body])
    refused(content, "node call_y100 .*: the functions of the model come to more than 100000 nodes")


def nested_branches(depth: int) -> bytes:
    graph = helper.make_graph([make("Relu", ["x"], ["t"])], "in", [], any_of("t"))
    for level in range(depth):
        other = helper.make_graph([make("Neg", ["x"], ["e"])], "else", [], any_of("e"))
        node = make("If", ["c"], [f"o{level}"], then_branch=graph, else_branch=other)
        graph = helper.make_graph([node], "then", [], any_of(f"o{level}"))
    graph.input.extend([info("x", X), info("c", np.array(True))])
    return bytes(helper.make_model(graph, opset_imports=OPSETS, ir_version=8).SerializeToString())


def test_branches_in_branches_as_deep_as_a_file_can_hold_them() -> None:
    session = rt.InferenceSession(nested_branches(20))
    [found] = session.run(None, {"x": X, "c": np.array(True)})
    np.testing.assert_array_equal(found, np.maximum(X, 0))
    [found] = session.run(None, {"x": X, "c": np.array(False)})
    np.testing.assert_array_equal(found, -X)


def test_branches_nested_deeper_than_protobuf_reads() -> None:
    model = onnx.ModelProto(ir_version=8, opset_import=OPSETS)
    model.graph.output.add().name = "y"
    graph = model.graph
    for _ in range(2000):  # only a program that holds the model in memory can make it so deep
        node = graph.node.add(op_type="If", input=["c"], output=["y"])
        graph = node.attribute.add(name="then_branch", type=5).g
    with pytest.raises(InvalidModel, match=r"nested too deep"):
        rt.InferenceSession(model)


def nested_loops(depth: int, trips: int) -> bytes:
    inner = make("Relu", ["s"], ["r"])
    for level in range(depth):
        names = [f"{part}{level}" for part in ("n", "c", "s", "r")]
        if level:
            inner.input[2] = names[2]
            inner.output[0] = names[3]
        else:
            inner = make("Relu", [names[2]], [names[3]])
        inputs = [info(names[0], np.array(1)), info(names[1], np.array(True)), info(names[2], X)]
        body = helper.make_graph([inner], "body", inputs, any_of(names[1], names[3]))
        inner = make("Loop", ["n", "", "x"], ["y"], body=body)
    return model_of([inner], constants={"n": trips})


def test_loops_in_loops() -> None:
    [found] = rt.InferenceSession(nested_loops(12, 1)).run(None, {"x": X})
    np.testing.assert_array_equal(found, np.maximum(X, 0))
    [found] = rt.InferenceSession(nested_loops(3, 64)).run(None, {"x": X})
    np.testing.assert_array_equal(found, np.maximum(X, 0))


def test_unrolled_loops_that_grow() -> None:
    """Each trip doubles its state, so that it cannot be one body for all trips."""
    inputs = [info("n", np.array(1)), info("c", np.array(True)), info("s", X)]
    nodes = [make("Concat", ["s", "s"], ["r"], axis=0)]
    body = helper.make_graph(nodes, "body", inputs, any_of("c", "r"))
    content = model_of([make("Loop", ["m", "", "x"], ["y"], body=body)], constants={"m": 64})
    refused(content, "Concat.*concat would give a tensor of shape .* which is too large")


@pytest.mark.parametrize("depth", [9, 40])
def test_sequences_of_sequences(depth: int) -> None:
    kind = helper.make_tensor_type_proto(1, None)
    for _ in range(depth):
        kind = helper.make_sequence_type_proto(kind)
    graph = helper.make_graph(
        [make("SequenceLength", ["s"], ["y"])],
        "g",
        [helper.make_value_info("s", kind)],
        any_of("y"),
    )
    model = helper.make_model(graph, opset_imports=OPSETS, ir_version=8)
    session = rt.InferenceSession(model.SerializeToString())
    with pytest.raises(InvalidInput, match="the model takes a list"):
        session.run(None, {"s": [X]})


def linear(ops: Sequence[str], count: int, start: str = "x") -> list[Any]:
    names = [start, *(f"t{number}" for number in range(count - 1)), "y"]
    pairs = pairwise(names)
    return [make(ops[n % len(ops)], [a], [b]) for n, (a, b) in enumerate(pairs)]


@pytest.mark.parametrize("ops", [["Neg", "Relu", "Abs"], ["Tanh", "Softmax"]])
def test_chains_of_hundreds_of_nodes_compile_as_several_kernels(ops: list[str]) -> None:
    content = model_of(linear(ops, 120))
    session = rt.InferenceSession(content)
    wanted = truth(onnx.load_from_string(content), {"x": X})
    np.testing.assert_allclose(session.run(None, {"x": X})[0], wanted[0], rtol=1e-5, atol=1e-6)
    assert len(session.programs[0].launches) > 1


@pytest.mark.parametrize(
    ("op", "attributes", "constants"),
    [
        ("Transpose", {}, {}),
        ("Pad", {}, {"p": np.array([1, 0, 0, 0])}),
        ("Slice", {}, {"a": np.array([0]), "b": np.array([1 << 40]), "c": np.array([0])}),
    ],
)
def test_chains_of_views(op: str, attributes: dict[str, Any], constants: dict[str, Any]) -> None:
    nodes = linear([op], 200)
    for node in nodes:
        node.input.extend(constants)
    nodes.append(make("Neg", ["y"], ["z"]))
    content = model_of(nodes, ["z"], constants=constants)
    [wanted] = truth(onnx.load_from_string(content), {"x": X})
    [found] = rt.InferenceSession(content).run(None, {"x": X})
    np.testing.assert_array_equal(found, wanted)


def test_long_chains_of_what_is_folded() -> None:
    [found] = rt.InferenceSession(model_of(linear(["Identity"], 20_000))).run(None, {"x": X})
    np.testing.assert_array_equal(found, X)
    nodes = linear(["Neg", "Relu"], 10_000, "w")
    [found] = rt.InferenceSession(model_of(nodes, constants={"w": X})).run(None, {"x": X})
    np.testing.assert_array_equal(found, np.maximum(-X, 0) * 0)


def test_long_chains_on_the_host() -> None:
    text = np.array(["a"], object)
    content = model_of(linear(["Identity"], 5_000, "s"), inputs=[info("s", text)])
    assert rt.InferenceSession(content).run(None, {"x": X, "s": text})[0].tolist() == ["a"]


def test_names_that_are_code() -> None:
    name, result = 'x"\\\n\0', 'y\n"}; ret'
    graph = helper.make_graph(
        [make("Relu", [name], [result], name='"\n%s{}')], "g", [info(name, X)], any_of(result)
    )
    model = helper.make_model(graph, opset_imports=OPSETS, ir_version=8)
    [found] = rt.InferenceSession(model.SerializeToString()).run([result], {name: X})
    np.testing.assert_array_equal(found, np.maximum(X, 0))


def test_branches_without_the_outputs_that_are_asked_for() -> None:
    empty = helper.make_graph([], "empty", [], [])
    nodes = [make("If", ["c"], ["y"], name="if", then_branch=empty, else_branch=empty)]
    content = model_of(nodes, inputs=[info("c", np.array(True))])
    refused(content, r"node if \(If\) has 1 outputs, but 0 are computed", c=np.array(True))
