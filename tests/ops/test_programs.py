"""Ops that go step by step: references against loops, programs through the tile interpreter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pointwise import values

from rooftile.core.dtype import from_numpy
from rooftile.core.errors import InvalidInput, InvalidModel
from rooftile.ir.graph import Array, Node, Value, attrs
from rooftile.ir.tile.cost import cost
from rooftile.ir.tile.interpret import run
from rooftile.ir.tile.text import parse, to_text
from rooftile.ir.tile.verify import verify
from rooftile.ops import OPS


def check_program(name: str, arrays: Sequence[Array], **attributes: Any) -> Array:
    """Assert that the program, read back from its text, gives what the reference gives, and that
    operations are counted alike (beside those on indices); the reference's result."""
    op, held = OPS[name], attrs(**attributes)
    inputs = values(arrays, [from_numpy(array.dtype) for array in arrays])
    ((shape, dtype),) = op.infer(dict(held), inputs)
    (wanted,) = op.reference(dict(held), arrays)
    assert wanted.shape == shape
    node = Node(name, tuple(v.name for v in inputs), (Value("out", shape, dtype),), held)
    assert op.program is not None and op.body is None
    kernel = verify(op.program(node, inputs))
    assert parse(to_text(kernel)) == kernel
    bufs = [buf.name for buf in kernel.bufs if buf.space == "memory"]
    found = run(kernel, dict(zip(bufs, arrays, strict=False)), native=True)
    np.testing.assert_allclose(found[bufs[len(arrays)]], wanted, rtol=1e-6)
    if not name.startswith("scatter"):
        assert cost(kernel).total_flops == op.flops(dict(held), inputs, node.outputs)
    return np.asarray(wanted)


@pytest.mark.parametrize("op", ["sum", "prod"])
@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize(("exclusive", "reverse"), [(False, False), (True, False), (True, True)])
def test_cumulative(op: str, axis: int, exclusive: bool, reverse: bool) -> None:
    x = np.random.default_rng(0).integers(-3, 4, (2, 5, 3))
    found = check_program("cumulative", [x], op=op, axis=axis, exclusive=exclusive, reverse=reverse)
    for place in np.ndindex(*x.shape):
        row = np.moveaxis(x, axis, -1)[tuple(p for d, p in enumerate(place) if d != axis)]
        at = place[axis]
        part = row[at + exclusive :] if reverse else row[: at + 1 - exclusive]
        assert found[place] == (part.sum() if op == "sum" else part.prod())


def test_half_precision_totals_are_held_in_f32() -> None:
    x = np.full((1, 4000), 1, np.float16)
    attributes = {"op": "sum", "axis": 1, "exclusive": False, "reverse": False}
    node = Node("cumulative", ("x",), (Value("y", x.shape, "f16"),), attrs(**attributes))
    program = OPS["cumulative"].program
    assert program is not None
    kernel = verify(program(node, [Value("x", x.shape, "f16")]))
    assert "f32" in to_text(kernel)
    assert run(kernel, {"x0": x}, native=True)["y0"][0, -1] == 4000


def test_cumulative_refuses() -> None:
    x = Value("x", (3,), "f32")
    known = {"axis": 0, "exclusive": False, "reverse": False}
    with pytest.raises(InvalidModel, match="op 'mean' must be one of sum, prod"):
        OPS["cumulative"].infer({"op": "mean", **known}, [x])
    with pytest.raises(InvalidModel, match="attribute reverse must be true or false"):
        OPS["cumulative"].infer({"op": "sum", **known, "reverse": 1}, [x])


def order(row: Array, descending: bool) -> list[int]:
    """A stable sort by Python, NaN largest."""

    def key(place: int) -> tuple[bool, float]:
        nan = row[place] != row[place]
        return bool(nan), 0.0 if nan else float(row[place])

    found = sorted(range(len(row)), key=key)
    if descending:
        groups: dict[tuple[bool, float], list[int]] = {}
        for place in found:
            groups.setdefault(key(place), []).append(place)
        found = [place for group in sorted(groups, reverse=True) for place in groups[group]]
    return found


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.sampled_from([0.0, -0.0, 1.0, -1.0, 2.5, np.inf, -np.inf, np.nan]), min_size=1),
    st.booleans(),
    st.sampled_from(["float32", "float64", "float16"]),
)
def test_argsort_of_floats(items: list[float], descending: bool, dtype: str) -> None:
    x = np.array(items, dtype)
    found = check_program("argsort", [x], axis=0, count=len(x), descending=descending)
    assert found.tolist() == order(x, descending)


