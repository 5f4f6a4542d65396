"""Scans as native loops: values, buffers that move, profiles, failures, saved programs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from rooftile.core.errors import InvalidInput
from rooftile.ir.graph import Graph, Value
from rooftile.ir.program import Copy, Launch, Loop, Program, lifetimes
from rooftile.ops.builder import Builder
from rooftile.ops.evaluate import evaluate
from rooftile.ops.scan_builder import ScanBuilder
from rooftile.pipeline import Compilation, compile_graph
from rooftile.runtime import load, save

RNG = np.random.default_rng(1)


def right(graph: Graph) -> Compilation:
    """The compiled graph, whose values were held against float64."""
    given = {
        value.name: RNG.standard_normal(value.dims).astype(np.float32) for value in graph.inputs
    }
    wanted = evaluate(graph, given)
    compiled = compile_graph(graph)
    found = compiled.executable.run(list(given.values()))
    for name, array in zip(graph.outputs, found, strict=True):
        np.testing.assert_allclose(array, wanted[name], rtol=1e-5, atol=1e-5, err_msg=name)
    times = compiled.executable.profile(list(given.values()), 2)
    assert len(times) == len(compiled.program.steps)
    return compiled


def loop_of(program: Program) -> Loop:
    [loop] = [step for step in program.steps if isinstance(step, Loop)]
    return loop


def recurrence(trip: int = 6) -> Graph:
    """h' = tanh(x[t] + h W), all h, and a counter."""
    outer = Builder()
    x, start = outer.input("x", (trip, 2, 8), "f32"), outer.input("h", (2, 8), "f32")
    weight = outer.constant(RNG.standard_normal((8, 8)).astype(np.float32) / 4)
    scan = ScanBuilder(outer, trip)
    body = scan.body
    state, count = scan.state(start), scan.state(outer.constant(np.zeros((), np.int64)))
    part = scan.slice(x, backward=True)
    product = body.emit(
        "dot",
        state,
        scan.capture(weight),
        lhs_contract=(1,),
        rhs_contract=(0,),
        lhs_batch=(),
        rhs_batch=(),
    )
    after = body.emit("tanh", body.emit("add", part, product))
    more = body.emit("add", count, body.constant(np.ones((), np.int64)))
    found = scan.finish([after, more], [after, count, part], [True, False, False])
    names = ("last", "trips", "all", "counts", "same")
    return outer.finish("recurrence", dict(zip(names, found, strict=True)))


def test_a_recurrence_is_one_loop() -> None:
    compiled = right(recurrence())
    loop = loop_of(compiled.program)
    assert loop.trip == 6
    assert loop.facts.flops == 6 * sum(
        step.facts.flops for step in loop.body if isinstance(step, Launch)
    )
    kernel = loop.body[0]
    assert isinstance(kernel, Launch)
    steps = {arg.buffer: (arg.offset, arg.step) for arg in kernel.args}
    assert steps["x"] == (5 * 64, -64) and steps["all"] == (5 * 64, -64)


def test_its_weights_are_packed_once() -> None:
    program = compile_graph(recurrence()).program
    packed = [buffer for buffer in program.buffers if "@" in buffer.name]
    assert [buffer.space for buffer in packed] == ["constant"]


def attending(trip: int = 3) -> Graph:
    """h' = softmax(h) W, then once more: kernels that need scratch memory, in a loop."""
    outer = Builder()
    weight = RNG.standard_normal((64, 64)).astype(np.float32) / 8
    scan = ScanBuilder(outer, trip)
    state = start = scan.state(outer.input("h", (16, 64), "f32"))
    captured = scan.capture(outer.constant(weight))
    body = scan.body
    for _ in range(2):
        top = body.emit("reduce", state, op="max", dims=(1,))
        raised = body.emit("exp", body.emit("sub", state, top))
        total = body.emit("reduce", raised, op="sum", dims=(1,))
        rows = body.emit("div", raised, total)
        contract = {"lhs_contract": (1,), "rhs_contract": (0,), "lhs_batch": (), "rhs_batch": ()}
        state = body.emit("dot", rows, captured, **contract)
    assert state is not start
    return outer.finish("attending", {"last": scan.finish([state], [])[0]})


def test_scratch_memory_is_not_carried_from_one_iteration_to_the_next() -> None:
    program = right(attending()).program
    assert len(loop_of(program).body) > 1
    spans = lifetimes(program.steps)
    scratch = [buffer.name for buffer in program.buffers if buffer.space == "scratch"]
    assert scratch
    assert all(spans[name][0] == spans[name][1] for name in scratch)


