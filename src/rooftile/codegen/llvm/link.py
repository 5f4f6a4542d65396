"""Kernels put together as one program: buffers, packed constants, steps, one native entry."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from rooftile.codegen.llvm.entry import entry_text
from rooftile.codegen.llvm.steps import AnyUnit, StepWriter, nbytes_of
from rooftile.core.symbolic import Sym
from rooftile.ir.graph import Array, Graph, symbols_in
from rooftile.ir.program import Buffer, Launch, Port, Program, Step, lifetimes, placed
from rooftile.ir.program.place import sizes_in
from rooftile.ir.program.records import flat
from rooftile.native.aligned import aligned
from rooftile.plan.concat import Part

ENTRY = "rooftile_entry"


@dataclass(frozen=True)
class Linked:
    """The program, the text of its entry, and the block of constants it points into."""

    program: Program
    entry: str
    constants: Array


def link(
    graph: Graph,
    units: Sequence[AnyUnit],
    aliases: Mapping[str, str],
    parts: Mapping[str, Part] | None = None,
    checked: bool = False,
    threads: int = 1,
) -> Linked:
    """`aliases`: for outputs of the graph that lie in another value's memory, its name.
    `parts`: the larger buffers that values are parts of. `checked`: the entry holds what it gives
    to kernels against their buffers; one of open dims leaves that to the kernels. `threads`: how
    many may take part in a launch."""
    return _Linker(graph, aliases, parts or {}, threads).run(units, checked)


def _splits(steps: Sequence[Step]) -> bool:
    return any(isinstance(step, Launch) and step.split for step in flat(steps))


class _Linker:
    def __init__(
        self,
        graph: Graph,
        aliases: Mapping[str, str],
        parts: Mapping[str, Part],
        threads: int = 1,
    ) -> None:
        self.graph = graph
        self.threads = threads
        self.writer = StepWriter(graph, aliases, parts, threads)
        self.constants = self.writer.constants

    def run(self, units: Sequence[AnyUnit], checked: bool) -> Linked:
        """The steps, their buffers at their places, and the entry."""
        scope = self.writer.outermost
        outputs = dict.fromkeys(scope.home(name) for name in self.graph.outputs)
        for name in outputs:
            self.writer.place(name, scope)
        steps = self.writer.steps(units)
        program = self._program(self._buffers(steps, outputs), steps)
        if not program.numbers:
            program = placed(program)
        symbols = {launch.kernel: launch.kernel for launch in program.launches}
        text = entry_text(
            program, symbols, ENTRY, self.writer.reach if checked and not program.numbers else None
        )
        return Linked(program, text, self._block(program))

    def _buffers(self, steps: Sequence[Step], outputs: Mapping[str, None]) -> list[Buffer]:
        nbytes = self.writer.nbytes
        for value in self.graph.inputs:
            nbytes[value.name] = nbytes_of(self.graph, value.name)
        scratch = self.writer.scratch
        given = {value.name for value in self.graph.inputs} | set(self.constants) | set(outputs)
        buffers = [
            Buffer(name, nbytes[name], "scratch" if name in scratch else "arena")
            for name in lifetimes(steps)
            if name not in given and name in nbytes
        ]
        inputs = [value.name for value in self.graph.inputs]
        buffers += [Buffer(name, nbytes[name], "input") for name in inputs]
        own = [name for name in outputs if name not in self.constants and name not in inputs]
        buffers += [Buffer(name, nbytes[name], "output") for name in own]
        if self.writer.numbers:
            buffers.append(Buffer(self.writer.table, 8 * len(self.writer.numbers), "table"))
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
            numbers=self._numbers(steps),
            threads=self.threads if _splits(steps) else 1,
        )

    def _numbers(self, steps: Sequence[Step]) -> tuple[tuple[str, int], ...]:
        """What kernels and copies must be told in a run, by name."""
        symbols = symbols_in(self.graph.values.values())
        if symbols is None:
            return ()
        found = {name: symbols.number(name) for name in self.writer.numbers}
        sizes = [*sizes_in(steps), *(nbytes_of(self.graph, name) for name in self.graph.outputs)]
        found.update({str(size): size for size in sizes if isinstance(size, Sym)})
        return tuple(found.items())

    def _block(self, program: Program) -> Array:
        """All constants in one aligned block."""
        block = aligned(max(64, program.constant_bytes))
        for buffer in program.buffers:
            if buffer.space == "constant":
                array = np.ascontiguousarray(self.constants[buffer.name])
                block[buffer.offset : buffer.end] = array.reshape(-1).view(np.uint8)
        return block
