"""Random graphs compiled, fused and unfused, against the evaluator of ops in float64."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from random_graphs import Maker, by_seed, drawn
from sketch import feeds_of

from rooftile.core.options import CompileOptions
from rooftile.ir.graph import Graph
from rooftile.ir.graph.text import to_text
from rooftile.ops.evaluate import evaluate
from rooftile.pipeline import compile_graph


def agree(graph: Graph) -> None:
    """Both plans give what the ops say, to a few roundings of the largest value."""
    feeds = feeds_of(graph)
    wanted = evaluate(graph, feeds)
    for fuse in (False, True):
        compiled = compile_graph(graph, CompileOptions(fuse=fuse))
        outputs = compiled.executable.run([feeds[port.name] for port in compiled.program.inputs])
        for name, got in zip(graph.outputs, outputs, strict=True):
            want = wanted[name]
            assert got.shape == want.shape
            bound = 2e-4 * max(1.0, float(np.max(np.abs(want), initial=0.0)))
            error = np.max(np.abs(got - want), initial=0.0)
            assert error <= bound, f"{name}, fuse={fuse}: {error}\n{to_text(graph)}"


@given(st.data())
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
def test_small_graphs(data: st.DataObject) -> None:
    agree(Maker(drawn(data)).graph(data.draw(st.integers(1, 6))))


@pytest.mark.parametrize("seed", [272, 391, 418, 426, 1401, 1594])
def test_graphs_that_once_failed(seed: int) -> None:
    """Padding and gathering in parts of concats, and reshapes that only copy."""
    agree(Maker(by_seed(seed)).graph(2 + seed % 12))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(200))
def test_larger_graphs(seed: int) -> None:
    agree(Maker(by_seed(seed)).graph(2 + seed % 12))
