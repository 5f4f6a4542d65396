"""Files that end early, lie about their data, or point elsewhere; names and opsets that clash."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx_models import floats
from onnx_sessions import any_of, check, info

import rooftile as rt
from rooftile.core.errors import InvalidModel, RooftileError

X = floats(2, 3)
make = helper.make_node


def small(*nodes: Any, outputs: tuple[str, ...] = ("y",), weights: Any = (), **more: Any) -> Any:
    graph = helper.make_graph(
        list(nodes) or [make("Add", ["x", "w"], ["y"], name="sum")],
        "small",
        [info("x", X)],
        any_of(*outputs),
        list(weights) or [numpy_helper.from_array(X, "w")],
    )
    opsets = more.pop("opsets", [helper.make_opsetid("", 17)])
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


NETWORK = small(
    make("Conv", ["x", "k"], ["c"]),
    make("Relu", ["c"], ["r"]),
    make("Reshape", ["r", "to"], ["f"]),
    make("Softmax", ["f"], ["y"]),
    weights=[
        numpy_helper.from_array(floats(4, 1, 2, 2), "k"),
        numpy_helper.from_array(np.array([1, -1]), "to"),
    ],
)
NETWORK.graph.input[0].CopyFrom(info("x", shape=[1, 1, 4, 4]))
WHOLE = NETWORK.SerializeToString()


@pytest.mark.parametrize("part", range(64))
def test_files_that_end_early(part: int, tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(WHOLE[: len(WHOLE) * part // 64])
    with pytest.raises(
        InvalidModel, match=r"truncated|no graph with outputs|imports no opset|is damaged"
    ):
        rt.InferenceSession(path)


def test_the_whole_file_runs() -> None:
    x = floats(1, 1, 4, 4)
    check(rt.InferenceSession(WHOLE), NETWORK, {"x": x})


@pytest.mark.parametrize("change", [-1, 1, 24, -24])
@pytest.mark.parametrize("code", [TensorProto.FLOAT, TensorProto.INT4, TensorProto.FLOAT8E4M3FN])
def test_data_of_the_wrong_length(change: int, code: int) -> None:
    weight = TensorProto(name="w", data_type=code, dims=[2, 3])
    right = {TensorProto.FLOAT: 24, TensorProto.INT4: 3, TensorProto.FLOAT8E4M3FN: 6}[code]
    weight.raw_data = b"\1" * max(0, right + change)
    model = small(make("Cast", ["w"], ["y"], to=1), weights=[weight])
    with pytest.raises(InvalidModel, match=f"tensor w needs {right} bytes of data but has"):
        rt.InferenceSession(model.SerializeToString())


def external(tmp_path: Path, **facts: str) -> Path:
    folder = tmp_path / "models"
    folder.mkdir()
    (folder / "w.bin").write_bytes(X.tobytes())
    (tmp_path / "outside.bin").write_bytes(X.tobytes())
    (folder / "link.bin").symlink_to(tmp_path / "outside.bin")
    (folder / "around.bin").symlink_to("around.bin")
    (folder / "sub").symlink_to(tmp_path)
    model = small()
    weight = model.graph.initializer[0]
    weight.ClearField("raw_data")
    weight.data_location = TensorProto.EXTERNAL
    for key, value in facts.items():
        weight.external_data.add(key=key, value=value)
    path = folder / "model.onnx"
    path.write_bytes(model.SerializeToString())
    return path


@pytest.mark.parametrize(
    "location",
    ["../outside.bin", "sub/../../outside.bin", "sub/outside.bin", "link.bin", "around.bin", ".",
     "/etc/passwd", "/dev/zero", "w.bin/", "nothing.bin", "w\0.bin", "a" * 5000],
)  # fmt: skip
def test_data_outside_the_folder(location: str, tmp_path: Path) -> None:
    path = external(tmp_path, location=location)
    if location == "w.bin/":
        location = "w.bin/x"
        path = _relocated(path, location)
    with pytest.raises(InvalidModel, match="must be a file in the model's folder or below it"):
        rt.InferenceSession(path)


def _relocated(path: Path, location: str) -> Path:
    model = onnx.load(path, load_external_data=False)
    model.graph.initializer[0].external_data[0].value = location
    path.write_bytes(model.SerializeToString())
    return path


@pytest.mark.parametrize(
    ("offset", "length"),
    [("-1", "24"), ("0", "25"), ("1", "24"), (str(1 << 62), "24"), ("0", str(1 << 62)),
     ("24", "-1"), ("999999999999999999999999", "1"), ("0", "0"), ("0", "23")],
)  # fmt: skip
def test_data_outside_its_file(offset: str, length: str, tmp_path: Path) -> None:
    path = external(tmp_path, location="w.bin", offset=offset, length=length)
    with pytest.raises(InvalidModel, match=r"has 24 bytes, not the|needs 24 bytes of data but has"):
        rt.InferenceSession(path)


@pytest.mark.parametrize("offset", ["many", "1.5", "0x1", ""])
def test_offsets_that_are_no_numbers(offset: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidModel, match=r"'w.bin' is unreadable"):
        rt.InferenceSession(external(tmp_path, location="w.bin", offset=offset))


def test_outputs_declared_twice() -> None:
    model = small(make("Neg", ["x"], ["y"]), outputs=("y", "x", "y", "w"))
    session = rt.InferenceSession(model.SerializeToString())
    check(session, model, {"x": X})
    assert [item.name for item in session.get_outputs()] == ["y", "x", "y", "w"]
    for found in session.run(["y", "y"], {"x": X}):
        np.testing.assert_array_equal(found, -X)
    steps = small(make("NonZero", ["x"], ["y"]), outputs=("y", "y", "w", "x"))
    check(rt.InferenceSession(steps.SerializeToString()), steps, {"x": X})


def test_of_two_initializers_of_one_name_the_last_counts() -> None:
    weights = [numpy_helper.from_array(X * scale, "w") for scale in (1, 5)]
    model = small(weights=weights)
    check(rt.InferenceSession(model.SerializeToString()), model, {"x": X})


@pytest.mark.parametrize(
    "node",
    [make("Neg", ["x"], ["x"]), make("Neg", ["x"], ["w"]), make("Split", ["x"], ["y", "y"])],
)
def test_values_computed_twice(node: Any) -> None:
    model = small(node, make("Abs", ["x"], ["z"]), outputs=("z",))
    with pytest.raises(InvalidModel, match="is computed twice; rename one"):
        rt.InferenceSession(model.SerializeToString())


@pytest.mark.parametrize(
    "opsets",
    [
        [("", 17), ("", 17)],
        [("", 11), ("", 17)],
        [("", 17), ("ai.onnx", 11)],
        [("", 17), ("never.heard.of", 999)],
    ],
)
def test_imports_twice_or_of_nobody(opsets: list[tuple[str, int]]) -> None:
    softmax = make("Softmax", ["x"], ["y"])  # whose default axis is another one since opset 13
    ids = [helper.make_opsetid(domain, version) for domain, version in opsets]
    model = small(softmax, opsets=ids)
    model.graph.input[0].CopyFrom(info("x", shape=[2, 3, 4]))
    check(rt.InferenceSession(model.SerializeToString()), model, {"x": floats(2, 3, 4)})


@pytest.mark.parametrize("version", [0, -5, -(1 << 63)])
def test_opsets_before_the_first(version: int) -> None:
    model = small(opsets=[helper.make_opsetid("", version)])
    with pytest.raises(RooftileError, match=r"op Add of ai.onnx opset .* is not supported"):
        rt.InferenceSession(model.SerializeToString())


def test_wrong_types_are_named() -> None:
    model = small(make("Reshape", ["x", "w"], ["y"], name="odd"))
    with pytest.raises(
        InvalidModel, match=r"node odd \(Reshape\): shape must be a list of integers"
    ):
        rt.InferenceSession(model.SerializeToString())
    text = make("If", ["c"], ["y"], name="if", then_branch=_branch("t"), else_branch=_branch("e"))
    model = small(text)
    model.graph.input.add().CopyFrom(info("c", np.array("a", object)))
    session = rt.InferenceSession(model.SerializeToString())
    with pytest.raises(
        RooftileError, match="node if: its condition must be one element, not object"
    ):
        session.run(None, {"x": X, "c": np.array("a", object)})


def _branch(name: str) -> Any:
    return helper.make_graph([make("Neg", ["x"], [name])], name, [], any_of(name))
