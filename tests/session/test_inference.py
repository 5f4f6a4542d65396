"""InferenceSession: onnxruntime's calls, shapes, errors, threads."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import fake
import numpy as np
import onnx
import pytest

import rooftile as rt
from rooftile.session import programs

pytestmark = pytest.mark.usefixtures("pipeline")
X = np.arange(6, dtype=np.float32).reshape(2, 3)


def test_static_models_compile_in_the_constructor(pipeline: fake.Pipeline) -> None:
    session = rt.InferenceSession(fake.model([2, 3]))
    assert [shapes for shapes, _ in pipeline.calls] == [{"x": (2, 3)}]
    y, same = session.run(None, {"x": X})
    np.testing.assert_array_equal(y, X + 1)
    np.testing.assert_array_equal(same, X + 1)
    assert not np.shares_memory(y, same)
    assert len(session.run([], {"x": X})) == 2
    assert len(pipeline.calls) == 1
    assert session.compiled_for().compilation is None


def test_paths_and_bytes(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    onnx.save(fake.model([2, 3]), path)
    for model in (path, str(path), path.read_bytes()):
        session = rt.InferenceSession(model, providers=["CPUExecutionProvider"])
        np.testing.assert_array_equal(session.run(["same"], {"x": X})[0], X + 1)
        assert session._model_path == (None if isinstance(model, bytes) else str(path))


def test_signature() -> None:
    session = rt.InferenceSession(fake.model(["N", 3]))
    assert session.get_inputs() == [rt.NodeArg("x", ["N", 3], "tensor(float)")]
    assert [(o.name, o.shape, o.type) for o in session.get_outputs()] == [
        ("y", ["N", 3], "tensor(float)"),
        ("same", ["N", 3], "tensor(float)"),
    ]
    meta = session.get_modelmeta()
    assert (meta.producer_name, meta.graph_name, meta.version) == ("tests", "plus_one", 3)
    assert (meta.graph_description, meta.custom_metadata_map) == ("adds", {"stage": "trial"})
    assert session.get_overridable_initializers() == [rt.NodeArg("one", [1], "tensor(float)")]


def test_open_dims_compile_once_per_shape(pipeline: fake.Pipeline) -> None:
    session = rt.InferenceSession(fake.model(["N", None]))
    assert pipeline.calls == []
    for rows in (1, 2, 1, 2):
        x = np.ones((rows, 4), np.float32)
        np.testing.assert_array_equal(session.run(["y"], {"x": x})[0], x + 1)
    assert [shapes["x"] for shapes, _ in pipeline.calls] == [(1, 4), (2, 4)]
    assert session.compiled_for({"x": [2, 4]}).program.inputs[0].shape == (2, 4)
    assert len(pipeline.calls) == 2


def test_the_shape_used_longest_ago_goes(
    pipeline: fake.Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(programs, "KEPT_PROGRAMS", 2)
    session = rt.InferenceSession(fake.model([0]))
    for count in (1, 2, 1, 3, 1, 2):
        session.run(None, {"x": np.ones(count, np.float32)})
    assert [shapes["x"] for shapes, _ in pipeline.calls] == [(1,), (2,), (3,), (2,)]


def test_symbols_can_be_fixed(pipeline: fake.Pipeline) -> None:
    options = rt.SessionOptions()
    options.add_free_dimension_override_by_name("N", 2)
    session = rt.InferenceSession(fake.model(["N", 3]), options)
    assert [shapes for shapes, _ in pipeline.calls] == [{"x": (2, 3)}]
    with pytest.raises(rt.InvalidInput, match="compiled for"):
        session.run(None, {"x": X[:1]})
    with pytest.raises(rt.InvalidOption, match="dim 'N' cannot have the extent -1"):
        options.add_free_dimension_override_by_name("N", -1)


@pytest.mark.parametrize(
    ("names", "feeds", "message"),
    [
        (None, {}, "plus_one needs the inputs 'x'; missing: 'x'"),
        (None, {"X": X}, "plus_one needs the inputs 'x'; missing: 'x'"),
        (None, {"x": X, "z": X}, "plus_one has no input 'z'; it takes 'x'"),
        (["z"], {"x": X}, "plus_one has no output 'z'; it gives 'y', 'same'"),
        (None, {"x": X[0]}, "input 'x' has the shape [3], the model takes [N, 3, ?]"),
        (None, {"x": np.ones((1, 4, 2))}, "has the shape [1, 4, 2], the model takes [N, 3, ?]"),
        (None, {"x": np.ones((1, 3, 2))}, "input 'x' holds float64, the model takes float32"),
        (None, {"x": [[1], [2, 3]]}, "input 'x' is a list, which numpy cannot read"),
    ],
)
def test_refused_feeds(names: Any, feeds: Any, message: str) -> None:
    session = rt.InferenceSession(fake.model(["N", 3, None]))
    with pytest.raises(rt.InvalidInput) as caught:
        session.run(names, feeds)
    assert message in str(caught.value)


def test_threads_compile_a_shape_once(pipeline: fake.Pipeline) -> None:
    session = rt.InferenceSession(fake.model(["N"]))

    def work(count: int) -> None:
        x = np.full(count, count, np.float32)
        np.testing.assert_array_equal(session.run(["y"], {"x": x})[0], x + 1)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, [1 + i % 4 for i in range(64)]))
    assert len(pipeline.calls) == 4


def test_options_reach_the_compiler(pipeline: fake.Pipeline) -> None:
    options = rt.SessionOptions()
    options.graph_optimization_level = rt.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.fast_math = True
    options.intra_op_num_threads = 2
    options.some_new_option = 3  # type: ignore[attr-defined]
    session = rt.InferenceSession(fake.model([3]), sess_options=options, disabled_optimizers=[])
    assert pipeline.calls[0][1] == rt.CompileOptions(level=0, fast_math=True, threads=2)
    assert session.get_session_options() is options


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("precision", "int8", "precision 'int8' comes with quantization"),
        ("precision", "int3", "precision 'int3' is not one of 'keep', 'bf16'"),
        ("fast_math", "yes", "fast_math 'yes' is not None, True or False"),
        ("intra_op_num_threads", -1, "intra_op_num_threads -1 is not 0 or a count"),
    ],
)
def test_refused_options(name: str, value: Any, message: str) -> None:
    options = rt.SessionOptions()
    setattr(options, name, value)
    with pytest.raises(rt.InvalidOption, match=message):
        rt.InferenceSession(fake.model([3]), options)


def test_providers() -> None:
    model = fake.model([3])
    cuda, cpu = "CUDAExecutionProvider", "CPUExecutionProvider"
    for accepted in (None, [], [cpu], [cuda, cpu], [(cuda, {"device_id": 0}), (cpu, {})]):
        session = rt.InferenceSession(model, providers=accepted)
        assert session.get_providers() == [cpu]
    for refused in ([cuda], [(cuda, {"device_id": 0})]):
        with pytest.raises(rt.InvalidOption, match="CUDAExecutionProvider is reserved"):
            rt.InferenceSession(model, providers=refused)
    with pytest.raises(rt.InvalidOption, match="TPU is no provider of rooftile"):
        session.set_providers(["TPU"])
    assert session.get_provider_options() == {cpu: {}}


def test_calls_without_effect() -> None:
    session = rt.InferenceSession(fake.model([3]))
    session.disable_fallback()
    session.enable_fallback()
    assert session.end_profiling() == ""
    options = rt.RunOptions()
    options.add_run_config_entry("a", "b")
    assert options.get_run_config_entry("a") == "b"
    assert len(session.run(None, {"x": np.ones(3, np.float32)}, options)) == 2


def test_models_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(rt.InvalidModel, match=r"none\.onnx"):
        rt.InferenceSession(str(tmp_path / "none.onnx"))
