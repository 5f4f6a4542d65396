"""The program IR's text: what it looks like, that it reads back, and what it refuses."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rooftile.core.dtype import DTYPES
from rooftile.core.errors import InvalidIR
from rooftile.core.symbolic import Symbols
from rooftile.ir.program import (
    Arg,
    Buffer,
    Copy,
    HostCall,
    KernelFacts,
    Launch,
    Port,
    Program,
    Split,
    parse,
    to_text,
)
from rooftile.ir.program.place import bound
from rooftile.ir.program.records import SPACES

SMALL = Program(
    "small",
    inputs=(Port("x", "x", (2, 3), "f32"),),
    outputs=(Port("softmax:0", "y", (2, 3), "f32"),),
    buffers=(
        Buffer("x", 24, "input"),
        Buffer("w", 128, "constant", 64),
        Buffer("out", 24, "arena"),
        Buffer("y", 24, "output", 0, 4),
    ),
    steps=(
        Launch("mul", (Arg("x"), Arg("w", 4), Arg("out")), KernelFacts(("a", "b"), flops=6)),
        HostCall(
            "sort",
            (Port("v", "out", (6,), "f32"),),
            (Port("w", "out", (6,), "f32"),),
            (("axis", -1), ("keys", (1, None))),
            ("Sort_7",),
        ),
        Copy(Arg("out"), Arg("y", 8), 16),
    ),
    arena_bytes=64,
    lower_bound_bytes=24,
    no_reuse_bytes=24,
)
TEXT = """\
program small
  arena 64 bound 24 no_reuse 24
  buffer x input 24 at 0 align 64
  buffer w constant 128 at 64 align 64
  buffer "out" arena 24 at 0 align 64
  buffer y output 24 at 0 align 4
  input x = x[2, 3] f32
  output "softmax:0" = y[2, 3] f32
  launch mul(x, w+4, out "out")
    facts {"origin": ["a", "b"], "ops": [], "dtype": "f32", "flops": 6, "bytes_read": 0, \
"bytes_written": 0, "bytes_unfused": 0, "predicted_s": 0.0, "schedule": {}}
  host sort(v = "out"[6] f32) -> (w = "out"[6] f32)
    attrs {"axis": -1, "keys": [1, null]}
    origin ["Sort_7"]
  copy "out" -> y+8 16
