"""Kernels put together as one program: buffers, packed constants, steps, one native entry."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from rooftile import memory
from rooftile.codegen.llvm.entry import entry_text
from rooftile.codegen.llvm.kernel import KernelText
from rooftile.core.dtype import itemsize
from rooftile.ir.graph import Array, Graph, Value
from rooftile.ir.program import Arg, Buffer, KernelFacts, Launch, Port, Program
from rooftile.ir.tile import Buf, Kernel
from rooftile.ir.tile.layout import pack
from rooftile.native.aligned import aligned

ENTRY = "rooftile_entry"


@dataclass(frozen=True)
class Unit:
    """A kernel at its place in the program: its text, and the value behind each argument."""

    kernel: Kernel
    text: KernelText
    arguments: tuple[str, ...]
    facts: KernelFacts


@dataclass(frozen=True)
class Linked:
    """The program, the text of its entry, and the block of constants it points into."""

    program: Program
    entry: str
    constants: Array


def link(
    graph: Graph, units: Sequence[Unit], places: Mapping[str, Value], alias: Mapping[str, str]
) -> Linked:
    """`places`: every buffer by name, with the shape and dtype it has in memory; `alias`: for
    outputs of the graph that live in another value's buffer.
    """
    return _Linker(graph, units, places, alias).run()


@dataclass
class _Linker:
    graph: Graph
    units: Sequence[Unit]
    places: Mapping[str, Value]
    alias: Mapping[str, str]
    constants: dict[str, Array] = field(default_factory=dict)

    def run(self) -> Linked:
        inputs = {value.name for value in self.graph.inputs}
        outputs = dict.fromkeys(self.graph.outputs)
        launches: list[Launch] = []
        spans: dict[str, list[int]] = {}
        for number, unit in enumerate(self.units):
            launches.append(self._launch(unit, number, inputs, outputs, spans))
        scratch = max((unit.text.scratch_bytes for unit in self.units), default=0)
        buffers = self._place(spans, outputs, scratch)
        program = self._program(buffers, launches, inputs)
        symbols = {unit.text.symbol: unit.text.symbol for unit in self.units}
        return Linked(program, entry_text(program, symbols, ENTRY), self._block(program))

    def _launch(
        self,
        unit: Unit,
        number: int,
        inputs: set[str],
        outputs: Mapping[str, None],
        spans: dict[str, list[int]],
    ) -> Launch:
        args = []
        memory_bufs = [buf for buf in unit.kernel.bufs if buf.space == "memory"]
        written = set(unit.kernel.outputs)
        for buf, value in zip(memory_bufs, unit.arguments, strict=True):
            if value in self.graph.constants:
                args.append(Arg(self._constant(value, buf)))
                continue
            args.append(Arg(value))
            if value not in inputs and value not in outputs:
                spans.setdefault(value, [number, number])[1] = number
        writes = tuple(n for n, buf in enumerate(memory_bufs) if buf.name in written)
        if unit.text.scratch_bytes:
            args.append(Arg("scratch"))
        else:
            args.append(args[0])
        return Launch(unit.text.symbol, tuple(args), unit.facts, writes)

    def _constant(self, value: str, buf: Buf) -> str:
        """The name of a constant in the layout that a kernel reads it in."""
        suffix = (
            ""
            if buf.layout is None
            else "@" + "_".join(f"{dim}{part[0]}{block}" for dim, block, part in buf.layout)
        )
        name = value + suffix
        if name not in self.constants:
            array = self.graph.constants[value]
            sizes = [extent for extent in buf.shape if isinstance(extent, int)]
            self.constants[name] = np.ascontiguousarray(pack(buf, array.reshape(sizes)))
        return name

    def _place(
        self, spans: Mapping[str, list[int]], outputs: Mapping[str, None], scratch: int
    ) -> list[Buffer]:
        rounded = {name: -(-self._nbytes(name) // 64) * 64 for name in spans}
        lifetimes = [(first, last + 1, rounded[name]) for name, (first, last) in spans.items()]
        if scratch:
            lifetimes.append((0, len(self.units), -(-scratch // 64) * 64))
        self.packing = memory.pack(lifetimes, seconds=0.2)
        self.no_reuse = sum(size for _, _, size in lifetimes)
        buffers = [
            Buffer(name, self._nbytes(name), "arena", offset)
            for name, offset in zip(spans, self.packing.offsets, strict=False)
        ]
        if scratch:
            buffers.append(Buffer("scratch", scratch, "scratch", self.packing.offsets[-1]))
        for value in self.graph.inputs:
            buffers.append(Buffer(value.name, self._nbytes(value.name), "input"))
        for name in outputs:
            if name not in self.graph.constants and name not in {b.name for b in buffers}:
                buffers.append(Buffer(name, self._nbytes(name), "output"))
        for name in outputs:
            if name in self.graph.constants:
                self.constants.setdefault(name, self.graph.constants[name])
        offset = 0
        for name, array in self.constants.items():
            buffers.append(Buffer(name, array.nbytes, "constant", offset))
            offset += -(-array.nbytes // 64) * 64
        return buffers

    def _nbytes(self, name: str) -> int:
        value = self.places[name]
        return math.prod(value.dims) * itemsize(value.dtype)

    def _program(self, buffers: list[Buffer], launches: list[Launch], inputs: set[str]) -> Program:
        values = self.graph.values

        def port(name: str) -> Port:
            value = values[name]
            return Port(name, self.alias.get(name, name), value.dims, value.dtype)

        return Program(
            self.graph.name,
            tuple(port(value.name) for value in self.graph.inputs),
            tuple(port(name) for name in self.graph.outputs),
            tuple(buffers),
            tuple(launches),
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
