"""Checked programs: what steps give to kernels and copy lies inside their buffers, or is named."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import sample_programs as samples
import small_models
from sketch import Sketch, normal

from rooftile import InferenceSession
from rooftile.codegen.llvm.bounds import Room
from rooftile.codegen.llvm.entry import entry_text
from rooftile.codegen.llvm.state import State
from rooftile.core.errors import OutOfBounds
from rooftile.ir.program import Arg, Buffer, Copy, Launch, Loop, Program
from rooftile.native import assemble, default_cache, host_target
from rooftile.native.bounds import SWITCH
from rooftile.pipeline import compile_graph
from rooftile.runtime import Executable, executable, load, save

REACH = {"add": (16, 16, 16), "gather": (16, 8, 4)}
HEAD = "an access outside its buffer was stopped: "


@pytest.fixture(autouse=True)
def checked(monkeypatch: pytest.MonkeyPatch) -> None:
    """The build that these tests are about."""
    monkeypatch.setenv(SWITCH, "1")


def linked(program: Program, reach: dict[str, tuple[int, ...]]) -> Executable:
    """The sample with a checked entry."""
    text = entry_text(program, samples.SYMBOLS, reach=reach)
    objects = [assemble(source, host_target()) for source in (samples.KERNELS, text)]
    return Executable(program, objects, samples.SYMBOLS, samples.WEIGHTS.tobytes())


def refused(program: Program, reach: dict[str, tuple[int, ...]]) -> str:
    with pytest.raises(OutOfBounds) as error:
        linked(program, reach).run(samples.feeds())
    return str(error.value)


def test_what_fits_runs() -> None:
    outputs = linked(samples.PROGRAM, REACH).run(samples.feeds())
    for found, wanted in zip(outputs, samples.executable().run(samples.feeds()), strict=True):
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize(
    ("kernel", "reach", "message"),
    [
        ("add", (17, 16, 16), "kernel 'add' is given buffer 'x': 17 bytes at byte 0 of 16"),
        ("add", (16, 17, 16), "kernel 'add' is given buffer 'w': 17 bytes at byte 8 of 24"),
        ("add", (16, 16, 65), "kernel 'add' is given buffer 't': 65 bytes at byte 0 of 16"),
        ("gather", (16, 8, 5), "kernel 'gather' is given buffer 'p': 5 bytes at byte 0 of 4"),
    ],
)
def test_a_kernel_that_may_use_more_than_it_is_given(
    kernel: str, reach: tuple[int, ...], message: str
) -> None:
    said = refused(samples.PROGRAM, REACH | {kernel: reach})
    assert said.startswith("'Add_0': " if kernel == "add" else "'Gather_1', 'Squeeze_2': ")
    assert HEAD + message in said and "bug of rooftile" in said


@pytest.mark.parametrize(
    ("copy", "message"),
    [
        (Copy(Arg("t", 4), Arg("s"), 16), "copy reads buffer 't': 16 bytes at byte 4 of 16"),
        (Copy(Arg("t"), Arg("s", 4), 16), "copy writes buffer 's': 16 bytes at byte 4 of 16"),
        (Copy(Arg("x", -4), Arg("s"), 16), "copy reads buffer 'x': 16 bytes at byte -4 of 16"),
    ],
)
def test_copies(copy: Copy, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The verifier would refuse them first."""
    monkeypatch.setattr(executable, "verify", lambda program: program)
    first, _, last = samples.PROGRAM.steps
    assert f"sample: {HEAD}{message}" in refused(
        replace(samples.PROGRAM, steps=(first, copy, last)), REACH
    )


def test_outputs_that_are_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executable, "verify", lambda program: program)
    small = tuple(replace(b, nbytes=20) if b.name == "w" else b for b in samples.PROGRAM.buffers)
    message = refused(replace(samples.PROGRAM, buffers=small), REACH | {"add": (16, 12, 16)})
    assert "copy reads buffer 'w': 24 bytes at byte 0 of 20" in message


