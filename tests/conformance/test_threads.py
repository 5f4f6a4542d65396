"""Several threads against one: the same bits whoever computes the tiles of a program, and the same
values as from a program that was compiled for one thread."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from eager_threads import LINUX, eager
from onnx import TensorProto
from random_graphs import Maker, by_seed
from sketch import Sketch, normal
from small_models import Writer, feeds_of, models

import rooftile
from rooftile.core.errors import InvalidInput
from rooftile.core.options import CompileOptions
from rooftile.ir.graph import Graph
from rooftile.ir.program import Loop
from rooftile.ops.builder import Builder
from rooftile.ops.scan_builder import ScanBuilder
from rooftile.passes import simplify
from rooftile.pipeline import Compilation, compile_graph, compile_model
from rooftile.runtime import Executable, load, save

pytestmark = LINUX
__all__ = ["eager"]
Arrays = list[np.ndarray[Any, Any]]


def shared(compilation: Compilation) -> int:
    """How many launches threads may share."""
    return sum(launch.split is not None for launch in compilation.program.launches)


def same(found: Arrays, wanted: Arrays) -> None:
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(a, b)


def right(one: Compilation, several: Compilation, given: Arrays, runs: int = 3) -> None:
    """Equal to the last bit with helpers and without; close to what is compiled for one thread,
    whose register tiles may be larger, so that sums are made in another order."""
    made = several.executable
    alone = Executable(made.program, made.objects, made.functions, made.constants)
    alone.pool = None
    wanted = alone.run(given)
    for _ in range(runs):
        same(made.run(given), wanted)
    for a, b in zip(wanted, one.executable.run(given), strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-5)


def inputs_of(graph: Graph, seed: int = 0) -> Arrays:
    rng = np.random.default_rng(seed)
    return [rng.standard_normal(value.dims).astype(np.float32) for value in graph.inputs]


@pytest.mark.parametrize("threads", [2, 3])
@pytest.mark.parametrize("name", models())
def test_small_models(name: str, threads: int, eager: None) -> None:
    model = models()[name]
    feeds = feeds_of(model)
    one, several = (
        compile_model(model, options=CompileOptions(threads=count)) for count in (1, threads)
    )
    assert shared(one) == 0 and one.program.threads == 1 and one.executable.pool is None
    assert shared(several) > 0 and several.program.threads == threads
    given = [feeds[port.name] for port in one.program.inputs]
    right(one, several, given)
    assert len(several.executable.profile(given, 2)) == len(several.program.steps)


@pytest.mark.parametrize("fuse", [True, False])
@pytest.mark.parametrize("start", range(0, 40, 10))
def test_random_graphs(start: int, fuse: bool, eager: None) -> None:
    found = 0
    for seed in range(start, start + 10):
        graph = simplify(Maker(by_seed(seed)).graph(10))
        one, several = (
            compile_graph(graph, CompileOptions(fuse=fuse, threads=count)) for count in (1, 3)
        )
        found += shared(several)
        right(one, several, inputs_of(graph))
    assert found > 10


def scan_graph() -> Graph:
    """h' = tanh(x[t] + h W), and all h."""
    outer = Builder()
    x, start = outer.input("x", (5, 40, 64), "f32"), outer.input("h", (40, 64), "f32")
    weight = outer.constant(normal(64, 64).astype(np.float32) / 8)
    scan = ScanBuilder(outer, 5)
    state, part, weights = scan.state(start), scan.slice(x), scan.capture(weight)
    contract = {"lhs_contract": (1,), "rhs_contract": (0,), "lhs_batch": (), "rhs_batch": ()}
    product = scan.body.emit("dot", state, weights, **contract)
    following = scan.body.emit("tanh", scan.body.emit("add", part, product))
    last, every = scan.finish([following], [following], [False])
    return outer.finish("scan", {"last": last, "all": every})


