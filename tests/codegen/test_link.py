"""Linking: the memory plan of a program, its constants, and where its outputs lie."""

from __future__ import annotations

import numpy as np
import pytest
import zoo
from random_graphs import Maker, by_seed
from sketch import Sketch, normal

from rooftile.core.journal import Journal
from rooftile.core.options import CompileOptions
from rooftile.ir.graph import Graph, Value
from rooftile.ir.program import Program, lifetimes, verify
from rooftile.passes import simplify
from rooftile.pipeline import compile_graph, compile_model

MODELS = (
    "blazeface_back_256",
    "magika_v3_3",
    "paraphrase_minilm_l3",
    "ppocr_cls_mobilenetv3",
    "ppocrv4_rec_svtr",
)


def program_of(graph: Graph, fuse: bool = True) -> Program:
    return verify(compile_graph(graph, CompileOptions(fuse=fuse)).program)


@pytest.mark.parametrize("seed", range(8))
def test_no_two_live_buffers_share_memory(seed: int) -> None:
    """`verify` says so; here the plan is as small as any and no larger than without reuse."""
    program = program_of(simplify(Maker(by_seed(seed)).graph(10)), fuse=False)
    arena = [buffer for buffer in program.buffers if buffer.in_arena]
    assert program.lower_bound_bytes <= program.arena_bytes <= program.no_reuse_bytes
    assert max((buffer.end for buffer in arena), default=0) <= program.arena_bytes
    assert all(buffer.offset % 64 == 0 for buffer in arena)


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_the_arena_is_as_small_as_it_can_be(name: str) -> None:
    program = compile_model(str(zoo.path(name)), zoo.shapes(name)).program
    assert program.arena_bytes == program.lower_bound_bytes < program.no_reuse_bytes


def chain(count: int) -> Graph:
    """Dots one behind the other, all of one weight."""
    s = Sketch()
    x, w = s.input(32, 48), s.constant(normal(48, 48))
    for _ in range(count):
        x = s.dot(x, w)
    return s.graph(x)


def test_a_chain_needs_two_buffers() -> None:
    program = program_of(chain(6))
    assert len(program.launches) == 6
    assert program.arena_bytes == program.lower_bound_bytes
    one = 32 * 48 * 4
    assert program.no_reuse_bytes >= 5 * one
    assert program.arena_bytes <= 2 * one + max(
        (buffer.nbytes for buffer in program.buffers if buffer.space == "scratch"), default=0
    )


def test_a_weight_is_packed_once() -> None:
    program = program_of(chain(4))
    weights = [buffer for buffer in program.buffers if buffer.space == "constant"]
    assert len(weights) == 1
    assert len({launch.kernel for launch in program.launches}) == 1, "and so is its kernel"


def test_a_weight_that_is_read_in_two_forms_is_there_twice() -> None:
    s = Sketch()
    w = s.constant(normal(48, 48))
    graph = s.graph(s.dot(s.input(32, 48), w), s("exp", s("add", s.input(48, 48), w)))
    weights = [b.name for b in program_of(graph).buffers if b.space == "constant"]
    assert len(weights) == len(set(weights)) <= 2


def test_constants_are_read_where_they_lie() -> None:
    s = Sketch()
    table = normal(5, 3)
    graph = s.graph(s("add", s.input(5, 3), s.constant(table)))
    compiled = compile_graph(graph, journal=Journal())
    [buffer] = [b for b in compiled.program.buffers if b.space == "constant"]
    block = compiled.executable.constants[buffer.offset : buffer.end]
    np.testing.assert_array_equal(block.view(np.float32).reshape(5, 3), table)


def test_outputs_without_kernels() -> None:
    """An output that only renames an input, a constant or another output is copied at the end."""
    s = Sketch()
    x, c = s.input(2, 3), s.constant(normal(4))
    y = s("exp", x)
    graph = s.graph(y, s("reshape", x, shape=(3, 2)), s("reshape", c, shape=(4,)))
    program = program_of(graph)
    assert len(program.launches) == 1
    spaces = [program.by_name[port.buffer].space for port in program.outputs]
    assert spaces == ["output", "input", "constant"]
    assert program.copied_outputs == (1, 2)


def test_scratch_memory_is_taken_for_one_step_only() -> None:
    """Two softmaxes with a wide value between them: their scratch memory is not there with it."""
    s = Sketch()
    narrow = softmax(s, s.dot(softmax(s, s.input(16, 64)), s.constant(normal(64, 8))))
    wide = s.dot(narrow, s.constant(normal(8, 4096)))
    y = s.dot(softmax(s, s.dot(wide, s.constant(normal(4096, 64)))), s.constant(normal(64, 8)))
    program = program_of(s.graph(y))
    scratch = [buffer for buffer in program.buffers if buffer.space == "scratch"]
    assert len(scratch) > 1
    spans = lifetimes(program.steps)
    assert all(first == last for first, last in (spans[buffer.name] for buffer in scratch))
    assert program.arena_bytes == program.lower_bound_bytes
    assert program.arena_bytes + min(b.nbytes for b in scratch) <= program.no_reuse_bytes


def softmax(s: Sketch, x: Value) -> Value:
    """Of the rows."""
    raised = s("exp", s("sub", x, s("reduce", x, op="max", dims=(1,))))
    return s("div", raised, s("reduce", raised, op="sum", dims=(1,)))


def test_buffers_never_collide_with_values() -> None:
    s = Sketch()
    y = softmax(s, s.builder.input("scratch_0", (16, 64), "f32"))
    program = program_of(s.graph(s.dot(y, s.constant(normal(64, 8)))))
    assert "scratch" in {buffer.space for buffer in program.buffers}
    assert len({buffer.name for buffer in program.buffers}) == len(program.buffers)


def test_a_kernel_that_reads_nothing() -> None:
    s = Sketch()
    x = s.input(2)
    position = s.builder.emit("iota", shape=(3000,), axis=0, dtype="f32")
    graph = s.graph(s("exp", x), s("neg", s("mul", position, 1.0)))
    compiled = compile_graph(graph)
    outputs = compiled.executable.run([np.zeros(2, np.float32)])
    np.testing.assert_array_equal(outputs[1], -np.arange(3000, dtype=np.float32))
