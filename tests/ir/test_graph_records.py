"""Graph records: look-ups, equality, and what the verifier refuses."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from rooftile.core.affine import affine
from rooftile.core.errors import InvalidIR
from rooftile.ir.graph import Graph, Node, Region, Value, attrs, verify, walk


def value(name: str) -> Value:
    return Value(name, (2,), "f32")


NEG = Node("neg", ("x",), (value("a"),), origin=("N0", "N1"))
ADD = Node("add", ("a", "a"), (value("y"),), attrs(k=[1, np.int64(2)]), ("N1", "N2"))
GRAPH = Graph("g", (value("x"),), (NEG, ADD), ("y",), {"c": np.zeros(2, np.float32)})


def test_look_ups() -> None:
    assert set(GRAPH.values) == {"x", "c", "a", "y"}
    assert GRAPH.values["c"] == value("c")
    assert GRAPH.producers == {"a": NEG, "y": ADD}
    assert GRAPH.consumers["a"] == (ADD,)
    assert GRAPH.consumers["y"] == ()
    assert (ADD.attr("k"), ADD.attr("none", 3), ADD.name) == ((1, 2), 3, "y")


def test_equality_compares_bits() -> None:
    zero = GRAPH.with_nodes(GRAPH.nodes, {"c": np.array([0.0, 0.0], np.float32)})
    minus = GRAPH.with_nodes(GRAPH.nodes, {"c": np.array([0.0, -0.0], np.float32)})
    assert zero == GRAPH
    assert minus != GRAPH
    assert GRAPH.with_nodes((NEG,)) != GRAPH
    assert zero != "g"


def test_symbolic_dims() -> None:
    with pytest.raises(InvalidIR, match="%n: dim b is symbolic here; bind it first"):
        _ = Value("n", (affine("b"),), "f32").dims


def test_region_and_walk() -> None:
    region = Region("r", (NEG, ADD), (value("x"),), (value("y"),))
    assert region.root is ADD
    assert region.origin == ("N0", "N1", "N2")
    outer = Graph("outer", (), (Node("if", (), (value("z"),), attrs(body=GRAPH)),), ("z",))
    assert [graph.name for graph in walk(outer)] == ["outer", "g"]


@pytest.mark.parametrize(
    ("graph", "message"),
    [
        (replace(GRAPH, nodes=(ADD, NEG)), "g: %y reads %a before it is computed"),
        (replace(GRAPH, nodes=(NEG, NEG)), "g: %a is computed twice"),
        (replace(GRAPH, outputs=("q",)), "g: output %q is never computed"),
        (replace(GRAPH, inputs=(value("c"),)), "g: an input or constant is named twice"),
    ],
)
def test_verify_refuses(graph: Graph, message: str) -> None:
    assert verify(GRAPH) is GRAPH
    with pytest.raises(InvalidIR) as caught:
        verify(graph)
    assert str(caught.value) == message
