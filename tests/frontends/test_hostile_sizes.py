"""Nodes that ask for terabytes, or for endless work: refused before anything is made."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper
from onnx_models import Const, floats, ints, one_node
from onnx_sessions import any_of, info

import rooftile as rt
from rooftile.core.errors import (
    InvalidInput,
    InvalidModel,
    RooftileError,
    UnsupportedOp,
    UnsupportedType,
)

X, IMAGE = floats(2, 3), floats(1, 1, 4, 4)
HUGE, MORE = 1 << 40, 1 << 62
TOO_LARGE = "which is too large|more than this machine can hold"
KERNEL = Const(floats(1, 1, 3, 3))


def number(value: Any, dtype: str = "int64") -> Const:
    return Const(np.array(value, dtype))


def numbers(*values: float) -> Const:
    return Const(np.array(values, np.float32))


def run(op: str, inputs: Sequence[Any], **more: Any) -> list[Any]:
    model, feeds = one_node(op, *inputs, **more)
    return list(rt.InferenceSession(model.SerializeToString()).run(None, feeds))


Case = tuple[str, list[Any], dict[str, Any], str]
SIZES: list[Case] = [
    ("Expand", [X, ints(HUGE, 2, 3)], {}, TOO_LARGE),
    ("Expand", [X, np.array([MORE, 2, 3])], {}, TOO_LARGE),
    ("Expand", [X, ints(-1, 2, 3)], {}, r"\[1, 2, 3\] does not expand to \[-1, 2, 3\]"),
    ("Tile", [X, ints(HUGE, 1)], {}, TOO_LARGE),
    ("Tile", [X, np.array([MORE, MORE])], {}, TOO_LARGE),
    ("Tile", [X, ints(-1, 1)], {}, "must give a number for each of 2 dims"),
    ("Pad", [X, ints(HUGE, 1, 1, 1)], {}, TOO_LARGE),
    ("Pad", [X, np.array([MORE] * 4)], {}, TOO_LARGE),
    ("Pad", [X, ints(-(1 << 63), 0, 0, 0)], {}, "cut off more than"),
    ("Pad", [X, ints(1 << 34, 0, 0, 0)], {"mode": "edge"}, TOO_LARGE),
    ("Pad", [X, ints(1 << 34, 0, 0, 0)], {"mode": "wrap", "opset": 19}, TOO_LARGE),
    ("ConstantOfShape", [ints(HUGE, HUGE)], {}, TOO_LARGE),
    ("ConstantOfShape", [np.array([MORE])], {}, TOO_LARGE),
    ("ConstantOfShape", [ints(-1)], {}, "no negative dim"),
    ("Range", [number(0), number(MORE), number(1)], {}, TOO_LARGE),
    ("Range", [number(0), number(5), number(0)], {}, "delta is 0"),
    (
        "Range",
        [number(0.0, "float32"), number("inf", "float32"), number(1.0, "float32")],
        {},
        "no end",
    ),
    ("OneHot", [np.arange(4), number(HUGE), numbers(0, 1)], {}, TOO_LARGE),
    ("OneHot", [np.arange(4), number(-3), numbers(0, 1)], {}, "depth -3 must be at least 1"),
    ("EyeLike", [np.ones((1, 1), np.float32)], {"dtype": 99}, "element type number 99"),
    ("Upsample", [IMAGE, numbers(1, 1, 1e9, 1e9)], {"opset": 9}, TOO_LARGE),
    ("Upsample", [IMAGE, numbers(1, 1, 1, float("inf"))], {"opset": 9}, "4 positive numbers"),
    ("Resize", [IMAGE, None, None, ints(1, 1, HUGE, 4)], {"mode": "cubic"}, TOO_LARGE),
    ("Resize", [IMAGE, None, None, ints(1, 1, 1 << 36, 4)], {}, TOO_LARGE),
    ("Reshape", [X, ints(1 << 32, 1 << 32)], {}, "cannot be reshaped"),
    ("Reshape", [X, ints(*[1] * 1000, 6)], {}, "too large"),
    ("Unsqueeze", [X, ints(*range(100_000))], {}, "100002 dims are more than 32"),
    ("Split", [X], {"num_outputs": MORE, "opset": 18}, "cannot be cut into"),
    ("TopK", [X, ints(MORE)], {"outputs": 2}, "is not within axis 1"),
    ("Conv", [IMAGE, KERNEL], {"pads": [HUGE] * 4}, TOO_LARGE),
    ("Conv", [IMAGE, KERNEL], {"dilations": [MORE] * 2}, "does not fit dim 0"),
    ("Conv", [IMAGE, KERNEL], {"strides": [0, 0]}, "must be 2 positive numbers"),
    ("Conv", [IMAGE, KERNEL], {"group": MORE}, "groups do not fit"),
    ("ConvTranspose", [IMAGE, KERNEL], {"strides": [MORE] * 2}, TOO_LARGE),
    ("ConvTranspose", [IMAGE, KERNEL], {"output_shape": [HUGE] * 2}, TOO_LARGE),
    ("ConvTranspose", [IMAGE, KERNEL], {"output_padding": [MORE] * 2}, TOO_LARGE),
    ("ConvTranspose", [IMAGE, KERNEL], {"strides": [2048] * 2}, "4194304 phases is not supported"),
    ("MaxPool", [IMAGE], {"kernel_shape": [HUGE] * 2, "pads": [HUGE] * 4}, TOO_LARGE),
    (
        *("MaxPool", [IMAGE]),
        {"kernel_shape": [1 << 15] * 2, "pads": [1 << 14] * 4, "outputs": 2},
        TOO_LARGE,
    ),
    ("AveragePool", [IMAGE], {"kernel_shape": [1, 1], "pads": [0, 1 << 36] * 2}, TOO_LARGE),
    ("RoiAlign", [IMAGE, numbers(0, 0, 1, 1), ints(0)], {"output_height": HUGE}, TOO_LARGE),
    ("RoiAlign", [IMAGE, numbers(0, 0, 1, 1), ints(0)], {"sampling_ratio": MORE}, TOO_LARGE),
    ("MaxRoiPool", [IMAGE, numbers(0, 0, 0, 1, 1)], {"pooled_shape": [HUGE] * 2}, TOO_LARGE),
    (
        "MaxUnpool",
        [IMAGE, np.zeros(IMAGE.shape, np.int64), ints(1, 1, HUGE, HUGE)],
        {"kernel_shape": [2, 2]},
        TOO_LARGE,
    ),
    ("Col2Im", [floats(1, 4, 4), ints(MORE, MORE), ints(2, 2)], {"opset": 18}, "blocks of"),
    ("AffineGrid", [floats(1, 2, 3), ints(1, 1, HUGE, HUGE)], {"opset": 20}, TOO_LARGE),
    ("CenterCropPad", [X, ints(HUGE, HUGE)], {"opset": 18}, TOO_LARGE),
    ("DFT", [floats(1, 4, 1), number(HUGE)], {}, "its matrix is too large"),
    ("BlackmanWindow", [number(HUGE)], {}, "is not the length of a window"),
    ("Einsum", [floats(64, 64)] * 4, {"equation": "ab,cd,ef,gh->abcdefgh"}, TOO_LARGE),
    ("Einsum", [X], {"equation": "a" * 100_000}, "does not fit an input of rank 2"),
    ("Transpose", [X], {"perm": list(range(100_000))}, "does not order the 2 dims"),
    ("ReduceSum", [X, ints(*[0] * 100_000)], {}, "name an axis twice"),
    ("LpNormalization", [X], {"p": MORE}, "p must be 1 or 2"),
    ("Squeeze", [X, ints(MORE)], {}, "is outside a tensor of rank 2"),
]
HOST: list[Case] = [
    ("RandomNormal", [], {"shape": [HUGE, HUGE]}, "are too many"),
    ("RandomUniform", [], {"shape": [1 << 38]}, "are too many"),
    ("RandomNormal", [], {"shape": [-1]}, "are too many"),
    ("Multinomial", [X], {"sample_size": MORE}, "are too many"),
    (
        "Compress",
        [X, np.ones(3, np.bool_)],
        {"axis": MORE},
        "cannot be computed on what it is given",
    ),
    ("Unique", [X], {"axis": MORE}, "cannot be computed on what it is given"),
    ("TfIdfVectorizer", [np.arange(4)], {"ngram_indexes": [MORE]}, "counts are too many"),
    ("TfIdfVectorizer", [np.arange(4)], {"ngram_counts": [-MORE]}, "do not cut a pool"),
    ("TfIdfVectorizer", [np.arange(4)], {"ngram_counts": [MORE]}, "do not cut a pool"),
    (
        "StringSplit",
        [np.array(["," * 100_000, *["a"] * 2000], object)],
        {"delimiter": ",", "opset": 20, "outputs": 2},
        "parts in all are too long",
    ),
    ("SplitToSequence", [X, number(0)], {}, "parts of size 0"),
]
NGRAMS = {
    "mode": "TF",
    "min_gram_length": 1,
    "max_gram_length": MORE,
    "max_skip_count": MORE,
    "ngram_counts": [0],
    "ngram_indexes": [0],
    "pool_int64s": [1],
}


@pytest.mark.parametrize(("op", "inputs", "more", "message"), SIZES)
def test_what_no_machine_can_hold(
    op: str, inputs: list[Any], more: dict[str, Any], message: str
) -> None:
    with pytest.raises((InvalidModel, UnsupportedOp, UnsupportedType), match=message) as caught:
        run(op, [item if item is None else _rows(op, item) for item in inputs], **more)
    assert str(caught.value).startswith("node it")
    assert len(str(caught.value)) < 2000


def _rows(op: str, item: Any) -> Any:
    """Regions are matrices."""
    if (
        op in ("RoiAlign", "MaxRoiPool")
        and isinstance(item, Const)
        and item.array.dtype.kind == "f"
    ):
        return Const(item.array[None])
    return item


@pytest.mark.parametrize(("op", "inputs", "more", "message"), HOST)
def test_what_the_host_cannot_hold(
    op: str, inputs: list[Any], more: dict[str, Any], message: str
) -> None:
    more = {**NGRAMS, **more} if op == "TfIdfVectorizer" else more
    with pytest.raises(InvalidInput, match=message) as caught:
        run(op, inputs, **more)
    assert str(caught.value).startswith(f"node it ({op})")


def test_grams_longer_than_those_of_the_pool_are_not_looked_for() -> None:
    [found] = run("TfIdfVectorizer", [np.arange(4)], **NGRAMS)
    np.testing.assert_array_equal(found, [1])


def test_strings_that_double() -> None:
    nodes = [
        helper.make_node("StringConcat", [f"t{n}"] * 2, [f"t{n + 1}"], name=f"it{n}")
        for n in range(60)
    ]
    text = np.array(["a"], object)
    graph = helper.make_graph(nodes, "g", [info("t0", text)], any_of("t60"))
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    session = rt.InferenceSession(model.SerializeToString())
    with pytest.raises(InvalidInput, match=r"node it27 .*characters or parts in all are too long"):
        session.run(None, {"t0": text})


@pytest.mark.parametrize("shape", [[MORE, MORE], [HUGE, HUGE], [1 << 17, 1 << 17]])
def test_inputs_that_no_machine_can_hold(shape: list[int]) -> None:
    node = helper.make_node("Relu", ["x"], ["y"])
    graph = helper.make_graph([node], "g", [info("x", shape=shape)], any_of("y"))
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    if np.prod(shape, dtype=object) * 1.0 < 1 << 36:
        pytest.skip("a machine may hold it")
    with pytest.raises(InvalidModel, match="which this machine cannot hold"):
        rt.InferenceSession(model.SerializeToString())


def test_a_program_that_needs_more_than_there_is() -> None:
    with pytest.raises(InvalidModel, match="needs 412316860416 bytes for a run, this machine has"):
        run("Expand", [X, ints(1 << 34, 2, 3)])


@pytest.mark.parametrize(
    ("dims", "message"),
    [
        ([MORE, 4], "which is too large"),
        ([MORE, 0, MORE], "which is too large"),
        ([1 << 30], "needs 4294967296 bytes of data but has 0|data for 0 elements"),
        ([-1], "none negative"),
        ([1] * 33, "dims are at most 32"),
    ],
)
def test_weights_whose_dims_are_absurd(dims: list[int], message: str) -> None:
    weight = TensorProto(name="w", data_type=1, dims=dims)
    node = helper.make_node("Add", ["x", "w"], ["y"])
    graph = helper.make_graph([node], "g", [info("x", X)], any_of("y"), [weight])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    with pytest.raises(RooftileError, match=f"tensor w .*({message})"):
        rt.InferenceSession(model.SerializeToString())


@pytest.mark.parametrize(
    ("op", "inputs", "more"),
    [
        ("AveragePool", [floats(1, 1, 1 << 16)], {"kernel_shape": [1 << 10], "pads": [1 << 9] * 2}),
        ("EyeLike", [X], {"k": MORE}),
        ("Trilu", [X, number(-(1 << 63))], {}),
        ("Slice", [X, ints(-(1 << 63)), ints((1 << 63) - 1), ints(0), ints((1 << 63) - 1)], {}),
        ("GridSample", [IMAGE, np.full((1, 2, 2, 2), np.nan, np.float32)], {}),
        ("GridSample", [IMAGE, np.full((1, 2, 2, 2), 3e38, np.float32)], {"mode": "bicubic"}),
        ("RoiAlign", [IMAGE, Const(np.array([[0, 0, np.nan, np.inf]], np.float32)), ints(0)], {}),
    ],
)
def test_extremes_that_have_an_answer(op: str, inputs: list[Any], more: dict[str, Any]) -> None:
    [found] = run(op, inputs, **more)
    assert found.size
