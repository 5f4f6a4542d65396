"""The graph IR's text: what it looks like, that it reads back, and what it refuses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rooftile.core.affine import affine
from rooftile.core.dtype import DTYPES, itemsize, to_numpy
from rooftile.core.errors import InvalidIR
from rooftile.ir.graph import (
    Graph,
    Node,
    Region,
    Value,
    attrs,
    digest,
    parse,
    parse_regions,
    regions_to_text,
    to_text,
)

WEIGHTS = np.arange(24, dtype=np.float32).reshape(3, 1, 2, 4)
BODY = Graph(
    "body", (Value("a", (), "bool"),), (Node("not", ("a",), (Value("b", (), "bool"),)),), ("b",)
)


def example() -> Graph:
    """A graph with one of everything."""
    x, y = Value("x", (1, affine("n") * 2 - 3, 4), "f32"), Value("y:0", (1, 4), "f32")
    parts = (Value("p", (1,), "i64"), Value("q", (1,), "i64"))
    held = attrs(
        dims=(1,), none=None, yes=True, text='a "b"\n', nested=((1, 2.5), ()), low=float("-inf")
    )
    return Graph(
        "main/graph",
        (x, Value("input", (), "u8")),
        (
            Node("conv", ("x", "w"), (y,), held, ("Conv_0", "BN 1")),
            Node("split", (), parts),
            Node("if", ("bits",), (Value("z", (), "bool"),), attrs(other=BODY, then=BODY, up=1)),
        ),
        ("y:0", "z"),
        {
            "w": WEIGHTS,
            "tiny": np.array([0.1, -0.0, np.nan, np.inf], np.float32),
            "bits": np.array([[True], [False]]),
            "ints": np.array([-(2**63)], np.int64),
        },
    )


def test_text(golden: Callable[[str, str], None]) -> None:
    golden("graph.txt", to_text(example()))


def test_reads_back_by_digest_or_name() -> None:
    text = to_text(example())
    assert parse(text, {digest(WEIGHTS): WEIGHTS}) == example()
    assert parse(text, {"w": WEIGHTS}) == example()


def test_regions_read_back(golden: Callable[[str, str], None]) -> None:
    x, y = Value("x", (2, 3), "f32"), Value("y", (2, 3), "f32")
    regions = (
        Region(
            "first", (Node("neg", ("x",), (y,), origin=("Neg",)),), (x,), (y,), attrs(split=(2,))
        ),
        Region("second one", (Node("abs", ("y",), (x,)),), (y,), (x, y)),
    )
    text = regions_to_text(regions)
    golden("regions.txt", text)
    assert parse_regions(text) == regions
    assert parse_regions(regions_to_text(())) == ()


NAMES = st.text(min_size=1, max_size=6) | st.sampled_from(
    ("graph", "input", "output", "from", "const", "nan", "a.b", "x/y:0", "%", "+-", "true")
)
DIMS = st.integers(0, 9) | st.builds(
    lambda name, other, a, b, c: affine(name) * a + affine(other) * b + c,
    NAMES,
    NAMES,
    st.integers(1, 3),
    st.integers(-3, 3),
    st.integers(-3, 3),
).filter(lambda value: bool(value.terms))
VALUES = st.builds(Value, NAMES, st.lists(DIMS, max_size=3).map(tuple), st.sampled_from([*DTYPES]))
ATTRS: Any = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(max_size=5)
    | st.just(BODY),
    lambda inner: st.lists(inner, max_size=3).map(tuple),
    max_leaves=5,
)


@st.composite
def arrays(draw: st.DrawFn) -> np.ndarray[Any, Any]:
    """Any bits of any element type."""
    dtype = draw(st.sampled_from([*DTYPES]))
    shape = draw(st.sampled_from([(), (3,), (0,), (2, 2), (17,)]))
    count = int(np.prod(shape))
    size = count * itemsize(dtype)
    if dtype == "bool":
        bits = bytes(draw(st.lists(st.integers(0, 1), min_size=size, max_size=size)))
    else:
        bits = draw(st.binary(min_size=size, max_size=size))
    return np.frombuffer(bits, to_numpy(dtype)).reshape(shape)


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    """A graph that verifies, with odd names and attributes that mean nothing."""
    names = iter(draw(st.lists(NAMES, min_size=7, max_size=7, unique=True)))

    def fresh() -> Value:
        value = draw(VALUES)
        return Value(next(names), value.shape, value.dtype)

    inputs = tuple(fresh() for _ in range(draw(st.integers(0, 2))))
    constants = {next(names): draw(arrays()) for _ in range(draw(st.integers(0, 2)))}
    known = [value.name for value in inputs] + list(constants)
    nodes = []
    for _ in range(draw(st.integers(0, 2))):
        reads = draw(st.lists(st.sampled_from(known), max_size=2)) if known else []
        held = draw(st.dictionaries(NAMES, ATTRS, max_size=3))
        origin = tuple(draw(st.lists(NAMES, max_size=2)))
        node = Node(draw(NAMES), tuple(reads), (fresh(),), tuple(held.items()), origin)
        nodes.append(node)
        known.append(node.name)
    outputs = draw(st.lists(st.sampled_from(known), max_size=2)) if known else []
    return Graph(draw(NAMES), inputs, tuple(nodes), tuple(outputs), constants)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(graphs())
def test_any_graph_reads_back(graph: Graph) -> None:
    data = {digest(array): array for array in graph.constants.values()}
    text = to_text(graph)
    again = parse(text, data)
    assert again == graph
    assert to_text(again) == text


def test_attribute_types_survive() -> None:
    held = attrs(a=1, b=1.0, c=True, d=-0.0, e=1e300, f="1")
    graph = Graph("g", (), (Node("op", (), (Value("y", (), "f32"),), held),), ())
    again = dict(parse(to_text(graph)).nodes[0].attrs)
    assert [(type(v), repr(v)) for v in again.values()] == [(type(v), repr(v)) for _, v in held]


@pytest.mark.parametrize(
    ("dtype", "bits"),
    [
        ("f64", 0x7FF0000000000001),
        ("f64", 0xFFF8000000000000),
        ("f32", 0x7F800001),
        ("f32", 0xFFC00000),
        ("f16", 0x7C01),
        ("bf16", 0xFF81),
    ],
)
def test_every_nan_keeps_its_bits(dtype: str, bits: int) -> None:
    array = np.frombuffer(bits.to_bytes(itemsize(dtype), "little"), to_numpy(dtype))
    graph = Graph("g", (), (), (), {"c": array})
    assert f"[nan(0x{bits:x})]" in to_text(graph)
    assert parse(to_text(graph)) == graph


def test_attribute_of_unknown_type() -> None:
    node = Node("op", (), (Value("y", (), "f32"),), (("a", {1}),))
    with pytest.raises(TypeError, match=r"attribute value \{1\} is no int, float"):
        to_text(Graph("g", (), (node,), ()))


HEAD = "graph g\n  input %x: f32[2]\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1: expected 'graph', found the end"),
        ("graph\n", "line 2: expected a name, found the end"),
        (HEAD + "  %y: f32[2] = neg(%x\n", "line 4: expected ',', found the end"),
        (HEAD + "  %y: f31[2] = neg(%x)", "line 3: 'f31' is no element type; the types are f64"),
        (HEAD + "  %y: f32[2] neg(%x)", "line 3: expected '=', found 'neg'"),
        (HEAD + "\n  %y: f32[2] = neg(%x) {a=?}", "line 4: unexpected character '?'"),
        (HEAD + "  %y: f32[2] = neg(%x) {a=b}", "line 3: expected a value, found 'b'"),
        (HEAD + '  %"\\q": f32[2] = neg(%x)', 'line 3: "\\q" is not a string in JSON\'s form'),
        (HEAD + "  output %x\n  output %x", "line 4: expected the end, found 'output'"),
        (HEAD + "  %y: f32[2] = neg(%z)", "g: %y reads %z before it is computed"),
        (HEAD + "  const %c: f32[3] = [1.0, 2.0]\n", "constant %c has 3 elements, not 2"),
        (HEAD + "  const %c: i8[1] = [300]\n", "300 is outside i8"),
        (HEAD + "  const %c: i8[1] = [1.5]\n", "1.5 is no element of i8"),
        (HEAD + "  const %c: bool[1] = [1]\n", "1 is no element of bool"),
        (HEAD + "  const %c: f16[1] = [nan(0x12345)]\n", "line 3: 0x12345 is too wide for f16"),
        (HEAD + "  const %c: f32[n] = [1.0]\n", "%c: dim n is symbolic here; bind it first"),
        (HEAD + "  const %c: f32[] = [1.0]\n  const %c: f32[] = [1.0]\n", "%c is given twice"),
        (
            HEAD + "  const %c: f32[17] = sha256:00\n",
            "line 3: constant %c: data holds neither sha256:00 nor its name",
        ),
        (HEAD + "  const %w: f32[17] = sha256:00\n", "%w: data holds float32 [3, 1, 2, 4]"),
        (
            HEAD + "  const %w: f32[3,1,2,4] = sha256:00\n",
            f"holds {digest(WEIGHTS)}, not sha256:00",
        ),
    ],
)
def test_malformed(text: str, message: str) -> None:
    with pytest.raises(InvalidIR) as caught:
        parse(text, {"w": WEIGHTS})
    assert message in str(caught.value)


@given(st.text(alphabet='graph input%x:f32[]=(){},"\\ \n', max_size=60))
def test_noise_is_refused_and_nothing_else(noise: str) -> None:
    with pytest.raises(InvalidIR):
        parse(HEAD + "%" + noise + "=")
