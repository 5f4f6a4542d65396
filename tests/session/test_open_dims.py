"""Sessions on models with open dims: one program for many shapes, right at each."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper
from onnx_models import floats, truth
from onnx_sessions import same
from small_models import Writer

import rooftile as rt
from rooftile.core.symbolic import Sym


def _embedded(width: int = 32) -> Any:
    """Attention over tokens of any number and batch: embeddings, softmax, norm, mean."""
    w = Writer("tokens", tokens=("batch", "length"))  # type: ignore[arg-type]
    shape = w("Shape", "tokens")
    position = w("Range", w.constant(0), w("Gather", shape, w.constant(1), axis=0), w.constant(1))
    table, places = w.weight(50, width), w.weight(64, width)
    x = w("Add", w("Gather", table, "tokens"), w("Gather", places, position))
    scores = w("MatMul", w("MatMul", x, w.weight(width, width)), w("Transpose", x, perm=[0, 2, 1]))
    mixed = w("MatMul", w("Softmax", scores, axis=-1), x)
    x = w("LayerNormalization", w("Add", mixed, x), w.weight(width), axis=-1)
    flat = w("Reshape", x, w.constant(np.array([-1, width])))
    split = w("Concat", shape, w.constant(np.array([4, width // 4])), axis=0)
    back = w("Reshape", w("Relu", flat), split)
    return w, (w("ReduceMean", back, axes=[1], keepdims=0), back)


def _detector() -> Any:
    """Strided convolutions, a mean over the image, upsampling, and a concat along pixels."""
    w = Writer("pixels", image=(1, 3, "height", "width"))  # type: ignore[arg-type]
    pads, stride = {"pads": [1, 1, 1, 1]}, {"strides": [2, 2]}
    one = w("Relu", w("Conv", "image", w.weight(16, 3, 3, 3), **pads, **stride))
    two = w("Relu", w("Conv", one, w.weight(32, 16, 3, 3), **pads, **stride))
    gate = w("Sigmoid", w("Conv", w("GlobalAveragePool", two), w.weight(32, 32, 1, 1)))
    scales = w.constant(np.array([1, 1, 2, 2], np.float32))
    wide = w("Resize", w("Mul", two, gate), "", scales, mode="nearest")
    both = w("Concat", wide, one, axis=1)
    pooled = w("MaxPool", both, kernel_shape=[3, 3], **pads)
    flat = [w("Flatten", part, axis=2) for part in (two, pooled)]
    lists = [w("Reshape", part, w.constant(np.array([1, 8, -1]))) for part in flat]
    return w, (pooled, w("Concat", *lists, axis=2))


def _recurrent() -> Any:
    """A GRU over any number of steps."""
    w = Writer("steps", x=("steps", 1, 12))  # type: ignore[arg-type]
    weights = w.weight(1, 24, 12), w.weight(1, 24, 8), w.weight(1, 48)
    w.nodes.append(helper.make_node("GRU", ["x", *weights], ["all", "last"], hidden_size=8))
    return w, ("all", "last")


def _tokens(*shape: int) -> dict[str, Any]:
    return {"tokens": np.random.default_rng(0).integers(0, 50, shape)}


CASES: list[tuple[Callable[[], Any], list[dict[str, Any]]]] = [
    (
        _embedded,
        [_tokens(2, 24), *(_tokens(b, n) for b, n in ((3, 17), (2, 16), (5, 63), (2, 40)))],
    ),
    (
        _detector,
        [{"image": floats(1, 3, 4 * h, 4 * w)} for h, w in ((9, 11), (12, 16), (16, 8), (20, 31))],
    ),
    (_recurrent, [{"x": floats(n, 1, 12)} for n in (16, 9, 8, 50)]),
]


@pytest.mark.parametrize(("make", "sizes"), CASES, ids=["tokens", "pixels", "steps"])
def test_one_program_for_many_shapes(
    make: Callable[[], Any], sizes: list[dict[str, Any]], compiled: list[bool]
) -> None:
    writer, outputs = make()
    model = writer.model(*outputs)
    for name, array in sizes[0].items():
        item = next(item for item in model.graph.input if item.name == name)
        item.type.tensor_type.elem_type = helper.np_dtype_to_tensor_dtype(array.dtype)
    session = rt.InferenceSession(model.SerializeToString())
    for feeds in sizes[:1] + sizes + sizes[::-1]:
        for mine, theirs in zip(session.run(None, feeds), truth(model, feeds), strict=True):
            same(mine, theirs, rtol=1e-4, atol=1e-5)
    assert compiled == [True]


def _model(nodes: list[Any], x: list[Any], opset: int = 17) -> bytes:
    graph = helper.make_graph(
        nodes,
        "small",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, x)],
        [helper.make_empty_tensor_value_info("y")],
    )
    imports = [helper.make_opsetid("", opset)]
    return helper.make_model(graph, opset_imports=imports, ir_version=8).SerializeToString()


def test_what_cannot_stay_open_is_compiled_for_each_shape(compiled: list[bool]) -> None:
    node = helper.make_node("CumSum", ["x", "axis"], ["y"])
    axis = helper.make_node("Constant", [], ["axis"], value_int=0)
    session = rt.InferenceSession(_model([axis, node], ["n"]))
    for count in (5, 6, 7):
        x = floats(count)
        np.testing.assert_allclose(session.run(None, {"x": x})[0], np.cumsum(x), rtol=1e-5)
    assert compiled == [True, False, False, False]


def test_shapes_that_break_a_guard_are_compiled_for(compiled: list[bool]) -> None:
    session = rt.InferenceSession(_model([helper.make_node("Softmax", ["x"], ["y"])], ["n", 40]))
    for count in (64, 32, 9, 1, 0, 2):
        x = floats(count, 40)
        wanted = np.exp(x) / np.exp(x).sum(-1, keepdims=True)
        np.testing.assert_allclose(session.run(None, {"x": x})[0], wanted, rtol=1e-5)
    assert compiled == [True] * 3  # for all from 2 on, for 1 and for 0


def test_equal_dims_of_two_inputs(compiled: list[bool]) -> None:
    graph = helper.make_graph(
        [helper.make_node("Add", ["x", "z"], ["y"])],
        "sum",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n"]) for name in "xz"],
        [helper.make_empty_tensor_value_info("y")],
    )
    imports = [helper.make_opsetid("", 17)]
    model = helper.make_model(graph, opset_imports=imports, ir_version=8)
    session = rt.InferenceSession(model.SerializeToString())
    for count in (40, 50, 33):
        x = floats(count)
        np.testing.assert_array_equal(session.run(None, {"x": x, "z": x})[0], x + x)
    with pytest.raises(rt.InvalidModel, match="dims must be equal or 1"):
        session.run(None, {"x": floats(50), "z": floats(40)})


def test_compile_with_open_dims() -> None:
    nodes = [helper.make_node("Relu", ["x"], ["y"])]
    compiled = rt.compile(_model(nodes, ["n", 3]), shapes={"x": (20, 3)}, open_dims=True)
    template = compiled.template
    assert template is not None and isinstance(template.program.outputs[0].shape[0], Sym)
    x = floats(33, 3)
    executable = template.bind([x.shape])
    assert executable is not None and executable.program.outputs[0].shape == (33, 3)
    np.testing.assert_array_equal(executable.run([x])[0], np.maximum(x, 0))
    assert template.bind([x.shape]) is executable
    assert template.bind([(33, 4)]) is None and template.bind([(33,)]) is None
    with pytest.raises(rt.InvalidInput, match="compiled for"):
        executable.run([x[:32]])
    times = executable.profile([x], repeats=2)
    assert len(times) == len(executable.program.steps)


def test_a_bound_program_can_be_saved(tmp_path: Any) -> None:
    nodes = [helper.make_node("Softmax", ["x"], ["y"], axis=0)]
    compiled = rt.compile(_model(nodes, ["n", 3]), shapes={"x": (20, 3)}, open_dims=True)
    compiled.save(tmp_path / "model")
    x = floats(20, 3)
    np.testing.assert_array_equal(rt.load(tmp_path / "model")(x)[0], compiled(x)[0])


def test_a_saved_program_serves_many_shapes(tmp_path: Path) -> None:
    model = _model([helper.make_node("Softmax", ["x"], ["y"])], ["n", 40])
    made = rt.compile(model, shapes={"x": (64, 40)}, open_dims=True)
    made.save(tmp_path / "softmax.rt")
    for compiled in (made, rt.load(tmp_path / "softmax.rt")):
        for count in (64, 9, 300):
            x = floats(count, 40)
            wanted = np.exp(x) / np.exp(x).sum(-1, keepdims=True)
            np.testing.assert_allclose(compiled(x)[0], wanted, rtol=1e-5)
        with pytest.raises(rt.InvalidInput, match=r"compiled for inputs like \[Nn, 40\] where"):
            compiled(floats(1, 40))