def test_launches_in_loops(eager: None) -> None:
    graph = scan_graph()
    one, several = (compile_graph(graph, CompileOptions(threads=count)) for count in (1, 3))
    assert any(isinstance(step, Loop) for step in several.program.steps) and shared(several) > 0
    given = inputs_of(graph)
    right(one, several, given)
    assert several.executable.profile(given, 2)


def lookup() -> Any:
    w = Writer("lookup", x=(4, 40))
    model = w.model(w("Gather", w.weight(30, 24), "x"))
    model.graph.input[0].type.tensor_type.elem_type = TensorProto.INT64
    return model


def test_errors_reach_the_caller(eager: None) -> None:
    several = compile_model(lookup(), options=CompileOptions(threads=3))
    assert shared(several) == 1
    x = np.arange(160).reshape(4, 40) % 30
    executable = several.executable
    good = executable.run([x])
    for place in ((0, 0), (1, 7), (3, 39)):
        bad = x.copy()
        bad[place] = 30
        with pytest.raises(InvalidInput, match="index is out of range"):
            executable.run([bad])
        same(executable.run([x]), good)


def test_many_python_threads(eager: None) -> None:
    model = models()["attention"]
    several = compile_model(model, options=CompileOptions(threads=2)).executable
    names = [port.name for port in several.program.inputs]
    cases = [[feeds_of(model, seed)[name] for name in names] for seed in range(4)]
    wanted = [several.run(case) for case in cases]
    failures: list[BaseException] = []

    def work(number: int) -> None:
        try:
            for turn in range(40):
                place = (number + turn) % len(cases)
                same(several.run(cases[place]), wanted[place])
        except BaseException as error:
            failures.append(error)

    workers = [threading.Thread(target=work, args=(number,)) for number in range(5)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(120)
    assert not failures


def test_a_saved_program_runs_on_its_threads(tmp_path: Path, eager: None) -> None:
    model = models()["mobile_block"]
    made = compile_model(model, options=CompileOptions(threads=3)).executable
    save(made, tmp_path / "model.rt")
    read = load(tmp_path / "model.rt").made
    assert read.program == made.program and read.program.threads == 3 and read.pool is not None
    given = [feeds_of(model)[port.name] for port in made.program.inputs]
    same(read.run(given), made.run(given))


def test_scratch_memory_is_there_for_each_thread(eager: None) -> None:
    s = Sketch()
    x = s.input(96, 64)
    graph = s.graph(
        s.dot(s("exp", s.dot(x, s.constant(normal(64, 64) / 64))), s.constant(normal(64, 48)))
    )
    for threads in (2, 4):
        program = compile_graph(graph, CompileOptions(threads=threads)).program
        [scratch] = [buffer for buffer in program.buffers if buffer.space == "scratch"]
        own = [launch.split.scratch for launch in program.launches if launch.split]
        assert scratch.nbytes == threads * max(own) > 0
        assert scratch.end <= program.arena_bytes


@pytest.mark.parametrize("threads", [1, 3])
def test_open_dims(threads: int, eager: None) -> None:
    w = Writer("tokens", x=("n", 64))  # type: ignore[arg-type]
    h = w("Relu", w("MatMul", "x", w.weight(64, 96)))
    model = w.model(w("Softmax", w("MatMul", h, w.weight(96, 40)), axis=-1))
    options = CompileOptions(threads=threads)
    opened = rooftile.compile(model, options, {"x": (50, 64)}, open_dims=True).template
    assert opened is not None and opened.program.threads == threads
    for count in (50, 8, 9, 31, 32, 33, 64, 200, 333):
        x = np.random.default_rng(count).standard_normal((count, 64)).astype(np.float32)
        executable = opened.bind([x.shape])
        assert executable is not None
        splits = [launch.split for launch in executable.program.launches if launch.split]
        assert len(splits) == (0 if threads == 1 else len(executable.program.launches))
        [found] = executable.run([x])
        [whole] = rooftile.compile(model, CompileOptions(), {"x": x.shape}).executable.run([x])
        np.testing.assert_allclose(found, whole, rtol=1e-5, atol=1e-6)
