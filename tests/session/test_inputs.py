"""Inputs in every form that they come in, for programs of known shapes, of open ones, and steps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper

import rooftile as rt

X = np.arange(12, dtype=np.float32).reshape(3, 4) - 5
WANTED = np.abs(X) + 1


class Sub(np.ndarray):
    """A subclass of arrays."""


class Like:
    """What other libraries call a tensor."""

    def __init__(self, array: Any) -> None:
        self.array = array

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return self.array.astype(dtype) if dtype else self.array


class Exchanged:
    """A tensor that is known by DLPack alone."""

    def __dlpack__(self, **options: Any) -> Any:
        return X.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return X.__dlpack_device__()


def model(shape: Any, steps: bool = False, code: int = TensorProto.FLOAT) -> bytes:
    """abs(x) + 1, and for steps its non-zero places beside, which need the host."""
    nodes = [
        helper.make_node("Abs", ["x"], ["a"]),
        helper.make_node("Constant", [], ["one"], value=helper.make_tensor("v", code, [1], [1])),
        helper.make_node("Add", ["a", "one"], ["y"]),
    ]
    outputs = [helper.make_tensor_value_info("y", code, shape)]
    if steps:
        nodes.append(helper.make_node("NonZero", ["x"], ["places"]))
        outputs.append(helper.make_tensor_value_info("places", TensorProto.INT64, None))
    inputs = [helper.make_tensor_value_info("x", code, shape)]
    graph = helper.make_graph(nodes, "forms", inputs, outputs)
    opsets = [helper.make_opsetid("", 17)]
    return bytes(helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString())


@pytest.fixture(scope="module", params=["known", "open", "unranked", "steps"])
def session(request: pytest.FixtureRequest) -> rt.InferenceSession:
    shapes: dict[str, Any] = {
        "known": [3, 4],
        "open": ["n", 4],
        "unranked": None,
        "steps": ["n", 4],
    }
    return rt.InferenceSession(model(shapes.get(request.param, ["n", 4]), request.param == "steps"))


def unaligned(array: Any) -> Any:
    return np.frombuffer(b"\0" + array.tobytes(), np.uint8)[1:].view(array.dtype).reshape(3, 4)


def read_only(array: Any) -> Any:
    copied = array.copy()
    copied.flags.writeable = False
    return copied


FORMS: dict[str, Any] = {
    "contiguous": X,
    "columns": np.asfortranarray(X),
    "reversed": X[::-1, ::-1].copy()[::-1, ::-1],
    "strided": np.repeat(X, 2, axis=1)[:, ::2],
    "read-only": read_only(X),
    "foreign": X.astype(">f4"),
    "unaligned": unaligned(X),
    "subclass": X.view(Sub),
    "masked": np.ma.masked_array(X),
    "list": X.tolist(),
    "tuple": tuple(map(tuple, X.tolist())),
    "integers": X.astype(int).tolist(),
    "list of rows": list(X),
    "like": Like(X),
    "dlpack": Exchanged(),
    "value": rt.OrtValue.ortvalue_from_numpy(X),
    "value of columns": rt.OrtValue.ortvalue_from_numpy(np.asfortranarray(X)),
}


@pytest.mark.parametrize("form", FORMS.values(), ids=list(FORMS))
def test_forms(session: rt.InferenceSession, form: Any) -> None:
    found = session.run(["y"], {"x": form})[0]
    assert type(found) is np.ndarray and found.flags.c_contiguous
    np.testing.assert_array_equal(found, WANTED)
    np.testing.assert_array_equal(X, np.arange(12).reshape(3, 4) - 5)


@pytest.mark.filterwarnings("ignore:.*matrix subclass.*:PendingDeprecationWarning")
def test_matrices_and_mapped_files(session: rt.InferenceSession, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", X)
    for form in (np.matrix(X), np.load(tmp_path / "x.npy", mmap_mode="r")):
        np.testing.assert_array_equal(session.run(["y"], {"x": form})[0], WANTED)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (X.astype(np.float64), "input 'x' holds float64, the model takes float32"),
        (X.astype(np.float16), "input 'x' holds float16, the model takes float32"),
        (X.astype(ml_dtypes.bfloat16), "input 'x' holds bfloat16, the model takes float32"),
        (X.astype(object), "input 'x' holds object, the model takes float32"),
        (X.astype(np.complex64), "input 'x' holds complex64, the model takes float32"),
        (X.astype("M8[s]"), "holds datetime64[s], the model takes float32"),
        (Like(X.astype(np.float64)), "input 'x' holds float64, the model takes float32"),
    ],
)
def test_other_types(session: rt.InferenceSession, value: Any, message: str) -> None:
    with pytest.raises(rt.InvalidInput) as caught:
        session.run(["y"], {"x": value})
    assert message in str(caught.value)
    assert not isinstance(caught.value, RuntimeError)


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (None, "NoneType"),
        ("text", "str"),
        ({"a": 1}, "dict"),
        ([None], "list"),
        (object(), "object"),
    ],
)
def test_what_is_no_tensor(session: rt.InferenceSession, value: Any, kind: str) -> None:
    with pytest.raises(rt.errors.NoTensor, match=f"input 'x' is a {kind}, which numpy cannot read"):
        session.run(["y"], {"x": value})


@pytest.mark.parametrize("feeds", [[X], X, None, "x"])
def test_feeds_that_are_no_dict(session: rt.InferenceSession, feeds: Any) -> None:
    with pytest.raises(rt.InvalidInput, match="inputs are given as a dict by name, not as"):
        session.run(None, feeds)


@pytest.mark.parametrize("steps", [False, True])
def test_scalars(steps: bool) -> None:
    content = model([], steps)
    ours, theirs = rt.InferenceSession(content), onnxruntime.InferenceSession(content)
    for value in (np.array(-2, np.float32), [-2.0], np.full(1, -2, np.float32)):
        wanted = theirs.run(["y"], {"x": value})[0]
        assert float(ours.run(["y"], {"x": value})[0].item()) == float(wanted.item()) == 3
    for value in (np.float32(-2), -2, -2.0):  # which onnxruntime refuses
        assert ours.run(["y"], {"x": value})[0].item() == 3
    with pytest.raises(rt.InvalidInput, match=r"has the shape \[2\], the model takes \[\]"):
        rt.InferenceSession(model([], True)).run(None, {"x": np.ones(2, np.float32)})


@pytest.mark.parametrize("steps", [False, True])
def test_lists_take_the_type_of_the_model(steps: bool) -> None:
    content = model(["n"], steps, TensorProto.INT32)
    ours, theirs = rt.InferenceSession(content), onnxruntime.InferenceSession(content)
    for value in ([1, -2], [True, False], [1.0, 2.0], [], [np.int64(3)]):
        wanted = theirs.run(["y"], {"x": value})[0]
        found = ours.run(["y"], {"x": value})[0]
        assert found.dtype == wanted.dtype == np.int32
        np.testing.assert_array_equal(found, wanted)
    for value in ([1.5], [1 << 40], [float("nan")], ["1"]):
        with pytest.raises(rt.errors.NoTensor, match="that int32 cannot"):
            ours.run(["y"], {"x": value})


def test_inputs_of_any_rank() -> None:
    content = model(None)
    ours, theirs = rt.InferenceSession(content), onnxruntime.InferenceSession(content)
    for shape in [(), (1,), (3,), (2, 3), (2, 1, 4), (5, 3)]:
        x = np.full(shape, -1.5, np.float32)
        wanted = theirs.run(["y"], {"x": x})[0]
        found = ours.run(["y"], {"x": x})[0]
        assert found.shape == wanted.shape
        np.testing.assert_array_equal(found, wanted)
