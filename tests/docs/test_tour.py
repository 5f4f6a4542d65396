"""docs/tour.py runs, is right, and teaches what it says."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

TOUR = Path(__file__).parents[2] / "docs" / "tour.py"


@pytest.fixture(scope="module")
def tour() -> ModuleType:
    spec = importlib.util.spec_from_file_location("tour", TOUR)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["tour"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def test_the_whole_tour(tour: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    results = tour.main(seconds=0.01)
    assert results["unfused kernels"] == 5 and results["fused kernels"] == 1
    assert results["unfused error"] < 1e-6 and results["fused error"] < 1e-6
    shown = capsys.readouterr().out
    assert "taken: product -> biased: saves" in shown
    assert "dot+add+max+mul+add" in shown and "store y[m, n]" in shown


def test_it_imports_nothing_of_the_project() -> None:
    assert "rooftile" not in [
        line.split()[1].split(".")[0]
        for line in TOUR.read_text(encoding="utf-8").splitlines()
        if line.startswith(("import ", "from "))
    ]


def test_refusals(tour: ModuleType) -> None:
    machine = tour.Machine(peak=1e11, bandwidth=1e10, launch=1e-6, lanes=4)
    nodes = (
        tour.Node("a", "add", ("x", "v")),
        tour.Node("b", "mul", ("a", "v")),
        tour.Node("c", "dot", ("b", "w")),
    )
    shapes = {"x": (6, 8), "v": (8,), "w": (8, 8), "a": (6, 8), "b": (6, 8), "c": (6, 8)}
    regions, ledger = tour.fuse(tour.Graph(nodes, shapes, "c"), machine)
    assert [str(region) for region in regions] == ["add+mul", "dot"]
    assert [verdict.taken for verdict in ledger] == [True, False]
    assert ledger[1].reason == "a dot needs its whole input rows, not one element"
    shared = tour.Graph(
        (*nodes[:2], tour.Node("d", "dot", ("a", "w"))), {**shapes, "d": (6, 8)}, "d"
    )
    assert tour.fuse(shared, machine)[1][0].reason == "a is needed elsewhere too"


def test_other_shapes(tour: ModuleType) -> None:
    lanes = tour.host()[1]
    graph = tour.layer(rows=12, inner=5, columns=2 * lanes * 3)
    inputs = tour.random_inputs(graph)
    machine = tour.Machine(1e11, 1e10, 1e-6, lanes)
    program = tour.build(graph, tour.fuse(graph, machine)[0], inputs, lanes)
    np.testing.assert_allclose(program.run(), tour.truth(graph, inputs), atol=1e-5)
    with pytest.raises(ValueError, match="this tour has no tails: rows by 6, columns by"):
        tour.emit(tour.layer(rows=7), tour.Region(graph.nodes), lanes)