def test_no_iterations_copy_the_start() -> None:
    program = right(recurrence(0)).program
    assert not any(isinstance(step, Loop) for step in program.steps)


def swapping() -> Graph:
    """Two states that change places, and one that stays."""
    outer = Builder()
    scan = ScanBuilder(outer, 5)
    a, b, c = (scan.state(outer.input(name, (3,), "f32")) for name in "abc")
    found = scan.finish([b, a, c], [a])
    return outer.finish("swap", dict(zip(("p", "q", "r", "s"), found, strict=True)))


def test_states_that_change_places_are_copied_before_they_are_overwritten() -> None:
    body = loop_of(right(swapping()).program).body
    assert all(isinstance(step, Copy) for step in body) and len(body) >= 4


def nested() -> Graph:
    """Running sums of running sums, each scan's stack read by the scan around it."""
    outer = Builder()
    x = outer.input("x", (4, 6, 3), "f32")
    scan = ScanBuilder(outer, 4)
    state = scan.state(outer.input("start", (3,), "f32"))
    inner = ScanBuilder(scan.body, 6)
    total = inner.state(state)
    after = inner.body.emit("add", total, inner.slice(scan.slice(x)))
    last, sums = inner.finish([after], [after])
    doubled = scan.body.emit("add", sums, sums)
    found = scan.finish([last], [sums, doubled])
    return outer.finish("nested", dict(zip(("last", "sums", "twice"), found, strict=True)))


def test_loops_nest() -> None:
    loop = loop_of(right(nested()).program)
    assert any(isinstance(step, Loop) for step in loop.body)


def around(use: Callable[[Builder, Value], Value]) -> Graph:
    """A scan whose operand and whose stack are used outside as well."""
    outer = Builder()
    x = outer.input("x", (5, 4), "f32")
    before = outer.emit("exp", x)
    scan = ScanBuilder(outer, 5)
    state = scan.state(outer.constant(np.zeros(4, np.float32)))
    after = scan.body.emit("add", state, scan.slice(before))
    _, stack = scan.finish([after], [after])
    return outer.finish("around", {"y": use(outer, stack), "z": outer.emit("neg", before)})


USES: dict[str, Callable[[Builder, Value], Value]] = {
    "transposed": lambda b, v: b.emit("exp", b.emit("transpose", v, perm=(1, 0))),
    "in a concat": lambda b, v: b.emit("concat", v, b.emit("neg", v), axis=1),
    "sliced": lambda b, v: b.emit("slice", v, starts=(1, 0), limits=(4, 4), strides=(2, 1)),
    "reduced": lambda b, v: b.emit("reduce", v, op="sum", dims=(0,)),
}


@pytest.mark.parametrize("use", USES)
def test_what_stands_around_a_loop(use: str) -> None:
    right(around(USES[use]))


def picking() -> Graph:
    """Rows of a table by the indices of each iteration."""
    outer = Builder()
    table, index = outer.input("table", (4, 2), "f32"), outer.input("index", (3, 1), "i64")
    scan = ScanBuilder(outer, 3)
    row = scan.body.emit("gather", scan.capture(table), scan.slice(index), axis=0)
    outer.origin = ("Pick_0",)
    [stack] = scan.finish([], [row])
    return outer.finish("picking", {"y": stack})


def test_a_failure_in_a_loop_names_its_node() -> None:
    compiled = compile_graph(picking())
    table, index = RNG.standard_normal((4, 2)).astype(np.float32), np.array([[0], [3], [-1]])
    [found] = compiled.executable.run([table, index])
    np.testing.assert_array_equal(found, table[index])
    with pytest.raises(InvalidInput, match=r"'Pick_0': an index is out of range"):
        compiled.executable.run([table, np.array([[0], [3], [4]])])


def test_a_loop_survives_its_file(tmp_path: Path) -> None:
    compiled = compile_graph(recurrence())
    save(compiled.executable, tmp_path / "m")
    loaded = load(tmp_path / "m").made
    given = [RNG.standard_normal(port.shape).astype(np.float32) for port in loaded.program.inputs]
    for mine, theirs in zip(loaded.run(given), compiled.executable.run(given), strict=True):
        np.testing.assert_array_equal(mine, theirs)
