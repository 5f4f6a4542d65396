"""Models that run in steps: values of the run, control flow, ops on the host between programs."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from onnx import TensorProto, helper
from onnx_models import floats
from onnx_sessions import any_of, check, hosted, info, model_with, ran

import rooftile as rt
from rooftile import pipeline
from rooftile.ir.graph import Graph
from rooftile.session import segment

X = floats(4, 6)
make = helper.make_node


def scalar(value: Any) -> Any:
    return np.asarray(value)


def test_values_that_are_inputs() -> None:
    shape = np.array([3, 8])
    model = model_with(
        [make("Reshape", ["x", "shape"], ["r"], name="it"), make("Relu", ["r"], ["y"])],
        [info("x", X), info("shape", shape)],
        any_of("y"),
    )
    session = ran(model, {"x": X, "shape": shape})
    for other in ([2, 12], [24], [-1, 2, 2], [3, 8]):
        if len(other) == 2:
            check(session, model, {"x": X, "shape": np.array(other)})
    assert hosted(session) == []
    [entry] = [entry for entry in session.decisions if entry.stage == "specialise"]
    assert entry.subject == ("shape",)
    assert entry.reason == "node it must know what they hold"
    assert len(session.programs) == 2


def test_values_computed_from_inputs() -> None:
    model = model_with(
        [
            make("Mul", ["a", "b"], ["p"]),
            make("Concat", ["p", "b"], ["shape"], axis=0),
            make("Expand", ["x", "shape"], ["y"]),
        ],
        [info("x", shape=[1, 1]), info("a", np.ones(1, np.int64)), info("b", np.ones(1, np.int64))],
        any_of("y"),
    )
    feeds = {"x": floats(1, 1), "a": np.array([2]), "b": np.array([3])}
    session = ran(model, feeds)
    assert session.run(None, feeds)[0].shape == (6, 3)
    assert hosted(session) == []


def changing_slices() -> Any:
    return model_with(
        [
            make("Relu", ["x"], ["r"]),
            make("Slice", ["r", "from", "to"], ["s"], name="cut"),
            make("Neg", ["s"], ["y"]),
        ],
        [info("x", X), info("from", np.zeros(1, np.int64)), info("to", np.zeros(1, np.int64))],
        any_of("y"),
    )


def test_values_that_change_all_the_time_go_to_the_host() -> None:
    model = changing_slices()
    x = floats(40, 2)
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_value = 40
    model.graph.input[0].type.tensor_type.shape.dim[1].dim_value = 2
    session = rt.InferenceSession(model.SerializeToString())
    for start in range(20):
        check(session, model, {"x": x, "from": np.array([start]), "to": np.array([start + 5])})
    assert hosted(session) == ["Slice"]


def test_shapes_that_change_all_the_time_are_interpreted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segment, "MAX_COMPILATIONS", 2)
    model = model_with(
        [
            make("NonZero", ["x"], ["n"]),
            make("Constant", [], ["one"], value_int=1),
            make("CumSum", ["n", "one"], ["y"]),
        ],
        [info("x", shape=[9])],
        any_of("y"),
    )
    session = rt.InferenceSession(model.SerializeToString())
    for count in range(1, 9):
        check(session, model, {"x": (np.arange(9) < count).astype(np.float32)})
    assert [entry.verdict for entry in session.decisions if entry.stage == "interpret"] == [
        "interpreted"
    ]
    assert len(session.programs) == 2


def test_sizes_that_change_stay_open(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[Graph] = []
    real = pipeline.compile_graph

    def compile_graph(graph: Graph, *rest: Any) -> pipeline.Compilation:
        compiled.append(graph)
        return real(graph, *rest)

    monkeypatch.setattr(pipeline, "compile_graph", compile_graph)
    model = model_with(
        [
            make("NonZero", ["x"], ["n"]),
            make("Cast", ["n"], ["f"], to=1),
            make("Sqrt", ["f"], ["y"]),
        ],
        [info("x", shape=["count"])],
        any_of("y"),
    )
    session = rt.InferenceSession(model.SerializeToString())
    for count in (40, 50, 20, 60, 33, 2, 50):
        check(session, model, {"x": (np.arange(70) < count).astype(np.float32)})
    check(session, model, {"x": np.ones(2000, np.float32)})
    assert len(compiled) == 3  # for 40, for all others, and for 2, which is less than a vector


def branch(name: str, nodes: list[Any], output: str) -> Any:
    return helper.make_graph(nodes, name, [], any_of(output))


def branches(condition: list[Any], *inputs: Any) -> Any:
    """y = -|x| or 2 x, by a condition; both branches capture a value of the graph around them."""
    then = branch("then", [make("Abs", ["r"], ["a"]), make("Neg", ["a"], ["t"])], "t")
    other = branch("other", [make("Add", ["r", "x"], ["e"])], "e")
    nodes = [
        make("Identity", ["x"], ["r"]),
        *condition,
        make("If", ["c"], ["i"], then_branch=then, else_branch=other, name="choice"),
        make("Sqrt", ["i"], ["root"]),
        make("Abs", ["i"], ["y"]),
    ]
    return model_with(nodes, [info("x", X), *inputs], any_of("y"))


def test_a_condition_that_is_an_input() -> None:
    model = branches([], info("c", scalar(True)))
    session = ran(model, {"x": X, "c": scalar(True)})
    check(session, model, {"x": X, "c": scalar(False)})
    assert hosted(session) == []
    assert len(session.programs) == 2


def test_a_condition_computed_from_data() -> None:
    sums = [
        make("ReduceSum", ["x"], ["s"], keepdims=0),
        make("Constant", [], ["zero"], value_float=0.0),
        make("Greater", ["s", "zero"], ["c"]),
    ]
    model = branches(sums)
    session = ran(model, {"x": np.abs(X)})
    check(session, model, {"x": -np.abs(X)})
    assert hosted(session) == ["If"]


def loop(*, scan: bool = True, body: list[Any] | None = None, shape: Any = (4, 6)) -> Any:
    """The body of a loop that adds x up, and gives every sum."""
    nodes = body or [
        make("Identity", ["going"], ["on"]),
        make("Add", ["sum", "x"], ["next"]),
    ]
    return helper.make_graph(
        [*nodes, make("Identity", ["next"], ["row"])] if scan else nodes,
        "body",
        [
            helper.make_tensor_value_info("trip", TensorProto.INT64, []),
            helper.make_tensor_value_info("going", TensorProto.BOOL, []),
            info("sum", shape=shape),
        ],
        [
            helper.make_tensor_value_info("on", TensorProto.BOOL, []),
            info("next", shape=shape),
            *([info("row", shape=shape)] if scan else []),
        ],
    )


def looped(trips: Any, before: list[Any] = [], inputs: Any = (), **more: Any) -> Any:  # noqa: B006
    node = make("Loop", [trips, "", "x"], ["last", "rows"], body=loop(**more), name="adds")
    return model_with([*before, node], [info("x", X), *inputs], any_of("last", "rows"))


def test_trips_that_are_an_input_are_unrolled() -> None:
    model = looped("n", inputs=[info("n", scalar(np.int64(3)))])
    session = ran(model, {"x": X, "n": scalar(np.int64(3))})
    check(session, model, {"x": X, "n": scalar(np.int64(5))})
    assert hosted(session) == []


def test_trips_computed_from_data() -> None:
    before = [make("ReduceSum", ["x"], ["s"], keepdims=0), make("Cast", ["s"], ["count"], to=7)]
    model = looped("count", before)
    few = np.zeros_like(X)
    few[0, :2] = 1
    session = ran(model, {"x": few})
    assert hosted(session) == ["Loop"]
    few[0, 2] = 3
    check(session, model, {"x": few})


def test_a_loop_of_many_trips() -> None:
    model = looped("n", inputs=[info("n", scalar(np.int64(3)))])
    session = ran(model, {"x": X, "n": scalar(np.int64(200))}, rtol=1e-4)
    assert hosted(session) == []


def test_a_loop_without_trips() -> None:
    model = looped("n", inputs=[info("n", scalar(np.int64(3)))])
    ran(model, {"x": X, "n": scalar(np.int64(0))})


def test_a_loop_that_ends_by_its_condition() -> None:
    body = [
        make("Add", ["sum", "x"], ["next"]),
        make("ReduceMax", ["next"], ["most"], keepdims=0),
        make("Constant", [], ["bound"], value_float=9.0),
        make("Less", ["most", "bound"], ["on"]),
    ]
    session = ran(looped("", body=body), {"x": np.abs(X)})
    assert hosted(session) == ["Loop"]


COUNTS = [
    make("NonZero", ["e"], ["z"]),
    make("Size", ["z"], ["size"]),
    make("Cast", ["size"], ["count"], to=1),
    make("Add", ["s", "e"], ["sum"]),
    make("Add", ["sum", "count"], ["n"]),
]
"""An op in a body that only the host computes."""


def scanned(length: int, host: bool, **attributes: Any) -> tuple[Any, dict[str, Any]]:
    before = COUNTS if host else [make("Add", ["s", "e"], ["n"])]
    body = helper.make_graph(
        [*before, make("Mul", ["n", "e"], ["row"])],
        "body",
        [info("s", shape=[3]), info("e", shape=[3])],
        [info("n", shape=[3]), info("row", shape=[3])],
    )
    feeds = {"s0": floats(3), "x": floats(length, 3, seed=1)}
    if attributes.get("scan_input_axes"):
        feeds["x"] = feeds["x"].T.copy()
    node = make("Scan", ["s0", "x"], ["last", "rows"], body=body, num_scan_inputs=1, **attributes)
    inputs = [info(name, array) for name, array in feeds.items()]
    return model_with([node], inputs, any_of("last", "rows")), feeds


@pytest.mark.parametrize("length", [5, 100])
@pytest.mark.parametrize(
    "attributes",
    [
        {},
        {"scan_input_axes": [1], "scan_output_axes": [1]},
        {"scan_input_directions": [1], "scan_output_directions": [1]},
    ],
)
def test_scans(length: int, attributes: dict[str, Any]) -> None:
    for host in (False, True):
        model, feeds = scanned(length, host, **attributes)
        session = ran(model, feeds, rtol=1e-4, atol=1e-5)
        assert sorted(hosted(session)) == (["NonZero", "Scan"] if host else [])


def test_scans_of_nothing_and_of_unequal_lengths() -> None:
    model, feeds = scanned(3, True)
    model.graph.input[1].type.tensor_type.shape.dim[0].dim_param = "n"
    session = rt.InferenceSession(model.SerializeToString())
    last, rows = session.run(None, {**feeds, "x": feeds["x"][:0]})
    np.testing.assert_array_equal(last, feeds["s0"])
    assert rows.shape == (0, 3)


def test_strings_go_in_and_out() -> None:
    texts = np.array([["Ab", "c"], ["", "d"]])
    model = model_with(
        [
            make("Gather", ["t", "places"], ["g"], axis=1),
            make("Equal", ["g", "g"], ["e"]),
            make("Cast", ["e"], ["n"], to=1),
            make("ReduceSum", ["n"], ["y"], keepdims=0),
        ],
        [info("t", texts), info("places", np.zeros(1, np.int64))],
        [*any_of("g"), *any_of("y")],
        opset=13,
    )
    session = rt.InferenceSession(model.SerializeToString())
    for given in (texts, texts.astype(object), texts.astype("S")):
        found, total = session.run(None, {"t": given, "places": np.array([1])})
        assert found.dtype == object and found.tolist() == [["c"], ["d"]]
        assert total == 2
    assert hosted(session) == ["Gather", "Equal"]
    with pytest.raises(rt.InvalidInput, match="input 't' holds float32, the model takes strings"):
        session.run(None, {"t": X[:2, :2], "places": np.array([1])})


def test_sequences_and_optionals() -> None:
    kind = helper.make_tensor_type_proto(TensorProto.FLOAT, None)
    items = helper.make_value_info("items", helper.make_sequence_type_proto(kind))
    model = model_with(
        [
            make("SequenceInsert", ["items", "x"], ["more"]),
            make("ConcatFromSequence", ["more"], ["c"], axis=0),
            make("Neg", ["c"], ["y"]),
        ],
        [items, info("x", X)],
        any_of("y"),
    )
    session = ran(model, {"items": [X, 2 * X], "x": X})
    check(session, model, {"items": [], "x": X})
    assert hosted(session) == ["SequenceInsert", "ConcatFromSequence"]
    with pytest.raises(rt.InvalidInput, match="input 'items' is a ndarray, the model takes a list"):
        session.run(None, {"items": X, "x": X})
    with pytest.raises(rt.InvalidInput, match="an element of input 'items' holds float64"):
        session.run(None, {"items": [X.astype(float)], "x": X})


def test_inputs_of_steps_are_checked() -> None:
    model = model_with([make("NonZero", ["x"], ["y"])], [info("x", X)], any_of("y"))
    session = rt.InferenceSession(model.SerializeToString())
    with pytest.raises(rt.InvalidInput, match=r"input 'x' has the shape \[2\], the model takes"):
        session.run(None, {"x": X[0, :2]})
    with pytest.raises(rt.InvalidInput, match="input 'x' holds int64, the model takes float32"):
        session.run(None, {"x": np.ones((4, 6), np.int64)})
    with pytest.raises(rt.InvalidInput, match="small runs in steps"):
        session.compiled_for()


def test_outputs_belong_to_the_caller() -> None:
    nodes = [make("NonZero", ["x"], ["y"]), make("Identity", ["x"], ["z"])]
    session = rt.InferenceSession(
        model_with(nodes, [info("x", X)], any_of("y", "z")).SerializeToString()
    )
    x = X.copy()
    _, z = session.run(None, {"x": x})
    z[...] = 0
    np.testing.assert_array_equal(x, X)


def test_errors_on_the_host_name_the_node() -> None:
    model = model_with(
        [make("Compress", ["x", "c"], ["y"], name="pick")],
        [info("x", X), info("c", np.ones(30, np.bool_))],
        any_of("y"),
    )
    session = rt.InferenceSession(model.SerializeToString())
    with pytest.raises(
        rt.InvalidInput, match=r"node pick \(Compress\): a condition of shape \[30\]"
    ):
        session.run(None, {"x": X, "c": np.ones(30, np.bool_)})


def test_unknown_ops_are_named_before_anything_runs() -> None:
    nodes = [make("NonZero", ["x"], ["z"]), make("Frobnicate", ["z"], ["y"], name="odd")]
    with pytest.raises(rt.UnsupportedOp, match=r"node odd: op Frobnicate of ai\.onnx"):
        rt.InferenceSession(model_with(nodes, [info("x", X)], any_of("y")).SerializeToString())
    inner = branch("then", [make("Frobnicate", ["x"], ["t"], name="deep")], "t")
    nodes = [
        make("ReduceSum", ["x"], ["s"], keepdims=0),
        make("Cast", ["s"], ["c"], to=9),
        make("If", ["c"], ["y"], then_branch=inner, else_branch=inner),
    ]
    with pytest.raises(rt.UnsupportedOp, match="op Frobnicate"):
        rt.InferenceSession(model_with(nodes, [info("x", X)], any_of("y")).SerializeToString())


def test_narrow_types_go_in_and_out() -> None:
    x = np.array([0.3, -1.7, 500.0, np.nan, 1e-3], np.float32)
    for code, dtype in ((17, ml_dtypes.float8_e4m3fn), (19, ml_dtypes.float8_e5m2)):
        model = model_with(
            [make("Cast", ["x"], ["n"], to=code, saturate=0), make("Cast", ["n"], ["y"], to=1)],
            [info("x", x)],
            [helper.make_tensor_value_info("n", code, [5]), *any_of("y")],
            opset=19,
        )
        session = rt.InferenceSession(model.SerializeToString())
        narrow, wide = session.run(None, {"x": x})
        assert narrow.dtype == dtype
        np.testing.assert_array_equal(narrow.view(np.uint8), x.astype(dtype).view(np.uint8))
        np.testing.assert_array_equal(wide, x.astype(dtype).astype(np.float32))
        assert hosted(session) == []


def test_narrow_values_pass_between_steps() -> None:
    x = np.array([0, 3, -8, 7], ml_dtypes.int4)
    model = model_with(
        [
            make("Reshape", ["x", "shape"], ["r"]),
            make("Cast", ["r"], ["f"], to=1),
            make("NonZero", ["f"], ["y"]),
        ],
        [helper.make_tensor_value_info("x", 22, [4]), info("shape", np.ones(2, np.int64))],
        [helper.make_tensor_value_info("r", 22, [2, 2]), *any_of("y")],
        opset=21,
    )
    session = rt.InferenceSession(model.SerializeToString())
    r, y = session.run(None, {"x": x, "shape": np.array([2, 2])})
    assert (r.dtype, r.tolist()) == (x.dtype, [[0, 3], [-8, 7]])
    assert y.tolist() == [[0, 1, 1], [1, 0, 1]]
    with pytest.raises(rt.InvalidInput, match="holds int64, the model takes int4"):
        session.run(None, {"x": np.zeros(4, np.int64), "shape": np.array([2, 2])})


def test_threads() -> None:
    model = changing_slices()
    session = rt.InferenceSession(model.SerializeToString())

    def work(start: int) -> None:
        found = session.run(None, {"x": X, "from": np.array([start]), "to": np.array([4])})
        np.testing.assert_array_equal(found[0], -np.maximum(X, 0)[start:])

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(work, [n % 4 for n in range(60)]))


def test_open_dims_of_values_with_long_names_are_told_apart() -> None:
    name = "a_value_with_a_name_that_is_longer_than_a_symbol_can_be"
    nodes = [make("SequenceAt", ["s", "at"], [name]), make("Shape", [name], ["y"])]
    inputs = [
        helper.make_tensor_sequence_value_info("s", TensorProto.FLOAT, None),
        info("at", np.array(0)),
    ]
    session = rt.InferenceSession(model_with(nodes, inputs, any_of("y")).SerializeToString())
    items = [floats(4, 3), floats(7, 5), floats(9, 2), floats(5, 5)]
    for place, item in enumerate(items):
        [found] = session.run(None, {"s": items, "at": np.array(place)})
        assert found.tolist() == list(item.shape)
