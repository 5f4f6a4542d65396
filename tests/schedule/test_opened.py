"""Kernels with extents that only a run knows: as text, and right at many sizes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from sketch import Sketch, feeds_of, normal

from rooftile.core.affine import bind
from rooftile.core.errors import NotLowered
from rooftile.core.symbolic import Symbols, evaluated
from rooftile.ir.graph import Graph, Region, Value
from rooftile.ir.tile.interpret import run
from rooftile.ir.tile.text import to_text
from rooftile.ir.tile.verify import verify
from rooftile.lower import lower
from rooftile.machine import presets
from rooftile.ops.evaluate import evaluate
from rooftile.schedule import Scheduled, schedule

MACHINE = presets()["zen4-server"]
Made = Callable[[Sketch, int, int], Value]


def softmax(s: Sketch, n: int, m: int) -> Value:
    x = s.input(n, m)
    shifted = s("exp", s("sub", x, s("reduce", x, op="max", dims=(1,))))
    return s("div", shifted, s("reduce", shifted, op="sum", dims=(1,)))


def linear(s: Sketch, n: int, m: int) -> Value:
    x = s("reshape", s.input(n, m, 8), shape=(n * m, 8))
    y = s("max", s.dot(x, s.constant(normal(8, 24))), 0.0)
    return s("reshape", y, shape=(n, m, 24))


def product(s: Sketch, n: int, m: int) -> Value:
    return s.dot(s.input(5, n), s.input(n, m))


def mean(s: Sketch, n: int, m: int) -> Value:
    total = s("reduce", s("mul", s.input(n, m, 6), 2.0), op="sum", dims=(0, 1))
    return s(
        "div",
        total,
        s("reshape", s("cast", s("number", value=n * m), dtype="f32"), shape=(1, 1, 1)),
    )


def looked_up(s: Sketch, n: int, m: int) -> Value:
    """Rows picked from the end."""
    places = s(
        "sub",
        s("iota", shape=(m,), axis=0, dtype="i64"),
        s("broadcast", s("reshape", s("number", value=m), shape=(1,)), shape=(m,)),
    )
    return s("gather", s.input(m + n, 4), places, axis=0)


CASES: dict[str, Made] = {f.__name__: f for f in (softmax, linear, product, mean, looked_up)}


def opened(make: Made, n: int, m: int) -> tuple[Graph, Scheduled, tuple[str, ...], Symbols]:
    """The graph with open dims, and its one kernel."""
    symbols, sketch = Symbols(), Sketch()
    graph = sketch.graph(make(sketch, symbols.new("N", n), symbols.new("M", m)))
    made = {node.name for node in graph.nodes}
    read = dict.fromkeys(name for node in graph.nodes for name in node.inputs if name not in made)
    outputs = tuple(graph.values[name] for name in graph.outputs)
    region = Region("r", graph.nodes, tuple(graph.values[name] for name in read), outputs)
    found = lower(region, graph.constants)
    verify(found.kernel)
    chosen = schedule(found.kernel, MACHINE, found.constants(graph), symbols.hints)
    verify(chosen.kernel)
    return graph, chosen, found.arguments, symbols


@pytest.mark.parametrize("name", CASES)
def test_text(name: str, golden: Callable[[str, str], None]) -> None:
    _, chosen, _, symbols = opened(CASES[name], 24, 40)
    lines = [f"# {key} is {value}" for value, key in symbols.named.items()]
    lines += [f"# {axis} reaches {least}" for axis, least in chosen.hints.least]
    golden(f"opened/{name}.txt", to_text(chosen.kernel) + "\n".join(lines) + "\n")


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize(("n", "m"), [(24, 40), (16, 33), (57, 16), (100, 129)])
def test_values(name: str, n: int, m: int) -> None:
    graph, chosen, arguments, symbols = opened(CASES[name], 24, 40)
    sketch = Sketch()
    plain = sketch.graph(CASES[name](sketch, n, m))
    feeds = feeds_of(plain)
    [wanted] = evaluate(plain, feeds).values()
    values = {"N": n, "M": m}
    numbers = {key: poly.value(values) for poly, key in symbols.named.items()} | values
    memory = [buf for buf in chosen.kernel.bufs if buf.space == "memory"]
    arrays = {}
    for buf, value in zip(memory, arguments, strict=True):
        if value.startswith("#"):
            arrays[buf.name] = np.asarray(evaluated(symbols.number(value[1:]), values))
        elif buf.name not in chosen.kernel.outputs:
            known = feeds[value] if value in feeds else graph.constants[value]
            shape = [bind(extent, numbers) for extent in buf.shape]
            arrays[buf.name] = np.asarray(known).reshape(shape)
    [found] = run(chosen.kernel, arrays, numbers).values()
    np.testing.assert_allclose(found.reshape(wanted.shape), wanted, 1e-6, 1e-6)


def test_a_dot_is_not_computed_twice() -> None:
    def attention(s: Sketch, n: int, m: int) -> Value:
        scores = s.dot(s.input(n, 8), s.input(8, m))
        return s("sub", scores, s("reduce", scores, op="max", dims=(1,)))

    with pytest.raises(NotLowered, match="a dot along n would be computed again"):
        opened(attention, 24, 40)


def test_columns_that_lie_apart_are_refused() -> None:
    def transposed(s: Sketch, n: int, m: int) -> Value:
        a, b = s.input(6, 8), s.input(m, 8)
        over = {"lhs_contract": (1,), "rhs_contract": (1,), "lhs_batch": (), "rhs_batch": ()}
        return s("dot", a, b, **over)

    with pytest.raises(NotLowered, match="x1 lies across axis n, whose extent a run knows"):
        opened(transposed, 24, 40)
