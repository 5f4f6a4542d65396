"""Programs on disk: found again by content, options and code; damage and changes are noticed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import rooftile as rt
from rooftile.session import kept


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache in which every program is worth a file."""
    monkeypatch.setenv("ROOFTILE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv(kept.SWITCH, "1")
    monkeypatch.setattr(kept, "LEAST_S", 0.0)
    return tmp_path / "cache" / "programs"


WEIGHTS = np.arange(12, dtype=np.float32).reshape(3, 4)


def model(dims: list[int | str], weights: np.ndarray = WEIGHTS) -> onnx.ModelProto:
    """y = x @ weights + 1, the graph named by its dims."""
    graph = helper.make_graph(
        [
            helper.make_node("MatMul", ["x", "w"], ["p"]),
            helper.make_node("Add", ["p", "one"], ["y"]),
        ],
        "product",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, dims)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [dims[0], 4])],
        [numpy_helper.from_array(weights, "w"), numpy_helper.from_array(np.float32([1]), "one")],
    )
    imports = [helper.make_opsetid("", 17)]
    return helper.make_model(graph, opset_imports=imports, ir_version=8)


def right(session: rt.InferenceSession, count: int, weights: np.ndarray = WEIGHTS) -> None:
    x = np.random.default_rng(count).normal(size=(count, 3)).astype(np.float32)
    np.testing.assert_allclose(session.run(None, {"x": x})[0], x @ weights + 1, rtol=1e-5)


@pytest.mark.parametrize("dims", [[5, 3], ["n", 3]], ids=["known", "open"])
def test_a_second_session_compiles_nothing(
    dims: list[int | str], folder: Path, compiled: list[bool]
) -> None:
    content = model(dims).SerializeToString()
    first = rt.InferenceSession(content)
    right(first, 5)
    assert len(compiled) == 1
    second = rt.InferenceSession(content)
    for count in (5,) if dims[0] == 5 else (5, 40, 7):
        right(second, count)
    assert len(compiled) == 1
    assert second.get_inputs() == first.get_inputs()
    assert second.get_outputs() == first.get_outputs()
    assert second.get_modelmeta() == first.get_modelmeta()
    assert second.decisions == first.decisions


def test_what_differs_is_compiled(folder: Path, compiled: list[bool]) -> None:
    right(rt.InferenceSession(model([5, 3]).SerializeToString()), 5)
    right(rt.InferenceSession(model([5, 3], WEIGHTS + 1).SerializeToString()), 5, WEIGHTS + 1)
    options = rt.SessionOptions()
    options.graph_optimization_level = rt.GraphOptimizationLevel.ORT_DISABLE_ALL
    right(rt.InferenceSession(model([5, 3]).SerializeToString(), options), 5)
    assert len(compiled) == 3


def test_other_code_compiles_anew(
    folder: Path, compiled: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    content = model([5, 3]).SerializeToString()
    right(rt.InferenceSession(content), 5)
    monkeypatch.setattr(kept, "fingerprint", lambda: "another")
    right(rt.InferenceSession(content), 5)
    assert len(compiled) == 2


def test_external_data_is_part_of_the_model(
    folder: Path, tmp_path: Path, compiled: list[bool]
) -> None:
    path = tmp_path / "model.onnx"
    for weights in (WEIGHTS, WEIGHTS, WEIGHTS * 2, WEIGHTS):
        proto = model(["n", 3], weights)
        onnx.save_model(proto, path, save_as_external_data=True, location="w.bin", size_threshold=0)
        right(rt.InferenceSession(str(path)), 5, weights)
        (tmp_path / "w.bin").unlink()
    assert len(compiled) == 2


@pytest.mark.parametrize("location", ["/dev/zero", "../outside.bin"])
def test_files_outside_the_folder_are_not_read(location: str, folder: Path, tmp_path: Path) -> None:
    (tmp_path / "outside.bin").write_bytes(bytes(100))
    entry = kept.kept(model([5, 3]).SerializeToString(), rt.CompileOptions())
    assert entry is not None
    entry.folder = tmp_path / "models"
    assert entry._digests([location]) == {location: None}


def _damaged(raw: bytes, place: int) -> list[bytes]:
    flipped = bytearray(raw)
    flipped[place] ^= 0x10
    return [bytes(flipped), raw[:place], b""]


@pytest.mark.parametrize("kind", range(3), ids=["flipped", "cut", "emptied"])
def test_damaged_files_are_made_anew(kind: int, folder: Path, compiled: list[bool]) -> None:
    content = model(["n", 3]).SerializeToString()
    right(rt.InferenceSession(content), 5)
    files = sorted(folder.glob("*.program"))
    assert len(files) == 2
    for path in files:
        raw = path.read_bytes()
        for place in range(3, len(raw), max(1, len(raw) // 40)):
            path.write_bytes(_damaged(raw, place)[kind])
            right(rt.InferenceSession(content), 5)
            path.write_bytes(raw)


def test_a_changed_weight_in_the_file_is_noticed(folder: Path, compiled: list[bool]) -> None:
    content = model([5, 3]).SerializeToString()
    right(rt.InferenceSession(content), 5)
    [path] = [p for p in folder.glob("*.program") if not p.name.endswith("signature.program")]
    raw = path.read_bytes()
    place = raw.rindex(np.float32(11).tobytes())
    path.write_bytes(raw[:place] + np.float32(12).tobytes() + raw[place + 4 :])
    right(rt.InferenceSession(content), 5)
    assert len(compiled) == 2


def test_no_place_on_disk(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("ROOFTILE_CACHE", str(tmp_path / "file"))
    monkeypatch.setenv(kept.SWITCH, "1")
    right(rt.InferenceSession(model(["n", 3]).SerializeToString()), 5)


def test_what_was_spared_is_counted(folder: Path) -> None:
    content = model([5, 3]).SerializeToString()
    for _ in range(3):
        right(rt.InferenceSession(content), 5)
    assert kept.spared(folder) > 0
    text = "1.5\n" * (kept._MOST_LINES + 1) + "damaged line\n"
    (folder / kept._SPARED).write_text(text)
    assert kept.spared(folder) == pytest.approx(1.5 * (kept._MOST_LINES + 1))
    assert len((folder / kept._SPARED).read_text().split()) == 1


SCRIPT = """
import sys, numpy as np, rooftile
session = rooftile.InferenceSession(sys.argv[1])
print(session.run(None, {"x": np.ones((5, 3), np.float32)})[0].sum())
names = ("onnx", "llvmlite", "rooftile.pipeline", "rooftile.frontends", "rooftile.codegen")
print([name for name in names if name in sys.modules])
"""


def test_a_new_process_imports_no_compiler(folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    onnx.save(model(["n", 3]), path)
    command = [sys.executable, "-c", SCRIPT, str(path)]
    first, second = (
        subprocess.run(command, capture_output=True, text=True, check=True).stdout.split("\n")
        for _ in range(2)
    )
    assert first[0] == second[0]
    assert "onnx" in first[1] and second[1] == "[]"