@pytest.mark.parametrize(("arg", "offset"), [(Arg("room", 0, 16), 64), (Arg("room", 48, -16), -16)])
@pytest.mark.parametrize("deep", [False, True])
def test_an_argument_that_moves_too_far(
    arg: Arg, offset: int, deep: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Buffers have room for four iterations; of an inner loop too."""
    monkeypatch.setattr(executable, "verify", lambda program: program)
    launch = samples.PROGRAM.steps[0]
    assert isinstance(launch, Launch)
    launch = replace(launch, args=(arg, *launch.args[1:]))

    def looped(trip: int) -> Program:
        loop = Loop("loop", trip, (launch,), launch.facts)
        if deep:
            loop = Loop("outer", 2, (Copy(Arg("t"), Arg("s"), 16), loop), launch.facts)
        buffers = (*samples.PROGRAM.buffers, Buffer("room", 64, "arena"))
        return replace(samples.PROGRAM, buffers=buffers, steps=(*samples.PROGRAM.steps, loop))

    linked(looped(4), REACH).run(samples.feeds())
    message = f"kernel 'add' is given buffer 'room': 16 bytes at byte {offset} of 64"
    assert f"'Add_0': {HEAD}{message}" in refused(looped(5), REACH)


def test_an_entry_without_reach_checks_nothing() -> None:
    text = entry_text(samples.PROGRAM, samples.SYMBOLS)
    assert "bounds" not in text
    assert "bounds" in entry_text(samples.PROGRAM, samples.SYMBOLS, reach=REACH)


def test_a_kernel_that_reports_nothing() -> None:
    sources = [
        samples.KERNELS.replace("ret i32 1", "ret i32 2"),
        entry_text(samples.PROGRAM, samples.SYMBOLS),
    ]
    objects = [assemble(source, host_target()) for source in sources]
    made = Executable(samples.PROGRAM, objects, samples.SYMBOLS, samples.WEIGHTS.tobytes())
    with pytest.raises(OutOfBounds, match=r"'Gather_1', 'Squeeze_2': .*nothing is known of it"):
        made.run(samples.feeds(4))


# -- compiled models


def shrink(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Let generated code believe that a buffer is a cell smaller than it is."""
    whole = State.room

    def room(self: State, buffer: str) -> Room:
        found = whole(self, buffer)
        if buffer != name:
            return found
        *outer, last = found.shape
        assert isinstance(last, int)
        return replace(found, shape=(*outer, last - 1))

    monkeypatch.setattr(State, "room", room)


def test_a_session_says_what_was_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    model = small_models.mlp().SerializeToString()
    feeds = {"x": normal(24, 48).astype(np.float32)}
    [wanted] = InferenceSession(model).run(None, feeds)
    shrink(monkeypatch, "y0")
    with pytest.raises(OutOfBounds, match=HEAD + r"kernel '\w+' writes buffer 'y0': \d+ bytes at"):
        InferenceSession(model).run(None, feeds)
    monkeypatch.setenv(SWITCH, "0")
    np.testing.assert_allclose(InferenceSession(model).run(None, feeds)[0], wanted, 1e-5, 1e-5)


def test_a_saved_program_stays_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    s = Sketch()
    graph = s.graph(s("exp", s.input(3, 5)))
    shrink(monkeypatch, "x0")
    path = tmp_path / "model"
    save(compile_graph(graph).executable, path)
    monkeypatch.setenv(SWITCH, "0")
    with pytest.raises(OutOfBounds, match=r"'exp0': .* reads buffer 'x0': \d+ bytes at"):
        load(path).made.run([normal(3, 5)])


def test_checked_objects_have_keys_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cache never gives one build the code of the other."""
    s = Sketch()
    graph = s.graph(s("exp", s.input(3, 5)))
    monkeypatch.setenv("ROOFTILE_CACHE", str(tmp_path))
    checked = compile_graph(graph)
    entries = default_cache().stats().entries
    compile_graph(graph)
    assert default_cache().stats().entries == entries
    monkeypatch.setenv(SWITCH, "0")
    plain = compile_graph(graph)
    assert default_cache().stats().entries == entries + 2  # the kernel and the entry
    assert list(plain.llvm) == list(checked.llvm) and plain.llvm != checked.llvm
