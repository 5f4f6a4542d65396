"""compile, load, and what a compiled model can do."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import fake
import numpy as np
import pytest

import rooftile as rt

X = np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.fixture
def compiled(pipeline: fake.Pipeline) -> rt.Compiled:
    return rt.compile(fake.model(["N", 3]), shapes={"x": [2, 3]})


def test_ways_to_call(compiled: rt.Compiled) -> None:
    for out in (compiled(X), compiled(x=X), compiled({"x": X})):
        np.testing.assert_array_equal(out[0], X + 1)
    assert compiled.program == fake.program((2, 3))
    assert [decision.verdict for decision in compiled.journal] == ["taken"]
    assert compiled.compilation.graph == "graph"


@pytest.mark.parametrize(
    ("arrays", "named", "message"),
    [
        ((), {}, "plus_one needs the inputs 'x'; missing: 'x'"),
        ((X, X), {}, "plus_one takes 'x'; got 2 arrays in order"),
        ((X,), {"x": X}, "got 1 arrays in order and 'x' by name too"),
        (({"x": X},), {"z": X}, "plus_one has no input 'z'"),
        ((X[:1],), {}, "was compiled for [2, 3]"),
    ],
)
def test_refused_calls(compiled: rt.Compiled, arrays: Any, named: Any, message: str) -> None:
    with pytest.raises(rt.InvalidInput) as caught:
        compiled(*arrays, **named)
    assert message in str(caught.value)


def test_explain(compiled: rt.Compiled) -> None:
    text = compiled.explain()
    assert text.startswith("plus_one: 1 kernel for 1 node on ")
    assert "(predicted)" in text
    assert "(sum of the kernels alone)" in compiled.explain({"x": X})
    facts = compiled.explanation({"x": X})
    assert [(kernel.name, kernel.origin) for kernel in facts.kernels] == [("inc", ("Add_0",))]
    with pytest.raises(rt.InvalidInput, match="missing: 'x'"):
        compiled.explain({})


def test_report(compiled: rt.Compiled, tmp_path: Path) -> None:
    compiled.report(tmp_path / "r.html")
    assert "<title>plus_one</title>" in (tmp_path / "r.html").read_text()


def test_options(pipeline: fake.Pipeline) -> None:
    options = rt.CompileOptions(level=0, fuse=False, threads=2)
    rt.compile(fake.model([3]), options, {"x": (3,)})
    assert pipeline.calls == [({"x": (3,)}, options)]
    with pytest.raises(rt.InvalidOption, match="comes with quantization"):
        rt.compile(fake.model([3]), rt.CompileOptions(precision="bf16"))
    with pytest.raises(rt.InvalidOption, match="SessionOptions or CompileOptions, not str"):
        rt.compile(fake.model([3]), "fast")  # type: ignore[arg-type]
    with pytest.raises(rt.InvalidOption, match="level 7 is not one of 0, 1"):
        rt.CompileOptions(level=7)
    with pytest.raises(rt.InvalidOption, match="threads 0 is not a count of at least 1"):
        rt.CompileOptions(threads=0)


def test_save_and_load(compiled: rt.Compiled, tmp_path: Path) -> None:
    path = tmp_path / "plus_one.rt"
    compiled.journal.add("plan", ("y",), "refused", "odd figure", figure=np.float32(2))
    compiled.save(path)
    loaded = rt.load(path)
    np.testing.assert_array_equal(loaded(X)[0], X + 1)
    assert loaded.program == compiled.program
    assert loaded.compilation is None
    assert [(d.stage, d.subject) for d in loaded.journal] == [
        ("fuse", ("Add_0", "Identity_1")),
        ("plan", ("y",)),
    ]
    with pytest.raises(rt.InvalidModel, match="cannot be read"):
        rt.load(tmp_path / "none")


def test_loading_needs_neither_compiler_nor_onnx(compiled: rt.Compiled, tmp_path: Path) -> None:
    path = tmp_path / "plus_one.rt"
    compiled.save(path)
    code = f"""
import sys
import rooftile as rt
assert not [name for name in sys.modules if name.startswith(("rooftile.", "numpy", "llvmlite"))]
import numpy as np
out, _ = rt.load({str(path)!r})(np.zeros((2, 3), np.float32))
assert (out == 1).all()
rooms = ("pipeline", "frontends", "codegen", "plan", "passes", "lower", "schedule", "ops")
parts = ("onnx", "llvmlite", *(f"rooftile.{{room}}" for room in rooms))
assert not [name for name in sys.modules if name.startswith(parts)]
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_public_names() -> None:
    assert all(getattr(rt, name) is not None for name in rt.__all__)
    assert dir(rt) == sorted(rt.__all__)
    assert rt.errors.RooftileError is rt.RooftileError
    assert rt.memory.pack and rt.machine.probe
    assert rt.__version__.startswith("0.")
    with pytest.raises(AttributeError, match="module 'rooftile' has no attribute 'nothing'"):
        rt.nothing  # noqa: B018


def test_module_functions() -> None:
    assert rt.get_available_providers() == rt.get_all_providers() == ["CPUExecutionProvider"]
    assert rt.get_device() == "CPU"
    rt.set_default_logger_severity(4)
    rt.set_default_logger_verbosity(0)
    with pytest.raises(rt.InvalidOption, match="logger severity 9 is not one of 0 to 4"):
        rt.set_default_logger_severity(9)


def test_entries_of_options() -> None:
    options = rt.SessionOptions()
    options.add_session_config_entry("a", "b")
    assert options.get_session_config_entry("a") == "b"
    with pytest.raises(rt.InvalidOption, match="no entry 'c' was added"):
        options.get_session_config_entry("c")
