"""What `except` clauses for onnxruntime catch there, they catch here: each case is run in both."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
from dropin_models import FLOAT, INT64, info, mlp, model_of, node, one

import rooftile
from rooftile.capi import onnxruntime_pybind11_state as state
from rooftile.core.errors import RooftileError

X = np.zeros((2, 16), np.float32)
ends = [info("x", FLOAT, [3])], [info("y", FLOAT, [3])]


def opened(model: Any) -> Callable[[Any], Any]:
    content = model if isinstance(model, (str, bytes, int)) else model.SerializeToString()
    return lambda ort: ort.InferenceSession(content)


def ran(feeds: Any, names: Any = None, **options: Any) -> Callable[[Any], Any]:
    def call(ort: Any) -> Any:
        run_options = ort.RunOptions()
        for name, value in options.items():
            setattr(run_options, name, value)
        session = ort.InferenceSession(mlp().SerializeToString())
        return session.run(names, feeds, run_options)

    return call


def ran_with(model: Any, **feeds: Any) -> Callable[[Any], Any]:
    return lambda ort: opened(model)(ort).run(None, feeds)


def bound(**inputs: Any) -> Callable[[Any], Any]:
    def call(ort: Any) -> Any:
        session = ort.InferenceSession(mlp().SerializeToString())
        binding = session.io_binding()
        for name, array in inputs.items():
            binding.bind_cpu_input(name, array)
        binding.bind_output("scores", "cpu", 0, np.float32, OUT.shape, OUT.ctypes.data)
        session.run_with_iobinding(binding)

    return call


OUT = np.zeros((7, 5), np.float32)
gather = model_of(
    [node("Gather", ["x", "i"], ["y"])],
    [info("x", FLOAT, [3]), info("i", INT64, [1])],
    [info("y", FLOAT, [1])],
)
two = model_of(
    [node("Add", ["x", "z"], ["y"])],
    [info("x", FLOAT, ["n"]), info("z", FLOAT, ["m"])],
    [info("y", FLOAT, [None])],
)
CASES: dict[str, Callable[[Any], Any]] = {
    "no file": opened("/nowhere/none.onnx"),
    "no protobuf": opened(b"no model at all"),
    "cut": opened(mlp().SerializeToString()[:100]),
    "empty": opened(b""),
    "no model": opened(3),
    "unknown op": opened(one("Unknown")),
    "unknown domain": opened(one("Unknown", domain="nobody")),
    "unknown attribute": opened(one("Relu", nothing=1)),
    "wrong axis": opened(one("Softmax", axis=7)),
    "cycle": opened(model_of([node("Add", ["x", "b"], ["a"]), node("Neg", ["a"], ["b"])], *ends)),
    "output from nowhere": opened(model_of([node("Neg", ["x"], ["z"])], *ends)),
    "missing": ran({}),
    "missing, with another": ran({"z": X}),
    "one too many": ran({"x": X, "z": X}),
    "no such output": ran({"x": X}, ["z"]),
    "rank": ran({"x": X[0]}),
    "extent": ran({"x": X[:, :3]}),
    "double": ran({"x": X.astype(np.float64)}),
    "integers": ran({"x": X.astype(np.int64)}),
    "strings": ran({"x": X.astype(str)}),
    "text": ran({"x": "text"}),
    "a list of words": ran({"x": [["a"] * 16]}),
    "a ragged list": ran({"x": [[1.0], [2.0, 3.0]]}),
    "terminated": ran({"x": X}, terminate=True),
    "index": ran_with(gather, x=np.ones(3, np.float32), i=np.array([9])),
    "shapes of a run": ran_with(two, x=np.ones(3, np.float32), z=np.ones(4, np.float32)),
    "bound without input": bound(),
    "bound to another input": bound(z=X),
    "bound to an unfit array": bound(x=X[0]),
    "bound to unfit memory": bound(x=X),
    "severity": lambda ort: ort.set_default_logger_severity(9),
    "no entry": lambda ort: ort.SessionOptions().get_session_config_entry("nothing"),
    "no run entry": lambda ort: ort.RunOptions().get_run_config_entry("nothing"),
    "no library": lambda ort: ort.SessionOptions().register_custom_ops_library("/nowhere.so"),
    "provider": lambda ort: opened(mlp())(ort).set_providers(["Nothing"]),
    "device": lambda ort: ort.OrtValue.ortvalue_from_numpy(X, "cuda", 0),
    "value of a list": lambda ort: ort.OrtValue.ortvalue_from_numpy([1.0]),
    "value of another size": lambda ort: ort.OrtValue.ortvalue_from_numpy(X).update_inplace(X[0]),
}


@pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))
def test_errors_are_caught_by_the_same_names(case: Callable[[Any], Any]) -> None:
    with pytest.raises(Exception) as theirs:
        case(onnxruntime)
    name = theirs.type.__name__
    wanted = getattr(state, name, None) or getattr(builtins, name)
    with pytest.raises(wanted) as ours:
        case(rooftile)
    assert isinstance(ours.value, RooftileError)


def test_all_names_of_exceptions_are_there() -> None:
    import onnxruntime.capi.onnxruntime_pybind11_state as theirs

    names = [n for n, v in vars(theirs).items() if isinstance(v, type) and issubclass(v, Exception)]
    assert len(names) > 10
    assert [name for name in names if not hasattr(state, name)] == []


def test_capi_is_found_by_attribute_too() -> None:
    assert rooftile.capi.onnxruntime_pybind11_state.Fail is state.Fail
    assert rooftile.capi._pybind_state is state
    from rooftile.capi import _pybind_state
    from rooftile.capi.onnxruntime_inference_collection import InferenceSession

    assert _pybind_state.InferenceSession is InferenceSession is rooftile.InferenceSession
    with pytest.raises(AttributeError, match=r"'rooftile\.capi' has no attribute 'nothing'"):
        rooftile.capi.nothing  # noqa: B018


def test_models_that_are_no_files(tmp_path: Path) -> None:
    with pytest.raises(rooftile.InvalidModel, match="cannot be read"):
        rooftile.InferenceSession(tmp_path)
