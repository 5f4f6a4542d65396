"""Control flow that is known before the run, parts of models, and what makes a model be cut."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx_models import agrees, floats, model_of
from onnx_sessions import any_of, hosted, info, model_with, ran

import rooftile as rt
from rooftile.core.errors import InvalidModel, NeedsHost, NeedsValue, UnsupportedOp
from rooftile.frontends.onnx import load, outline, read
from rooftile.frontends.onnx.bodies import captured

X = floats(3, 4)
make = helper.make_node


def graph(name: str, nodes: list[Any], inputs: list[Any], outputs: list[str]) -> Any:
    return helper.make_graph(nodes, name, inputs, any_of(*outputs))


def chosen(constant: bool) -> Any:
    """An If of a known condition whose branches read a name of the graph around them."""
    weight = numpy_helper.from_array(np.full((4,), 2, np.float32), "w")
    then = helper.make_graph([make("Mul", ["x", "w"], ["t"])], "then", [], any_of("t"), [weight])
    other = graph("other", [make("Neg", ["x"], ["e"])], [], ["e"])
    return model_of(
        [make("If", ["c"], ["y"], then_branch=then, else_branch=other, name="it")],
        {"x": X},
        ["y"],
        {"c": np.array(constant)},
    )


@pytest.mark.parametrize("constant", [True, False])
def test_branches_of_known_conditions(constant: bool) -> None:
    read_graph = agrees(chosen(constant), {"x": X})
    assert read_graph.producers["y"].op == ("mul" if constant else "neg")


def test_conditions_that_are_not_one_element() -> None:
    model = chosen(True)
    model.graph.initializer[0].CopyFrom(numpy_helper.from_array(np.ones(2, np.bool_), "c"))
    with pytest.raises(InvalidModel, match=r"node it \(If\): the condition must be one element"):
        read(model)


def test_bodies_must_take_what_they_are_given() -> None:
    body = graph("body", [make("Identity", ["a"], ["b"])], [info("a", X)], ["b"])
    model = model_of(
        [make("Loop", ["n", "", "x"], ["y"], body=body, name="it")],
        {"x": X},
        ["y"],
        {"n": np.array(2)},
    )
    with pytest.raises(InvalidModel, match="its body takes 1 inputs, it is given 3"):
        read(model)


def test_what_bodies_capture() -> None:
    model = chosen(True)
    bodies = {item.name: item.g for item in model.graph.node[0].attribute}
    assert captured(bodies["then_branch"]) == ["x"]
    nested = graph("outer", [model.graph.node[0]], [], ["y"])
    assert captured(nested) == ["c", "x"]


def test_nodes_come_after_what_their_bodies_capture() -> None:
    then = graph("then", [make("Neg", ["late"], ["t"])], [], ["t"])
    nodes = [
        make("If", ["c"], ["y"], then_branch=then, else_branch=then),
        make("Abs", ["x"], ["late"]),
    ]
    read_graph = read(model_of(nodes, {"x": X}, ["y"], {"c": np.array(True)}))
    assert [node.op for node in read_graph.nodes] == ["abs", "neg"]


def test_values_that_a_reader_needs_are_named() -> None:
    nodes = [make("Neg", ["n"], ["m"]), make("Abs", ["m"], ["s"]), make("Tile", ["x", "s"], ["y"])]
    model = model_of(nodes, {"x": X, "n": np.ones(2, np.int64)}, ["y"])
    with pytest.raises(NeedsValue, match="repeats that is computed at run time") as caught:
        read(model)
    assert (caught.value.inputs, caught.value.values, caught.value.at) == (("n",), ("s",), 2)
    nodes = [
        make("ReduceSum", ["x"], ["r"], keepdims=0),
        make("Cast", ["r"], ["i"], to=7),
        make("Range", ["zero", "i", "one"], ["y"]),
    ]
    constants = {"zero": np.array(0), "one": np.array(1)}
    with pytest.raises(NeedsValue) as caught:
        read(model_of(nodes, {"x": X}, ["y"], constants))
    assert (caught.value.inputs, caught.value.values) == ((), ("i",))


def test_loops_whose_shapes_grow() -> None:
    body = helper.make_graph(
        [make("Identity", ["on"], ["go"]), make("Concat", ["s", "x"], ["n"], axis=0)],
        "body",
        [
            helper.make_tensor_value_info("trip", TensorProto.INT64, []),
            helper.make_tensor_value_info("on", TensorProto.BOOL, []),
            info("s", shape=["a", 4]),
        ],
        any_of("go", "n"),
    )
    model = model_of(
        [make("Loop", ["n3", "", "x"], ["y"], body=body)], {"x": X}, ["y"], {"n3": np.array(3)}
    )
    session = ran(model, {"x": X})
    assert session.run(None, {"x": X})[0].shape == (12, 4)
    assert hosted(session) == []


def test_loops_that_cannot_be_read() -> None:
    body = helper.make_graph(
        [
            make("ReduceMax", ["s"], ["m"], keepdims=0),
            make("Cast", ["m"], ["go"], to=9),
            make("Neg", ["s"], ["n"]),
        ],
        "body",
        [
            helper.make_tensor_value_info("trip", TensorProto.INT64, []),
            helper.make_tensor_value_info("on", TensorProto.BOOL, []),
            info("s", X),
        ],
        any_of("go", "n"),
    )
    loop = make("Loop", ["n3", "", "x"], ["y"], body=body, name="it")
    model = model_of([loop], {"x": X}, ["y"], {"n3": np.array(3)})
    with pytest.raises(NeedsHost, match=r"node it \(Loop\)"):
        read(model)


def test_the_outline_of_a_model() -> None:
    nodes = [
        make("Relu", ["x"], ["a"]),
        make("NonZero", ["a"], ["z"], name="places"),
        make("Neg", ["x"], ["b"]),
        make("Cast", ["z"], ["c"], to=1),
        make("Constant", [], ["two"], value_float=2.0),
        make("Mul", ["c", "two"], ["y"]),
        make("Abs", ["b"], ["w"]),
    ]
    whole = outline(load(model_of(nodes, {"x": X}, ["y", "w"])))
    first, host, last = whole.steps
    assert (first.inputs, first.outputs) == (("x",), ("a", "w"))
    assert (host.name, host.inputs, host.outputs) == ("places", ("a",), ("z",))
    assert (last.inputs, last.outputs) == (("z",), ("y",))
    assert not whole.is_native


def test_ops_on_strings_that_nobody_knows() -> None:
    texts = np.array(["a"])
    nodes = [make("Add", ["t", "t"], ["y"], name="sum")]
    with pytest.raises(UnsupportedOp, match=r"node sum: op Add of ai.onnx opset 17 of string"):
        outline(load(model_with(nodes, [info("t", texts)], any_of("y"))))


def function_model(called: str, *inner: Any) -> Any:
    """y = called(x) + x; `called` is a function of the model with nodes inside."""
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]
    function = helper.make_function("own", called, ["a"], ["b"], list(inner), opsets)
    nodes = [make(called, ["x"], ["p"], domain="own", name="call"), make("Abs", ["p"], ["y"])]
    made = helper.make_graph(nodes, "g", [info("x", X)], any_of("y"))
    return helper.make_model(made, opset_imports=opsets, functions=[function], ir_version=9)


def test_steps_inside_functions() -> None:
    then = graph("then", [make("Neg", ["f"], ["t"])], [], ["t"])
    other = graph("other", [make("Identity", ["f"], ["e"])], [], ["e"])
    model = function_model(
        "Picks",
        make("NonZero", ["a"], ["z"]),
        make("Cast", ["z"], ["f"], to=1),
        make("ReduceMax", ["f"], ["m"], keepdims=0),
        make("Cast", ["m"], ["c"], to=9),
        make("If", ["c"], ["b"], then_branch=then, else_branch=other),
    )
    session = rt.InferenceSession(model.SerializeToString())
    [y] = session.run(None, {"x": X})
    np.testing.assert_array_equal(y, np.array(np.nonzero(X), np.float32))
    first = next(entry for entry in session.decisions if entry.stage == "host")
    assert first.subject == ("call/NonZero_0",)


def test_functions_that_give_their_input() -> None:
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]
    function = helper.make_function("own", "Same", ["a"], ["a"], [], opsets)
    nodes = [
        make("Same", ["x"], ["p"], domain="own"),
        make("NonZero", ["p"], ["y"]),
    ]
    made = helper.make_graph(nodes, "g", [info("x", X)], any_of("y"))
    model = helper.make_model(made, opset_imports=opsets, functions=[function], ir_version=9)
    [y] = rt.InferenceSession(model.SerializeToString()).run(None, {"x": X})
    np.testing.assert_array_equal(y, np.array(np.nonzero(X)))


def test_functions_without_end() -> None:
    model = function_model(
        "Again", make("Again", ["a"], ["q"], domain="own"), make("NonZero", ["q"], ["b"])
    )
    with pytest.raises(rt.InvalidModel, match="calls itself"):
        rt.InferenceSession(model.SerializeToString())


def test_graphs_in_graphs() -> None:
    inner = graph("g", [make("Neg", ["x"], ["t"])], [], ["t"])
    for _ in range(25):
        inner = graph(
            "g", [make("If", ["c"], ["t"], then_branch=inner, else_branch=inner)], [], ["t"]
        )
        if inner.ByteSize() > 1 << 14:
            break
    node = make("If", ["c"], ["y"], then_branch=inner, else_branch=inner)
    model = model_with([node], [info("x", X), info("c", np.array(True))], any_of("y"))
    session = rt.InferenceSession(model.SerializeToString())
    np.testing.assert_array_equal(session.run(None, {"x": X, "c": np.array(True)})[0], -X)


def narrow_model(code: int, shape: list[int], raw: bytes | None, field: list[int]) -> Any:
    tensor = onnx.TensorProto(name="w", data_type=code, dims=shape)
    if raw is not None:
        tensor.raw_data = raw
    tensor.int32_data.extend(field)
    nodes = [make("Cast", ["w"], ["f"], to=1), make("Add", ["f", "x"], ["y"])]
    model = model_of(nodes, {"x": np.zeros(shape, np.float32)}, ["y"], opset=23)
    model.graph.initializer.append(tensor)
    return model


@pytest.mark.parametrize(
    ("code", "raw", "field", "wanted"),
    [
        (22, b"\x81\x0f", [], [1, -8, -1]),
        (21, b"\x81\x0f", [], [1, 8, 15]),
        (21, None, [0x81, 0x0F], [1, 8, 15]),
        (25, b"\x1b", [], [3, 2, 1]),
        (26, b"\x1b", [], [-1, -2, 1]),
        (17, b"\x38\xb8\x7e", [], [1.0, -1.0, 448.0]),
        (19, b"\x3c\x7c\xbc", [], [1.0, np.inf, -1.0]),
        (23, b"\xf2\x07", [], [1.0, -6.0, 6.0]),
        (24, b"\x7f\x80\x7e", [], [1.0, 2.0, 0.5]),
    ],
)
def test_weights_of_narrow_types(code: int, raw: Any, field: Any, wanted: Any) -> None:
    session = rt.InferenceSession(narrow_model(code, [3], raw, field).SerializeToString())
    [y] = session.run(None, {"x": np.zeros(3, np.float32)})
    assert y.tolist() == wanted


def test_damaged_weights_of_narrow_types() -> None:
    with pytest.raises(rt.InvalidModel, match="tensor w needs 2 bytes of data but has 5"):
        read(narrow_model(22, [3], b"12345", []))


def test_narrow_values_are_not_taken_for_what_holds_them() -> None:
    nodes = [make("Add", ["x", "x"], ["y"], name="sum")]
    x = helper.make_tensor_value_info("x", 22, [2])
    with pytest.raises(rt.UnsupportedType, match=r"node sum \(Add\) on int4 is not supported"):
        read(model_with(nodes, [x], any_of("y"), 21))
