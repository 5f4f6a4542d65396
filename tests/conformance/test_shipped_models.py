"""Models that ONNX ships beside its node cases, most of opset 6 to 9, as PyTorch wrote them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import onnx
import pytest
from node_cases import Case, judge
from onnx import numpy_helper

FOLDER = Path(onnx.__file__).parent / "backend" / "test" / "data"
KINDS = ("pytorch-converted", "pytorch-operator", "simple")
CASES = sorted(path for kind in KINDS for path in FOLDER.glob(f"{kind}/*/test_data_set_*"))
REFUSED = ("test_gradient_of_add", "test_gradient_of_add_and_mul")
"""Gradient: it stands for the derivative of the graph around it."""


def values(folder: Path, word: str, infos: Sequence[Any]) -> list[Any]:
    """The values that a folder holds for inputs or outputs."""
    found = []
    for number, item in enumerate(infos):
        content = (folder / f"{word}_{number}.pb").read_bytes()
        if item.type.HasField("sequence_type"):
            sequence = onnx.SequenceProto()
            sequence.ParseFromString(content)
            found.append(numpy_helper.to_list(sequence))
        else:
            tensor = onnx.TensorProto()
            tensor.ParseFromString(content)
            found.append(numpy_helper.to_array(tensor))
    return found


def load(folder: Path) -> Case:
    """The model with the inputs and outputs of a folder beside it."""
    model = onnx.load(str(folder.parent / "model.onnx"))
    weights = {tensor.name for tensor in model.graph.initializer}
    inputs = [item for item in model.graph.input if item.name not in weights]
    arrays = values(folder, "input", inputs)
    feeds = dict(zip([item.name for item in inputs], arrays, strict=True))
    wanted = values(folder, "output", model.graph.output)
    return Case(folder.parent.name, model, feeds, wanted, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("folder", CASES, ids=lambda path: f"{path.parent.name}-{path.name[-1]}")
def test_shipped_model(folder: Path) -> None:
    verdict = judge(load(folder))
    expected = "refused" if folder.parent.name in REFUSED else "right"
    assert verdict.word == expected, verdict.detail


@pytest.mark.skipif(not FOLDER.exists(), reason="this onnx comes without its test data")
def test_there_is_something_to_test() -> None:
    assert len(CASES) >= 100