"""


def test_text() -> None:
    assert to_text(SMALL) == TEXT
    assert parse(TEXT) == SMALL


def test_comments_and_blank_lines_are_skipped() -> None:
    assert parse("# saved by hand\n\n" + TEXT.replace("  copy", "\n  # last\n  copy")) == SMALL


names = st.text(max_size=8) | st.sampled_from(["out", "x.1", "a b", 'q"', "\n", "名", "é\u2028"])
counts = st.integers(-(2**40), 2**60)
shapes = st.lists(st.integers(0, 99), max_size=4).map(tuple)
args = st.builds(Arg, names, counts)
ports = st.builds(Port, names, names, shapes, st.sampled_from(sorted(DTYPES)))
scalars = st.integers(-9, 9) | st.booleans() | st.none() | names | st.floats(allow_nan=False)
attrs = st.dictionaries(names, scalars | st.lists(scalars, max_size=3).map(tuple), max_size=3)
facts = st.builds(
    KernelFacts,
    st.lists(names, max_size=2).map(tuple),
    st.lists(names, max_size=2).map(tuple),
    st.sampled_from(sorted(DTYPES)),
    counts,
    counts,
    counts,
    counts,
    st.floats(allow_nan=False),
    st.dictionaries(names, names | st.integers(), max_size=3).map(lambda d: tuple(d.items())),
)


@st.composite
def launches(draw: st.DrawFn) -> Launch:
    given_args = tuple(draw(st.lists(args, max_size=4)))
    places = st.integers(-len(given_args), len(given_args) - 1)
    writes = draw(st.lists(places, max_size=2)) if given_args else []
    return Launch(draw(names), given_args, draw(facts), tuple(writes))


hosts = st.builds(
    HostCall,
    names,
    st.lists(ports, max_size=2).map(tuple),
    st.lists(ports, max_size=2).map(tuple),
    attrs.map(lambda d: tuple(d.items())),
    st.lists(names, max_size=2).map(tuple),
)
buffers = st.builds(Buffer, names, counts, st.sampled_from(SPACES), counts, counts)
programs = st.builds(
    Program,
    names,
    st.lists(ports, max_size=2).map(tuple),
    st.lists(ports, max_size=2).map(tuple),
    st.lists(buffers, max_size=4).map(tuple),
    st.lists(launches() | hosts | st.builds(Copy, args, args, counts), max_size=4).map(tuple),
    counts,
    counts,
    counts,
)


@given(programs)
def test_round_trip(program: Program) -> None:
    text = to_text(program)
    again = parse(text)
    assert again == program
    assert to_text(again) == text


def test_writes_are_stored_as_positions() -> None:
    pair = (Arg("a"), Arg("b"))
    assert Launch("k", pair) == Launch("k", pair, writes=(1,))
    assert Launch("k", pair, writes=(-1, 0)).writes == (0, 1)
    assert Launch("k", ()).writes == (-1,)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (TEXT, "  \n", "line 1: the text is empty"),
        ("program small", "graph small", "line 1: expected 'program', found 'graph'"),
        ("program small", "program small 2", "line 1: unexpected '2'"),
        ("bound 24", "bound x", "line 2: expected an integer, found 'x' in: arena 64"),
        ("at 64 align", "at 99999999999999999999 align", "line 4: expected 'align'"),
        ("w constant", "w rom", "line 4: 'rom' is none of the spaces input, output"),
        ("y[2, 3] f32", "y[2, 3] f33", "line 8: 'f33' is no element type"),
        ("y[2, 3] f32", "y[2, 3", "line 8: expected ']', found the end of the line"),
        ("launch mul", "start mul", "line 9: no line starts with 'start'"),
        ('"ops": []', '"opps": []', "line 10: facts are origin, ops, dtype"),
        ('"flops": 6', '"flops": "6"', "line 10: flops has the wrong type"),
        ('"schedule": {}', '"schedule": []', "line 10: schedule has the wrong type"),
        ('facts {"origin"', 'attrs {"origin"', "line 10: attrs belong behind a host"),
        ('origin ["Sort_7"]', "facts {}", "line 13: facts belong behind a launch"),
        ('attrs {"axis": -1,', "attrs {axis: -1,", "line 12: expected JSON (Expecting"),
        ("attrs {", "attrs [{", "line 12: expected JSON"),
        ('origin ["Sort_7"]', 'origin "Sort_7"', "line 13: expected a JSON list, found str"),
    ],
)
def test_refusals_name_the_line(old: str, new: str, message: str) -> None:
    assert old in TEXT
    with pytest.raises(InvalidIR) as caught:
        parse(TEXT.replace(old, new, 1))
    assert message in str(caught.value)


def test_launches_that_threads_share() -> None:
    split = Split(12, 2.5e-4, 128)
    program = replace(
        SMALL, steps=(replace(SMALL.steps[0], split=split), *SMALL.steps[1:]), threads=3
    )
    text = to_text(program)
    assert "  threads 3\n" in text
    assert 'launch mul(x, w+4, out "out") split 12 0.00025 128' in text
    assert parse(text) == program
    with pytest.raises(InvalidIR, match="expected a JSON float, found int"):
        parse(text.replace("0.00025 128", "128"))


def _open_program() -> Program:
    """A program for any N of at least 4 rows, with every number that a run may have to compute."""
    symbols = Symbols()
    rows = symbols.new("N", 12)
    assert rows >= 4
    split = Split(-(-rows // 4), 2.5e-4)
    launch = Launch("scale", (Arg("x", 8 * rows), Arg("y")), numbers=("N",), split=split)
    return Program(
        "open",
        (Port("x", "x", (rows, 2), "f32"),),
        (Port("y", "y", (rows,), "f32"),),
        (Buffer("x", 8 * rows, "input"), Buffer("y", 4 * rows, "output")),
        (launch, Copy(Arg("x", 4 * rows), Arg("y"), 4 * rows)),
        numbers=(("N", rows),),
    )


OPEN_TEXT = """\
program open
  arena 0 bound 0 no_reuse 0
  symbol N 12
  guard {N-4} >= 0
  number N {N}
  buffer x input {8*N} at 0 align 64
  buffer y output {4*N} at 0 align 64
  input x = x[{N}, 2] f32
  output y = y[{N}] f32
  launch scale(x+{8*N}, out y) numbers ["N"] split {(N+3)//4} 0.00025 0
  copy x+{4*N} -> y {4*N}
"""


def test_numbers_of_a_run() -> None:
    assert to_text(_open_program()) == OPEN_TEXT
    found = parse(OPEN_TEXT)
    assert to_text(found) == OPEN_TEXT
    assert found.symbols is not None
    assert found.symbols.hold({"N": 4}) and not found.symbols.hold({"N": 3})
    assert bound(found, {"N": 8}) == bound(_open_program(), {"N": 8})


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("{8*N}", "{8*M}", "no line before gives the symbol M"),
        ("{8*N}", "{8*}", "needs a number or name, not 'its end'"),
        ("{8*N}", "{8*N", "expected an expression in braces"),
        ("symbol N 12", "symbol N x", "expected an integer"),
        ("{N-4} >=", "{4} >=", "a guard is about symbols"),
        ("{N-4} >= 0", "{N-4} > 0", "expected '>='"),
    ],
)
def test_refusals_of_numbers_of_a_run(old: str, new: str, message: str) -> None:
    assert old in OPEN_TEXT
    with pytest.raises(InvalidIR) as caught:
        parse(OPEN_TEXT.replace(old, new, 1))
    assert message in str(caught.value)
