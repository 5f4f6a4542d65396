"""Files that are damaged, hostile or incomplete, and what signatures say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import helper, numpy_helper
from onnx_models import agrees, floats, model_of

from rooftile.core.errors import InvalidModel, RooftileError, UnsupportedOp, UnsupportedType
from rooftile.frontends.onnx import read, signature
from rooftile.frontends.onnx.registry import find, known
from rooftile.frontends.onnx.tensors import to_array
from rooftile.ops.evaluate import evaluate

X = floats(2, 3)


def add_model(**more: Any) -> Any:
    nodes = [helper.make_node("Add", ["x", "c"], ["y"], name="sum")]
    return model_of(nodes, {"x": X}, ["y"], {"c": X}, **more)


def symbolic(*shapes: tuple[Any, ...]) -> Any:
    infos = [helper.make_tensor_value_info(f"x{n}", 1, shape) for n, shape in enumerate(shapes)]
    nodes = [helper.make_node("Max", [info.name for info in infos], ["y"])]
    output = helper.make_tensor_value_info("y", 1, None)
    graph = helper.make_graph(nodes, "g", infos, [output])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def test_a_model_comes_as_path_bytes_or_proto(tmp_path: Path) -> None:
    model = add_model()
    path = tmp_path / "model.onnx"
    path.write_bytes(model.SerializeToString())
    graphs = [read(path), read(str(path)), read(path.read_bytes()), read(model)]
    assert all(graph == graphs[0] for graph in graphs)
    assert graphs[0].nodes[0].origin == ("sum",)


def test_what_is_no_model_is_refused(tmp_path: Path) -> None:
    content = add_model().SerializeToString()
    for bad, message in [
        (content[: len(content) // 2], "truncated"),
        (b"", "no graph with outputs"),
        (b"not a model", "not an ONNX model"),
        (tmp_path / "none.onnx", "cannot be read"),
        (tmp_path, "cannot be read"),
        (7, "a model is a path, bytes or an onnx.ModelProto, not int"),
    ]:
        with pytest.raises(InvalidModel, match=message):
            read(bad)  # type: ignore[arg-type]


def test_opsets_are_needed() -> None:
    model = add_model()
    del model.opset_import[:]
    with pytest.raises(InvalidModel, match="imports no opset"):
        read(model)
    model.opset_import.append(helper.make_opsetid("other", 1))
    with pytest.raises(InvalidModel, match=r"node sum .* does not import; add it to opset_import"):
        read(model)


def test_unknown_op_names_node_domain_and_opset() -> None:
    node = helper.make_node("Add2", ["x"], ["y"], name="odd", domain="my.own")
    model = model_of([node], {"x": X}, ["y"], domains=["my.own"])
    with pytest.raises(UnsupportedOp, match=r"node odd: op Add2 of my\.own opset 1 is not"):
        read(model)
    node = helper.make_node("NonMaxSuppression", ["x", "x"], ["y"])
    with pytest.raises(UnsupportedOp, match=r"NonMaxSuppression_0: .* of ai.onnx opset 17"):
        read(model_of([node], {"x": X}, ["y"]))


def test_unknown_and_wrong_attributes() -> None:
    for attributes, error, message in [
        ({"speed": 2}, UnsupportedOp, "attribute speed is not supported"),
        ({"alpha": "high"}, InvalidModel, "attribute alpha has the wrong type"),
    ]:
        node = helper.make_node("LeakyRelu", ["x"], ["y"], name="leak", **attributes)
        with pytest.raises(error, match=f"node leak .*{message}"):
            read(model_of([node], {"x": X}, ["y"]))


def test_missing_inputs_and_outputs() -> None:
    node = helper.make_node("Add", ["x"], ["y"], name="sum")
    with pytest.raises(InvalidModel, match=r"node sum \(Add\): input 1 is missing"):
        read(model_of([node], {"x": X}, ["y"]))
    node = helper.make_node("Add", ["x", "z"], ["y"], name="sum")
    with pytest.raises(InvalidModel, match=r"node sum .* reads 'z', which is neither"):
        read(model_of([node], {"x": X}, ["y"]))
    with pytest.raises(InvalidModel, match="output 'z' is not computed"):
        read(model_of([helper.make_node("Relu", ["x"], ["y"])], {"x": X}, ["z"]))
    node = helper.make_node("Max", [], ["y"], name="top")
    with pytest.raises(InvalidModel, match="needs at least one input"):
        read(model_of([node], {"x": X}, ["y"]))


def test_names_that_occur_twice() -> None:
    nodes = [helper.make_node("Relu", ["x"], ["y"]), helper.make_node("Abs", ["x"], ["y"])]
    with pytest.raises(InvalidModel, match="'y' is computed twice"):
        read(model_of(nodes, {"x": X}, ["y"]))
    assert read(model_of(nodes[:1], {"x": X}, ["y", "y"])).outputs == ("y",)
    assert read(model_of(nodes[:1], {"x": X}, ["x"])).outputs == ("x",)
    model = add_model()
    model.graph.input.append(model.graph.input[0])
    with pytest.raises(InvalidModel, match="input 'x' is declared twice"):
        read(model)


def test_nodes_are_sorted_and_cycles_named() -> None:
    nodes = [
        helper.make_node("Exp", ["a"], ["y"], name="last"),
        helper.make_node("Relu", ["x"], ["a"], name="first"),
    ]
    assert [node.op for node in read(model_of(nodes, {"x": X}, ["y"])).nodes] == ["max", "exp"]
    nodes[1] = helper.make_node("Add", ["x", "y"], ["a"], name="first")
    with pytest.raises(InvalidModel, match="in a cycle: last, first"):
        read(model_of(nodes, {"x": X}, ["y"]))


def test_outputs_that_are_inputs_constants_or_equal() -> None:
    nodes = [helper.make_node("Identity", [name], [f"y{n}"]) for n, name in enumerate("xxc")]
    graph = agrees(model_of(nodes, {"x": X}, ["y0", "y1", "y2"], {"c": X + 1}), {"x": X})
    assert [node.op for node in graph.nodes] == ["reshape"] * 3


def test_initializers_listed_as_inputs_are_not_inputs() -> None:
    model = add_model()
    model.graph.input.append(helper.make_tensor_value_info("c", 1, X.shape))
    assert [item.name for item in signature(model).inputs] == ["x"]
    assert [value.name for value in read(model).inputs] == ["x"]


def test_open_dims_must_be_given() -> None:
    model = symbolic(("n", 3), ("n", 3), (1, None))
    with pytest.raises(InvalidModel, match=r"give `shapes` for x0 \[n, 3\]; x1 .*; x2 \[1, \?\]"):
        read(model)
    graph = read(model, {"x0": (2, 3), "x2": (1, 3)})
    assert [value.shape for value in graph.inputs] == [(2, 3), (2, 3), (1, 3)]
    for shapes, message in [
        ({"x0": (2, 4)}, r"shape \[2, 4\] does not fit input x0, which is \[n, 3\]"),
        ({"x0": (2,)}, "does not fit"),
        ({"z": (2,)}, "shapes are given for z; the inputs are x0, x1, x2"),
    ]:
        with pytest.raises(InvalidModel, match=message):
            read(model, shapes)


def test_one_symbol_with_two_values_binds_nothing_else() -> None:
    model = symbolic(("?", "?"), ("?", 3))
    with pytest.raises(InvalidModel, match=r"x1 \[\?, 3\]"):
        read(model, {"x0": (2, 3)})


def test_signature_as_onnxruntime_says_it(tmp_path: Path) -> None:
    model = symbolic(("n", 3), (-1, None), (2, 3))
    model.producer_name, model.domain, model.model_version = "maker", "dom", 7
    model.doc_string, model.graph.doc_string = "about", "inside"
    helper.set_model_props(model, {"key": "value"})
    found, session = signature(model), onnxruntime.InferenceSession(model.SerializeToString())
    for mine, theirs in zip(found.inputs, session.get_inputs(), strict=True):
        assert (mine.name, list(mine.shape), mine.type) == (theirs.name, theirs.shape, theirs.type)
    meta = session.get_modelmeta()
    for name in ("graph_name", "graph_description", "description", "domain", "producer_name"):
        assert getattr(found, name) == getattr(meta, name)
    assert (found.version, found.custom_metadata_map) == (7, {"key": "value"})


def test_signature_of_other_types() -> None:
    for code in (2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13):
        info = helper.make_tensor_value_info("x", code, [1])
        node = helper.make_node("Identity", ["x"], ["y"])
        out = helper.make_tensor_value_info("y", code, [1])
        graph = helper.make_graph([node], "g", [info], [out])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        session = onnxruntime.InferenceSession(model.SerializeToString())
        assert signature(model).inputs[0].type == session.get_inputs()[0].type
    info = helper.make_tensor_sequence_value_info("x", 1, None)
    model = helper.make_model(helper.make_graph([node], "g", [info], [out]))
    assert signature(model).inputs[0].type == "seq(tensor(float))"
    with pytest.raises(UnsupportedOp, match=r"input x is a seq\(tensor\(float\)\)"):
        read(model)


def test_strings_are_refused() -> None:
    info = helper.make_tensor_value_info("x", 8, [1])
    node = helper.make_node("Identity", ["x"], ["y"])
    model = helper.make_model(helper.make_graph([node], "g", [info], [info]))
    model.graph.output[0].name = "y"
    with pytest.raises(UnsupportedType, match="input x has element type string"):
        read(model)


@pytest.mark.parametrize(
    "dtype",
    ["float32", "float64", "float16", "int8", "uint16", "uint32", "uint64", "int64", "bool"],
)
def test_tensors_in_typed_fields(dtype: str) -> None:
    array = np.array([[0, 1], [1, 0]]).astype(dtype)
    code = helper.np_dtype_to_tensor_dtype(array.dtype)
    typed = helper.make_tensor("t", code, array.shape, array.ravel())
    for tensor in (typed, numpy_helper.from_array(array)):
        found = to_array(tensor)
        assert found.dtype == array.dtype and np.array_equal(found, array)


def test_damaged_tensors() -> None:
    tensor = numpy_helper.from_array(X, "w")
    for change, message in [
        (lambda t: t.dims.append(2), "needs 48 bytes of data but has 24"),
        (lambda t: t.dims.append(-2), "none negative"),
        (lambda t: t.segment.__setattr__("begin", 1), "cut into segments"),
        (lambda t: (t.ClearField("raw_data"), t.float_data.append(1)), "data for 1 elements"),
    ]:
        damaged = onnx.TensorProto()
        damaged.CopyFrom(tensor)
        change(damaged)
        with pytest.raises(InvalidModel, match=f"tensor w .*{message}"):
            to_array(damaged)
    damaged.data_type = 14
    with pytest.raises(UnsupportedType, match="tensor w has element type complex64"):
        to_array(damaged)


def external(location: str, **facts: int) -> Any:
    model = add_model()
    tensor = model.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = 1
    for key, value in {"location": location, **facts}.items():
        tensor.external_data.add(key=key, value=str(value))
    return model


def test_external_data_in_the_folder(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    (tmp_path / "w.bin").write_bytes(b"1234" + X.tobytes())
    path.write_bytes(external("w.bin", offset=4, length=X.nbytes).SerializeToString())
    np.testing.assert_allclose(evaluate(read(path), {"x": X})["y"], X * 2)


def test_external_data_elsewhere_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "inside"
    folder.mkdir()
    (tmp_path / "w.bin").write_bytes(X.tobytes())
    (folder / "link.bin").symlink_to(tmp_path / "w.bin")
    path = folder / "model.onnx"
    for location in ("../w.bin", str(tmp_path / "w.bin"), "link.bin", "", "none.bin", "a\0b", "."):
        path.write_bytes(external(location).SerializeToString())
        with pytest.raises(InvalidModel, match="must be a file in the model's folder"):
            read(path)
    (folder / "w.bin").write_bytes(X.tobytes())
    for facts in ({"offset": 8, "length": 24}, {"offset": -1}, {"length": 99}):
        path.write_bytes(external("w.bin", **facts).SerializeToString())
        with pytest.raises(InvalidModel, match="has 24 bytes"):
            read(path)
    path.write_bytes(external("w.bin", offset="many").SerializeToString())  # type: ignore[arg-type]
    with pytest.raises(InvalidModel, match="is unreadable"):
        read(path)
    with pytest.raises(InvalidModel, match="give the model as a path, not as bytes"):
        read(external("w.bin"))


def test_the_newest_form_up_to_the_opset_is_taken() -> None:
    old, new = find("", "Softmax", 12), find("", "Softmax", 13)
    assert old is not None and new is not None and old is not new
    assert find("", "Softmax", 99) is new
    assert find("", "GroupNormalization", 17) is None
    assert ("com.microsoft", "Gelu") in known()


SEED = model_of(
    [
        helper.make_node("Conv", ["x", "w"], ["c"], pads=[1, 1, 1, 1]),
        helper.make_node("MaxPool", ["c"], ["m"], kernel_shape=[2, 2], ceil_mode=1),
        helper.make_node("Reshape", ["m", "to"], ["r"]),
        helper.make_node("Softmax", ["r"], ["y"], axis=-1),
    ],
    {"x": floats(1, 3, 6, 6)},
    ["y"],
    {"w": floats(4, 3, 3, 3), "to": np.array([0, -1])},
).SerializeToString()


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, len(SEED) - 1), st.integers(0, 255)), min_size=1, max_size=4),
    st.integers(0, len(SEED)),
)
def test_damaged_files_raise_only_our_errors(changes: list[tuple[int, int]], cut: int) -> None:
    content = bytearray(SEED)
    for place, byte in changes:
        content[place] = byte
    for damaged in (bytes(content), bytes(content[:cut]), bytes(content[cut:])):
        try:
            signature(damaged)
            read(damaged)
        except RooftileError as error:
            assert str(error)
