"""Readers of shapes, indices and constants against onnxruntime."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import helper, numpy_helper
from onnx_models import Const, agrees, floats, ints, model_of, one_node, same

from rooftile.core.errors import InvalidModel, UnsupportedOp
from rooftile.frontends.onnx import read

X = floats(2, 3, 4)


def test_reshape() -> None:
    same("Reshape", X, ints(0, -1))
    same("Reshape", X, ints(4, 6))
    same("Reshape", X, ints(2, 3, 4))
    same("Reshape", X[:1, :1, :1], ints())
    same("Reshape", np.zeros((0, 3), np.float32), ints(3, 0), allowzero=1)
    same("Reshape", X, opset=1, shape=[6, 4])


def test_flatten() -> None:
    for axis in (0, 1, 2, 3, -1):
        same("Flatten", X, axis=axis)


def test_squeeze_and_unsqueeze() -> None:
    y = floats(1, 3, 1, 2)
    same("Squeeze", y, opset=11, axes=[0, -2])
    same("Squeeze", y, opset=11)
    same("Squeeze", y, ints(2))
    same("Squeeze", y)
    same("Unsqueeze", X, opset=11, axes=[0, 4])
    same("Unsqueeze", X, ints(-1, 1))


def test_transpose_expand_tile() -> None:
    same("Transpose", X)
    same("Transpose", X, perm=[1, 0, 2])
    same("Expand", X[:, :1], ints(3, 1))
    same("Expand", X[0, :1], ints(2, 3, 4))
    same("Tile", X, ints(2, 1, 3))
    same("Tile", X, ints(1, 1, 1))


def test_depth_and_space() -> None:
    y = floats(1, 8, 2, 3)
    same("DepthToSpace", y, blocksize=2)
    same("DepthToSpace", y, blocksize=2, mode="CRD")
    same("SpaceToDepth", floats(1, 2, 4, 6), blocksize=2)


def test_shapes_become_constants() -> None:
    nodes = [
        helper.make_node("Shape", ["x"], ["s"]),
        helper.make_node("Gather", ["s", "zero"], ["batch"]),
        helper.make_node("Unsqueeze", ["batch", "axes"], ["b"]),
        helper.make_node("Concat", ["b", "rest"], ["to"], axis=0),
        helper.make_node("Reshape", ["x", "to"], ["y"]),
    ]
    constants = {
        "zero": np.array(0, np.int64),
        "axes": np.array([0], np.int64),
        "rest": np.array([-1], np.int64),
    }
    graph = agrees(model_of(nodes, {"x": X}, ["y"], constants), {"x": X})
    assert [node.op for node in graph.nodes] == ["reshape"]
    assert graph.nodes[0].origin == ("Reshape_4",)


def test_shape_and_size() -> None:
    same("Shape", X, opset=15, start=1, end=-1)
    same("Size", X)


def test_identity_and_dropout() -> None:
    same("Identity", X)
    same("Dropout", X, opset=11, ratio=0.5)
    same("Dropout", X, Const(np.float32(0.5)), opset=13)
    model, _ = one_node("Dropout", X, Const(np.float32(0.5)), Const(np.array(True)), opset=13)
    with pytest.raises(UnsupportedOp, match="training mode with a ratio other than 0 is not"):
        read(model)
    same("Dropout", X, Const(np.float32(0)), Const(np.array(True)), opset=13)
    same("Dropout", X, opset=13, outputs=2)


def test_gather() -> None:
    same("Gather", X, np.array([[0, -1]], np.int64), axis=1)
    same("Gather", X, Const(np.array(1, np.int32)), axis=-1)


def test_concat() -> None:
    same("Concat", X, Const(X[:, :1]), axis=1)
    same("Concat", X, axis=0)
    same("Concat", X, np.zeros((2, 0, 4), np.float32), axis=-2)


def test_slice() -> None:
    same("Slice", X, opset=9, starts=[0, 1], ends=[1, 100], axes=[0, 2])
    same("Slice", X, ints(1), ints(-1), ints(2))
    same("Slice", X, ints(-1, 0), ints(-(2**62), 4), ints(1, 2), ints(-1, 2))
    same("Slice", X, ints(0, 0), ints(2, 2))
    same("Slice", X, ints(0), ints(99))
    same("Slice", X, ints(2), ints(1), ints(2))


def test_split() -> None:
    same("Split", X, opset=11, axis=2, split=[1, 3], outputs=2)
    same("Split", X, opset=11, axis=1, outputs=3)
    same("Split", X, ints(3, 1), axis=-1, outputs=2)
    same("Split", X, axis=2, outputs=3, opset=18, num_outputs=3)


def test_pad() -> None:
    y = floats(2, 3, 4)
    same("Pad", y, opset=10, pads=[0, 1, 0, 0, 2, 1], value=0.5)
    same("Pad", y, ints(0, 1, 0, 0, 2, 1), Const(np.float32(3)))
    same("Pad", y, ints(0, -1, 0, 0, 2, -1))
    same("Pad", y, ints(1, 2), None, ints(-1), opset=18)
    for mode in ("edge", "reflect"):
        same("Pad", y, ints(0, 1, 2, 0, 2, 3), mode=mode)
    same("Pad", y, ints(0, 1, 2, 0, 2, 3), mode="wrap", opset=19)
    same("Pad", y, ints(0, 0, 0, 0, 0, 0))


def test_constants_of_all_forms() -> None:
    forms = {
        "value": numpy_helper.from_array(np.arange(3)),
        "value_float": 1.5,
        "value_int": 3,
        "value_floats": [1.0, 2.0],
        "value_ints": [4, 5],
    }
    for name, value in forms.items():
        model = model_of([helper.make_node("Constant", [], ["y"], **{name: value})], {}, ["y"])
        agrees(model, {})


def test_generated_tensors() -> None:
    same("ConstantOfShape", ints(2, 3))
    seven = numpy_helper.from_array(np.array([7], np.int64))
    same("ConstantOfShape", ints(2), value=seven)
    same("ConstantOfShape", ints(), value=seven)
    same("Range", *(Const(np.array(part, np.int64)) for part in (3, 11, 4)))
    same("Range", *(Const(np.array(part, np.float32)) for part in (1, 0, -0.3)))
    same("EyeLike", X[0], k=1, dtype=6)
    same("EyeLike", X[0])


BAD = [
    ("Reshape", (X, ints(5, -1)), {}, r"cannot be reshaped to \[5, -1\]"),
    ("Reshape", (X, ints(-1, -1)), {}, "one -1"),
    ("Reshape", (X, ints(2, 3, 4, 0)), {}, "0 where the input has no dim"),
    ("Reshape", (X, Const(np.float32([6, 4]))), {}, "shape must be a list of integers"),
    ("Flatten", (X,), {"axis": 4}, "axis 4 is outside a tensor of rank 3"),
    ("Squeeze", (X, ints(0)), {}, "not all of size 1"),
    ("Unsqueeze", (X, ints(0, 0)), {}, "name an axis twice"),
    ("Transpose", (X,), {"perm": [0, 0, 1]}, "does not order the 3 dims"),
    ("Expand", (X, ints(5)), {}, "does not expand"),
    ("Tile", (X, ints(2)), {}, "a number for each of 3 dims"),
    ("DepthToSpace", (X,), {"blocksize": 2}, "does not fit"),
    ("SpaceToDepth", (X,), {"blocksize": 2}, "does not fit"),
    ("Slice", (X, ints(0), ints(1), ints(0), ints(0)), {}, "a step is 0"),
    ("Slice", (X, ints(0), ints(1, 2)), {}, "equally long"),
    ("Split", (X, ints(1, 1)), {"axis": 2}, "do not make up axis 2 of 4"),
    ("Split", (X,), {"outputs": 5}, "cannot be cut into 5 parts"),
    ("Pad", (X, ints(1)), {}, "pads needs 6 numbers, not 1"),
    ("Pad", (X, ints(-3, 0, 0, 0, 0, 0)), {}, "cut off more"),
    ("Pad", (X, ints(0, 5, 0, 0, 0, 0)), {"mode": "reflect"}, "mode reflect cannot pad dim 1"),
    ("Pad", (X, ints(0, 5, 0, 0, 0, 0)), {"mode": "x"}, "mode must be"),
    ("ConstantOfShape", (ints(-1),), {}, "no negative dim"),
    ("EyeLike", (X,), {}, "a matrix is needed"),
    ("Range", tuple(Const(np.array(part)) for part in (0, 1, 0)), {}, "delta is 0"),
    ("Concat", (X, X[:1]), {"axis": 1}, "differ beside axis 1"),
    ("Concat", (X,), {}, "attribute axis is missing"),
    ("Gather", (X, X), {}, "indices"),
]


@pytest.mark.parametrize(("op", "inputs", "attributes", "message"), BAD)
def test_malformed_nodes_are_named(op: str, inputs: tuple, attributes: dict, message: str) -> None:
    model, _ = one_node(op, *inputs, **attributes)
    with pytest.raises(InvalidModel, match=message) as found:
        read(model)
    assert str(found.value).startswith(f"node it ({op})")


def test_shapes_computed_at_run_time_are_refused() -> None:
    model, _ = one_node("Reshape", X, np.array([4, 6]))
    with pytest.raises(UnsupportedOp, match="shape that is computed at run time"):
        read(model)


def test_absurd_dims_are_refused() -> None:
    model, _ = one_node("ConstantOfShape", ints(2**40, 2**40))
    with pytest.raises(InvalidModel, match="too large"):
        read(model)
