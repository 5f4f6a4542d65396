"""Checked code: an access one element too far is stopped and named, whatever its form."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import kernels
import numpy as np
import pytest
import tile_fuzz
from llvm_host import Array, Guarded, agree, filled

from rooftile.codegen.llvm import emit
from rooftile.codegen.llvm import kernel as kernel_module
from rooftile.codegen.llvm.access import address, load_where, store
from rooftile.codegen.llvm.bounds import Room
from rooftile.codegen.llvm.state import Local, Place, Point, State
from rooftile.codegen.llvm.values import Val, constant
from rooftile.ir.tile import Kernel
from rooftile.ir.tile.layout import pack
from rooftile.ir.tile.text import parse
from rooftile.native import Library, assemble, host_target, link
from rooftile.native.bounds import OUTSIDE, SWITCH, Violation, take_violation
from rooftile.native.target import Target


@pytest.fixture(autouse=True)
def checked(monkeypatch: pytest.MonkeyPatch) -> None:
    """The build that these tests are about."""
    monkeypatch.setenv(SWITCH, "1")


@dataclass(frozen=True)
class Form:
    """A form of access: the body of a kernel in which `AT` is an index, one too large or right."""

    body: str
    said: str
    extent: int
    wrong: str = "n+1"
    right: str = "n"


def one(read: str, dtype: str = "f32", size: int = 16, other: int = 16) -> str:
    """A kernel from X to Y along n."""
    return f"""
  memory X: {dtype}[{size}]
  memory Y: {dtype}[{other}]
  whole n<16
  {read}"""


ROWS = """
  memory X: f32[4,5]
  memory I: i64[3]
  memory Y: f32[3,5]
  whole m<3, n<5
  """
INTO_ROWS = """
  memory X: f32[3,5]
  memory I: i64[3]
  memory Y: f32[4,5]
  whole m<3, n<5
  """
SQUARE = """
  memory X: f32[32,32]
  memory Y: f32[32,32]
  whole m<32, n<32
  """
SCRATCH = """
  memory X: f32[4]
  memory Y: f32[4]
  scratch Z: f32[4]
  whole n<4
  """
PANELS = """
  memory X: f32[4,19] layout 1/8 0 1%8
  memory Y: f32[4,16]
  whole m<4, n<16
  """
SYMBOLIC = """
  memory X: f32[S,T,3]
  memory Y: f32[S,T,3]
  whole c<3
  grid m<S tile 4, n<T tile 5
  """
FORMS = {
    "vector read": Form(one("Y[n] := neg(X[AT])"), "reads buffer 'X'", 64),
    "vector written": Form(one("Y[AT] := neg(X[n])"), "writes buffer 'Y'", 64),
    "read below": Form(one("Y[n] := X[AT]"), "reads buffer 'X'", 64, "n-1"),
    "written below": Form(one("Y[AT] := X[n]"), "writes buffer 'Y'", 64, "n-1"),
    "strided read": Form(one("Y[n] := X[AT]", size=32), "reads buffer 'X'", 128, "2*n+2", "2*n+1"),
    "strided write": Form(
        one("Y[AT] := X[n]", other=32), "writes buffer 'Y'", 128, "2*n+2", "2*n+1"
    ),
    "backwards": Form(one("Y[n] := X[AT]"), "reads buffer 'X'", 64, "-1*n+16", "-1*n+15"),
    "i64": Form(one("Y[n] := X[AT]", "i64"), "reads buffer 'X'", 128),
    "bf16 written": Form(one("Y[AT] := X[n]", "bf16"), "writes buffer 'Y'", 32),
    "bool written": Form(one("Y[AT] := not(X[n])", "bool"), "writes buffer 'Y'", 16),
    "masked read": Form(ROWS + "Y[m, n] := exp(X[m+1, AT])", "reads buffer 'X'", 80),
    "masked write": Form(INTO_ROWS + "Y[m+1, AT] := exp(X[m, n])", "writes buffer 'Y'", 80),
    "scalar read": Form(ROWS + "Y[m, n] := X[AT, 4]", "reads buffer 'X'", 80, "4", "3"),
    "scalar write": Form(INTO_ROWS + "Y[AT, 4] := X[0, 0]", "writes buffer 'Y'", 80, "4", "3"),
    "gathered row": Form(ROWS + "Y[m, n] := X[@I[m], AT]", "reads buffer 'X'", 80),
    "gathered by lane": Form(ROWS + "Y[m, n] := X[AT, @I[m]]", "reads buffer 'X'", 80, "4", "3"),
    "index": Form(ROWS + "Y[m, n] := X[@I[AT], n]", "reads buffer 'I'", 24, "m+1", "m"),
    "scattered": Form(INTO_ROWS + "Y[@I[m], AT] := X[m, n]", "writes buffer 'Y'", 80),
    "scattered sums": Form(
        INTO_ROWS + "Y[@I[m], AT] := X[m, n] combine add", "reads buffer 'Y'", 80
    ),
    "reduced": Form(ROWS + "Y[m, 0] := sum(X[m+1, AT] over n)", "reads buffer 'X'", 80),
    "reduced beside": Form(
        ROWS + "Y[0, n] := sum(X[AT, n] over m)", "reads buffer 'X'", 80, "m+2", "m+1"
    ),
    "dot": Form(
        SQUARE + "Y[m, 0] := dot(X[m, n], X[AT, n], over n)", "reads buffer 'X'", 4096, "m+1", "m"
    ),
    "transposed": Form(SQUARE + "Y[n, m] := X[AT, n]", "reads buffer 'X'", 4096, "m+1", "m"),
    "transposed into": Form(SQUARE + "Y[AT, m] := X[m, n]", "writes buffer 'Y'", 4096),
    "scratch written": Form(SCRATCH + "Z[AT] := X[n]\n  Y[n] := X[n]", "writes buffer 'Z'", 16),
    "scratch read": Form(SCRATCH + "Z[n] := X[n]\n  Y[n] := Z[AT]", "reads buffer 'Z'", 16),
    "packed rows": Form(PANELS + "Y[m, n] := X[AT, n+3]", "reads buffer 'X'", 384, "m+1", "m"),
    "packed panels": Form(PANELS + "Y[m, n] := X[m, AT]", "reads buffer 'X'", 384, "n+16", "n+3"),
    "beside padding": Form(
        ROWS + "Y[m, n] := add(X[m+2, n] pad 0.0, X[AT, n])", "reads buffer 'X'", 80, "m+2", "m+1"
    ),
    "symbolic rows": Form(
        SYMBOLIC + "Y[m, n, c] := X[AT, n, c]", "reads buffer 'X'", 756, "m+1", "m"
    ),
    "symbolic write": Form(
        SYMBOLIC + "Y[m, n, AT] := X[m, n, c]", "writes buffer 'Y'", 756, "c+1", "c"
    ),
}


@dataclass(frozen=True)
class Run:
    """What a kernel returned and reported."""

    code: int
    violation: Violation | None


def call(
    text: str, symbol: str, memories: Sequence[Guarded], sizes: Sequence[int], target: Target
) -> Run:
    """Call a function on memory between guard pages: an access that is made nonetheless ends the
    process, or changes a canary."""
    library = Library(link([assemble(text, target, 0)]))
    function = ctypes.CFUNCTYPE(ctypes.c_int32)(library.address(symbol))
    *pointers, scratch = [ctypes.c_void_p(memory.address) for memory in memories]
    code = int(function(*pointers, *map(ctypes.c_int64, sizes), scratch))
    assert all(memory.intact() for memory in memories)
    return Run(code, take_violation(library, symbol))


def run(
    kernel: Kernel,
    arrays: Mapping[str, Array],
    symbols: Mapping[str, int],
    edge: str,
    target: Target,
) -> Run:
    """Run the checked code of a kernel."""
    text = emit(kernel, target, checked=True)
    held = []
    for buf in kernel.bufs:
        if buf.space == "memory":
            packed = pack(buf, arrays[buf.name], symbols)
            held.append(Guarded(packed.nbytes, edge))
            held[-1].bytes[:] = packed.reshape(-1).view(np.uint8)
    held.append(Guarded(text.scratch_bytes, edge))
    return call(text.text, text.symbol, held, [symbols[name] for name in text.symbols], target)


def check(found: Run, what: str, extent: int) -> None:
    """A run was stopped at an access that does lie outside."""
    assert found.code == OUTSIDE
    assert found.violation is not None
    assert (found.violation.what, found.violation.extent) == (what, extent)
    first, last = found.violation.offset, found.violation.offset + found.violation.nbytes
    assert first < last and (first < 0 or last > extent)


@pytest.mark.parametrize("edge", ["start", "end"])
@pytest.mark.parametrize("name", FORMS)
def test_an_element_too_far_is_stopped(name: str, edge: str, isa: Target) -> None:
    form, symbols = FORMS[name], {"S": 7, "T": 9}
    kernel = parse(f"kernel forms{form.body.replace('AT', form.wrong)}\n")
    arrays = filled(kernel, 0, symbols)
    if "I" in arrays:
        arrays["I"] = np.array([0, 2, 3])
    check(run(kernel, arrays, symbols, edge, isa), f"kernel 'forms' {form.said}", form.extent)


@pytest.mark.parametrize("name", FORMS)
def test_the_right_element_is_not(name: str, isa: Target) -> None:
    form, symbols = FORMS[name], {"S": 7, "T": 9}
    kernel = parse(f"kernel forms{form.body.replace('AT', form.right)}\n")
    arrays = filled(kernel, 0, symbols)
    if "I" in arrays:
        arrays["I"] = np.array([0, 2, 3])
    agree(kernel, arrays, symbols, isa)


# -- masks that are known at run time


def masked(offset: int, lanes: Sequence[bool], target: Target) -> tuple[Run, list[float]]:
    """Eight lanes of five numbers, 1 to 5, from a byte offset on; -1 where a lane is off."""
    kernel = parse("kernel masked\n  memory X: f32[5]\n  memory M: bool[8]\n  memory Y: f32[8]\n")
    state = State(kernel, target, checked=True)
    where = ", ".join(f"i1 {str(lane).lower()}" for lane in lanes)
    at = address(state, state.room("X"), ((), offset))
    value = load_where(state, at, "f32", Val(f"<{where}>", "bool", 8), constant(-1, "f32", 8))
    store(state, address(state, state.room("Y"), ((), 0)), value, 8)
    assert state.guard is not None
    text = "\n".join(
        [
            "define i32 @masked(ptr %X, ptr %Y) {",
            *state.writer.scopes[0].lines,
            "  ret i32 0",
            "}",
            *sorted(state.writer.declarations),
            *state.guard.module(),
        ]
    )
    numbers, results = Guarded(20), Guarded(32)
    numbers.bytes.view(np.float32)[:] = np.arange(1, 6)
    found = call(text, "masked", [numbers, results], [], target)
    return found, results.bytes.view(np.float32).tolist()


def test_lanes_that_are_off_are_no_accesses(isa: Target) -> None:
    lanes = [True] * 5 + [False] * 3
    found, values = masked(0, lanes, isa)
    assert found == Run(0, None) and values == [1, 2, 3, 4, 5, -1, -1, -1]
    found, values = masked(-8, [False, False, *[True] * 5, False], isa)
    assert found == Run(0, None) and values == [-1, -1, 1, 2, 3, 4, 5, -1]
    found, values = masked(4000, [False] * 8, isa)
    assert found == Run(0, None) and values == [-1] * 8


@pytest.mark.parametrize(
    ("offset", "lanes", "first"),
    [(0, [5], 20), (0, [0, 4, 6, 7], 24), (-8, [1, 2], -4), (4, range(5), 20), (4000, [7], 4028)],
)
def test_the_first_lane_outside_is_named(
    offset: int, lanes: Sequence[int], first: int, isa: Target
) -> None:
    found, _ = masked(offset, [lane in lanes for lane in range(8)], isa)
    wanted = Violation("kernel 'masked' reads buffer 'X'", first, 4, 20)
    assert found == Run(OUTSIDE, wanted)
    assert str(wanted) == f"kernel 'masked' reads buffer 'X': 4 bytes at byte {first} of 20"


@pytest.mark.parametrize("index", ["2*n-3", "n+4", "-1*n+9", "n-20", "n+40"])
@pytest.mark.parametrize("pad", ["0.0", "1.5"])
@pytest.mark.parametrize("around", ["", "halo 2:2"])
def test_padding_is_no_access(index: str, pad: str, around: str, isa: Target) -> None:
    body = f"  memory X: f32[9] {around}\n  memory Y: f32[17]\n  whole n<17\n"
    kernel = parse(f"kernel padded\n{body}  Y[n] := X[{index}] pad {pad}\n")
    agree(kernel, filled(kernel), target=isa)


@pytest.mark.parametrize("rows", [1, 4, 9])
def test_symbolic_padding_is_no_access(rows: int) -> None:
    kernel = parse("""
