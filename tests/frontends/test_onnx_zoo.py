"""Trained models: read, simplified and laid out, each time against onnxruntime."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest
import zoo
from onnx_models import optimized, truth

from rooftile.frontends.onnx import read, signature
from rooftile.frontends.onnx.nodes import node_names
from rooftile.ops.evaluate import check_types, evaluate

TOLERANCE = 2e-5
"""Of the largest element: f32 sums of onnxruntime against float64."""


@pytest.mark.parametrize("name", zoo.ROWS)
def test_every_stage_computes_what_onnxruntime_does(name: str) -> None:
    path, feeds = zoo.path(name), zoo.feed(name)
    wanted = truth(onnx.load(path), feeds)
    graph = check_types(read(path, zoo.shapes(name)))
    for stage in (graph, optimized(graph, 0), optimized(graph, 1)):
        for found, array in zip(evaluate(stage, feeds).values(), wanted, strict=True):
            scale = max(1.0, float(np.abs(array).max()))
            assert found.shape == array.shape
            assert float(np.abs(found - array).max()) <= TOLERANCE * scale


@pytest.mark.parametrize("name", zoo.ROWS)
def test_signatures(name: str) -> None:
    path = zoo.path(name)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session, found = onnxruntime.InferenceSession(path, options), signature(path)
    for mine, theirs in zip(found.inputs, session.get_inputs(), strict=True):
        assert (mine.name, list(mine.shape), mine.type) == (theirs.name, theirs.shape, theirs.type)
    assert [item.name for item in found.outputs] == [item.name for item in session.get_outputs()]


@pytest.mark.parametrize("name", zoo.ROWS)
def test_every_node_names_where_it_came_from(name: str) -> None:
    graph = read(zoo.path(name), zoo.shapes(name))
    names = set(node_names(onnx.load(zoo.path(name)).graph.node))
    for stage in (graph, optimized(graph)):
        for node in stage.nodes:
            assert set(node.origin) <= names
            assert node.origin or node.name in graph.outputs