@settings(max_examples=40, deadline=None)
@given(st.data(), st.sampled_from(["int8", "uint8", "int32", "uint32", "int64", "uint64"]))
def test_argsort_of_integers(data: st.DataObject, dtype: str) -> None:
    info = np.iinfo(dtype)
    edges = [info.min, info.max, info.max // 2, 1]
    number = st.one_of(st.sampled_from(edges), st.integers(int(info.min), int(info.max)))
    x = np.array(data.draw(st.lists(number, min_size=1, max_size=20)), dtype)
    descending = data.draw(st.booleans())
    found = check_program("argsort", [x], axis=0, count=len(x), descending=descending)
    assert [int(x[n]) for n in found] == sorted(map(int, x), reverse=descending)


def test_argsort_along_an_inner_axis() -> None:
    x = np.random.default_rng(1).integers(0, 5, (2, 9, 3))
    found = check_program("argsort", [x], axis=1, count=4, descending=True)
    for a, b in np.ndindex(2, 3):
        assert found[a, :, b].tolist() == order(x[a, :, b], True)[:4]
    with pytest.raises(InvalidModel, match=r"count 10 is not in 0\.\.9"):
        OPS["argsort"].infer(
            {"axis": 1, "count": 10, "descending": True}, [Value("x", (2, 9, 3), "f32")]
        )


COMBINE = {
    "": lambda old, new: new,
    "add": lambda old, new: old + new,
    "mul": lambda old, new: old * new,
    "max": max,
    "min": min,
}


@pytest.mark.parametrize("combine", COMBINE)
def test_scatter_elements_applies_duplicates_in_order(combine: str) -> None:
    rng = np.random.default_rng(2)
    data, updates = rng.integers(-9, 9, (3, 4, 2)), rng.integers(-9, 9, (2, 7, 2))
    indices = rng.integers(-4, 4, (2, 7, 2))
    found = check_program("scatter_elements", [data, indices, updates], axis=1, combine=combine)
    wanted = data.copy()
    for a, b, c in np.ndindex(*updates.shape):
        at = a, indices[a, b, c], c
        wanted[at] = COMBINE[combine](wanted[at], updates[a, b, c])
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("combine", COMBINE)
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_scatter_of_slices(combine: str, depth: int) -> None:
    rng = np.random.default_rng(depth)
    data = rng.integers(-9, 9, (3, 4, 2))
    indices = rng.integers(-2, 2, (5, depth)).astype(np.int32)
    updates = rng.integers(-9, 9, (5, *data.shape[depth:]))
    found = check_program("scatter", [data, indices, updates], combine=combine)
    wanted = data.copy()
    for row, update in zip(indices, updates, strict=True):
        for place in np.ndindex(*data.shape[depth:]):
            at = (*row, *place)
            wanted[at] = COMBINE[combine](wanted[at], update[place])
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("name", ["scatter_elements", "scatter"])
def test_scatter_outside_the_data(name: str) -> None:
    data, updates = np.zeros(4), np.ones(2)
    indices = np.array([0, 4]) if name == "scatter_elements" else np.array([[0], [-5]])
    attributes = {"combine": ""} | ({"axis": 0} if name == "scatter_elements" else {})
    with pytest.raises(InvalidInput, match=f"{name}: index -?[45] is outside 4 elements"):
        OPS[name].reference(attributes, [data, indices, updates])
    inputs = values([data, indices, updates], ["f64", "i64", "f64"])
    node = Node(name, ("a", "b", "c"), (Value("y", (4,), "f64"),), attrs(**attributes))
    program = OPS[name].program
    assert program is not None
    arrays = {"x0": data, "x1": indices, "x2": updates}
    with pytest.raises(InvalidInput, match=r"into y0 is outside 0\.\.3"):
        run(program(node, inputs), arrays)


def test_what_scatter_refuses() -> None:
    data, rows = Value("d", (3, 4), "f32"), Value("i", (5, 1), "i64")
    with pytest.raises(InvalidModel, match="do not fit %d"):
        OPS["scatter"].infer({"combine": ""}, [data, rows, Value("u", (5, 3), "f32")])
    with pytest.raises(InvalidModel, match="combine 'xor' must be one of"):
        OPS["scatter"].infer({"combine": "xor"}, [data, rows, Value("u", (5, 4), "f32")])
    with pytest.raises(InvalidModel, match="must be i32 or i64"):
        OPS["scatter"].infer(
            {"combine": ""}, [data, Value("i", (5, 1), "u8"), Value("u", (5, 4), "f32")]
        )
    with pytest.raises(InvalidModel, match="reach outside dim 0"):
        OPS["scatter_elements"].infer(
            {"combine": "", "axis": 1}, [data, Value("i", (4, 4), "i64"), Value("u", (4, 4), "f32")]
        )
    flags = Value("d", (3,), "bool"), Value("i", (3,), "i64"), Value("u", (3,), "bool")
    with pytest.raises(InvalidModel, match="is bool: only replaced"):
        OPS["scatter_elements"].infer({"combine": "max", "axis": 0}, list(flags))