kernel symbolic
  memory X: f32[S,7]
  memory Y: f32[S,7]
  whole n<7
  grid m<S tile 4
  Y[m, n] := X[m-2, n+1] pad 1.0
""")
    agree(kernel, filled(kernel, 0, {"S": rows}), {"S": rows})


# -- tiles kept in scratch memory


def stopped(kernel: Kernel) -> str:
    """What is said of a kernel whose kept tiles are not where they should be."""
    found = run(kernel, filled(kernel), {}, "end", host_target())
    assert found.code == OUTSIDE and found.violation is not None
    return found.violation.what


@pytest.mark.parametrize("by", [64, 10**6])
def test_a_kept_tile_that_has_too_little_room(by: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def small(name: str, base: str, shape: tuple[int], itemsize: int, start: int) -> Room:
        return Room(name, base, (shape[0] - by,), itemsize, start)

    kernel = kernels.softmax(4, 32, 4)
    agree(kernel, filled(kernel))
    monkeypatch.setattr(kernel_module, "Room", small)
    assert stopped(kernel).startswith("kernel 'softmax' writes buffer '")


@pytest.mark.parametrize("by", [-4, 64, -64, 4096])
def test_a_kept_tile_that_is_looked_for_elsewhere(by: int, monkeypatch: pytest.MonkeyPatch) -> None:
    right = State.local_place

    def moved(self: State, local: Local, point: Point) -> Place:
        terms, const = right(self, local, point)
        return terms, const + by

    monkeypatch.setattr(State, "local_place", moved)
    assert stopped(kernels.softmax(4, 32, 4)).startswith("kernel 'softmax' writes buffer '")


# -- the text


def test_nothing_changes_without_the_switch(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel, target = kernels.softmax(3, 20, 3), host_target()
    plain, checked = emit(kernel, target, checked=False), emit(kernel, target)
    assert "label %bounds" not in plain.text and "ptrtoint" not in plain.text
    assert "inbounds" in plain.text and "inbounds" not in checked.text
    assert checked.text.count("label %bounds") == 2 * checked.text.count("call void @")
    for value in ("", "0"):
        monkeypatch.setenv(SWITCH, value)
        assert emit(kernel, target) == plain


def test_every_access_has_its_check(isa: Target) -> None:
    """In front of each load and store stands a check, and nothing but it."""
    for seed in range(40):
        text = emit(tile_fuzz.sample(seed).kernel, isa).text
        marks = re.findall(r"(?m)^  (?:(br) i1 %bounds|.*(?:, align |@llvm.masked))", text)
        assert marks and marks == ["br", ""] * (len(marks) // 2), seed


def test_a_report_is_given_once() -> None:
    kernel = parse("kernel once\n  memory X: f32[1]\n  memory Y: f32[]\n  Y[] := X[1]\n")
    library = Library(link([assemble(emit(kernel, host_target()).text, host_target())]))
    function = ctypes.CFUNCTYPE(ctypes.c_int32)(library.address("once"))
    assert take_violation(library, "once") is None
    held = np.zeros(4, np.float32)
    assert function(*[ctypes.c_void_p(held.ctypes.data)] * 3) == OUTSIDE
    assert take_violation(library, "once") == Violation("kernel 'once' reads buffer 'X'", 4, 4, 4)
    assert take_violation(library, "once") is None
    assert take_violation(library, "another") is None
