"""Kernels put together as one program: buffers, packed constants, steps, one native entry."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from rooftile import memory
from rooftile.codegen.llvm.entry import entry_text
from rooftile.codegen.llvm.steps import AnyUnit, StepWriter, nbytes_of
from rooftile.ir.graph import Array, Graph
from rooftile.ir.program import Buffer, Port, Program, Step, lifetimes
from rooftile.native.aligned import aligned

ENTRY = "rooftile_entry"


@dataclass(frozen=True)
class Linked:
    """The program, the text of its entry, and the block of constants it points into."""

    program: Program
    entry: str
    constants: Array


def link(
    graph: Graph, units: Sequence[AnyUnit], aliases: Mapping[str, str], checked: bool = False
) -> Linked:
    """`aliases`: for outputs of the graph that lie in another value's memory, its name.
    `checked`: the entry holds what it gives to kernels against their buffers."""
    return _Linker(graph, aliases).run(units, checked)


class _Linker:
    def __init__(self, graph: Graph, aliases: Mapping[str, str]) -> None:
        self.graph = graph
        self.writer = StepWriter(graph, aliases)
        self.constants = self.writer.constants

    def run(self, units: Sequence[AnyUnit], checked: bool) -> Linked:
        """The steps, their buffers at their places, and the entry."""
        scope = self.writer.outermost
        outputs = dict.fromkeys(scope.home(name) for name in self.graph.outputs)
        for name in outputs:
            self.writer.place(name, scope)
        steps = self.writer.steps(units)
        program = self._program(self._place(steps, outputs), steps)
        symbols = {launch.kernel: launch.kernel for launch in program.launches}
        text = entry_text(program, symbols, ENTRY, self.writer.reach if checked else None)
        return Linked(program, text, self._block(program))

    def _place(self, steps: Sequence[Step], outputs: Mapping[str, None]) -> list[Buffer]:
        nbytes = self.writer.nbytes
        for value in self.graph.inputs:
            nbytes[value.name] = nbytes_of(self.graph, value.name)
        scratch = self.writer.scratch
        if self.writer.scratch_bytes:
            nbytes[scratch] = self.writer.scratch_bytes
        given = {value.name for value in self.graph.inputs} | set(self.constants) | set(outputs)
        spans = {n: span for n, span in lifetimes(steps).items() if n not in given}
        sizes = {name: -(-nbytes[name] // 64) * 64 for name in spans}
        used = [(first, last + 1, sizes[name]) for name, (first, last) in spans.items()]
        self.packing = memory.pack(used, seconds=0.2)
        self.no_reuse = sum(sizes.values())
        buffers = [
            Buffer(name, nbytes[name], "scratch" if name == scratch else "arena", offset)
            for name, offset in zip(spans, self.packing.offsets, strict=True)
        ]
        inputs = [value.name for value in self.graph.inputs]
        buffers += [Buffer(name, nbytes[name], "input") for name in inputs]
        own = [name for name in outputs if name not in self.constants and name not in inputs]
        buffers += [Buffer(name, nbytes[name], "output") for name in own]
        offset = 0
        for name, array in self.constants.items():
            buffers.append(Buffer(name, array.nbytes, "constant", offset))
            offset += -(-array.nbytes // 64) * 64
        return buffers

    def _program(self, buffers: Sequence[Buffer], steps: Sequence[Step]) -> Program:
        def port(name: str) -> Port:
            value = self.graph.values[name]
            return Port(name, self.writer.outermost.home(name), value.dims, value.dtype)

        return Program(
            self.graph.name,
            tuple(port(value.name) for value in self.graph.inputs),
            tuple(port(name) for name in self.graph.outputs),
            tuple(buffers),
            tuple(steps),
            arena_bytes=self.packing.peak,
            lower_bound_bytes=self.packing.lower_bound,
            no_reuse_bytes=self.no_reuse,
        )

    def _block(self, program: Program) -> Array:
        """All constants in one aligned block."""
        block = aligned(max(64, program.constant_bytes))
        for buffer in program.buffers:
            if buffer.space == "constant":
                array = np.ascontiguousarray(self.constants[buffer.name])
                block[buffer.offset : buffer.end] = array.reshape(-1).view(np.uint8)
        return block
