"""Units (kernels and loops at their places) become steps over named buffers.

The body of a loop is a graph of its own. Its values lie in buffers of the same names behind a
prefix, except for what it shares with the graph around it: slices and stacks are places in the
outer buffers that move with the iterations, states live in the buffers of the results.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import numpy as np

from rooftile.codegen.llvm.kernel import KernelText
from rooftile.core.dtype import itemsize
from rooftile.ir.graph import Array, Graph, Node, symbols_in
from rooftile.ir.program import Arg, Copy, KernelFacts, Launch, Loop, Split, Step
from rooftile.ir.program.records import NUMBER
from rooftile.ir.tile import Buf, Kernel
from rooftile.ir.tile.layout import pack, physical_shape
from rooftile.ops.scan import parts_of
from rooftile.plan.concat import Part


@dataclass(frozen=True)
class Unit:
    """A kernel at its place in the program: its text, and the value behind each argument.
    `seconds` are predicted on one thread."""

    kernel: Kernel
    text: KernelText
    arguments: tuple[str, ...]
    facts: KernelFacts
    seconds: float = 0.0


@dataclass(frozen=True)
class LoopUnit:
    """A scan at its place in the program, and the units of its body.

    `node` reads what `body` takes; `results` name the values of `body` that an iteration gives,
    `aliases` those that lie in another value's memory.
    """

    node: Node
    body: Graph
    units: tuple[AnyUnit, ...]
    results: tuple[str, ...]
    aliases: Mapping[str, str]
    parts: Mapping[str, Part]
    facts: KernelFacts


AnyUnit: TypeAlias = "Unit | LoopUnit"


@dataclass
class Scope:
    """A graph whose values are given places: those in `bound` as said there, the others in
    buffers of their names behind `prefix`."""

    graph: Graph
    aliases: Mapping[str, str]
    parts: Mapping[str, Part] = field(default_factory=dict)
    prefix: str = ""
    bound: dict[str, Arg] = field(default_factory=dict)

    def home(self, name: str) -> str:
        """The value in whose memory a value lies."""
        while name in self.aliases:
            name = self.aliases[name]
        return name


class StepWriter:
    """Makes steps; collects the constants, the buffers with their sizes, and which are scratch."""

    def __init__(
        self,
        graph: Graph,
        aliases: Mapping[str, str],
        parts: Mapping[str, Part],
        threads: int = 1,
    ) -> None:
        self.outermost = Scope(graph, aliases, parts)
        self.threads = threads
        self.constants: dict[str, Array] = {}
        self.nbytes: dict[str, int] = {}
        symbols = symbols_in(graph.inputs)
        self.numbers: dict[str, None] = dict.fromkeys(symbols.values if symbols else ())
        """The names of the numbers that kernels are given, in the order of the table."""
        self.table = self._fresh("numbers")
        self.reach: dict[str, tuple[int, ...]] = {}
        """The bytes that each kernel may use behind each of its arguments."""
        self.scratch: set[str] = set()
        """The buffers that are scratch memory: one for each launch that needs it."""

    def steps(self, units: Sequence[AnyUnit], scope: Scope | None = None) -> list[Step]:
        """The steps of units, in their order."""
        scope = scope or self.outermost
        found: list[Step] = []
        for unit in units:
            if isinstance(unit, Unit):
                found.append(self._launch(unit, scope))
            else:
                found += self._loop(unit, scope)
        return found

    def place(self, name: str, scope: Scope) -> Arg:
        """Where a value lies, or a number of the run."""
        if name.startswith(NUMBER) and name not in scope.graph.values:
            number = name.removeprefix(NUMBER)
            self.numbers.setdefault(number)
            return Arg(self.table, 8 * list(self.numbers).index(number))
        part = scope.parts.get(name)
        if part is not None:
            whole = self.place(part.buffer, scope)
            return replace(whole, offset=whole.offset + _offset(part, scope.graph))
        name = scope.home(name)
        if name in scope.bound:
            return scope.bound[name]
        if name in scope.graph.constants:
            self.constants[scope.prefix + name] = scope.graph.constants[name]
        else:
            self.nbytes[scope.prefix + name] = nbytes_of(scope.graph, name)
        return Arg(scope.prefix + name)

    def _launch(self, unit: Unit, scope: Scope) -> Launch:
        bufs = [buf for buf in unit.kernel.bufs if buf.space == "memory"]
        args = [
            self._packed(value, buf, scope) or self.place(value, scope)
            for buf, value in zip(bufs, unit.arguments, strict=True)
        ]
        writes = [place for place, buf in enumerate(bufs) if buf.name in set(unit.kernel.outputs)]
        if not unit.text.symbols:
            self.reach[unit.text.symbol] = (*map(_bytes_behind, bufs), unit.text.scratch_bytes)
        scratch = self._scratch(unit.text)
        writes.append(len(args))
        # The function takes a pointer that it does not use where it needs no scratch memory.
        args.append(scratch or args[writes[0]])
        numbers = unit.text.symbols
        self.numbers.update(dict.fromkeys(numbers))
        split = self._split(unit)
        return Launch(unit.text.symbol, tuple(args), unit.facts, tuple(writes), numbers, split)

    def _scratch(self, text: KernelText) -> Arg | None:
        """Scratch memory of one launch, for all threads: other steps may use its bytes."""
        if not text.scratch_bytes:
            return None
        copies = 1 if text.tiles is None else self.threads
        name = self._temporary(copies * _stride(text), "scratch")
        self.scratch.add(name)
        return Arg(name)

    def _split(self, unit: Unit) -> Split | None:
        tiles = unit.text.tiles
        if tiles is None:
            return None
        extent = tiles.extent
        if not isinstance(extent, int):
            symbols = symbols_in(self.outermost.graph.values.values())
            assert symbols is not None
            extent = symbols.extent(extent)
        return Split(tiles.count(extent), unit.seconds, _stride(unit.text))

    def _packed(self, value: str, buf: Buf, scope: Scope) -> Arg | None:
        """A constant in the layout that a kernel reads it in; None for what is not packed."""
        array = scope.graph.constants.get(value)
        if array is None or buf.layout is None:
            return None
        sizes = [extent for extent in buf.shape if isinstance(extent, int)]
        shape = "x".join(map(str, sizes))
        parts = "_".join(f"{dim}{part[0]}{block}" for dim, block, part in buf.layout)
        name = self._fresh(f"{scope.prefix}{value}@{shape}@{parts}")
        if name not in self.constants:
            self.constants[name] = np.ascontiguousarray(pack(buf, array.reshape(sizes)))
        return Arg(name)

    def _fresh(self, name: str) -> str:
        """The name, changed where a value of the graph has it."""
        while name in self.outermost.graph.values:
            name += "_"
        return name

    # -- loops

    def _loop(self, unit: LoopUnit, scope: Scope) -> list[Step]:
        """Copies of the first states, and the loop; nothing but the copies for no iterations."""
        node, parts = unit.node, parts_of(dict(unit.node.attrs))
        prefix = f"{scope.prefix}{node.name}/"
        while any(name.startswith(prefix) for name in self.outermost.graph.values):
            prefix += "/"
        before: list[Step] = []
        after: list[Step] = []
        inner = Scope(unit.body, unit.aliases, unit.parts, prefix)
        results = [
            self._still(self.place(value.name, scope), nbytes_of(scope.graph, value.name), after)
            for value in node.outputs
        ]
        states, stacks = results[: parts.carried], results[parts.carried :]
        for number, (value, name) in enumerate(zip(unit.body.inputs, node.inputs, strict=True)):
            size = nbytes_of(scope.graph, name)
            source = self._still(self.place(name, scope), size, before, into=True)
            if number < parts.carried:
                before.append(Copy(source, states[number], size))
                source = states[number]
            elif number < parts.captured:
                flag = parts.sliced[number - parts.carried]
                source = _moving(source, nbytes_of(unit.body, value.name), parts.trip, flag)
            inner.bound[value.name] = source
        ends = self._stack(unit, inner, stacks)
        if not parts.trip:
            return [*before, *after]
        body = self.steps(unit.units, inner)
        ends += self._hand_on(unit, inner, states)
        loop = Loop(node.name, parts.trip, (*body, *ends), unit.facts)
        return [*before, loop, *after]

    def _still(self, place: Arg, size: int, copies: list[Step], into: bool = False) -> Arg:
        """A place that moves with a loop around, as one that does not: copied from, or `into`."""
        if not place.step:
            return place
        name = self._temporary(size)
        copies.append(Copy(place, Arg(name), size) if into else Copy(Arg(name), place, size))
        return Arg(name)

    def _stack(self, unit: LoopUnit, inner: Scope, stacks: Sequence[Arg]) -> list[Step]:
        """Let kernels write straight into stacks; copies for what they do not compute."""
        parts, copies = parts_of(dict(unit.node.attrs)), list[Step]()
        names = unit.results[parts.carried :]
        for name, stack, backward in zip(names, stacks, parts.stacked, strict=True):
            size = nbytes_of(unit.body, name)
            target = _moving(stack, size, parts.trip, backward)
            own = name in unit.body.producers and name not in unit.aliases
            if own and name not in inner.bound:
                inner.bound[name] = target
            else:
                copies.append(Copy(self.place(name, inner), target, size))
        return [copy for copy in copies if isinstance(copy, Copy) and copy.nbytes]

    def _hand_on(self, unit: LoopUnit, inner: Scope, states: Sequence[Arg]) -> list[Step]:
        """Copies of the next states over the present ones; none is overwritten too early."""
        early: list[Step] = []
        late: list[Step] = []
        for name, state in zip(unit.results, states, strict=False):
            size, source = nbytes_of(unit.body, name), self.place(name, inner)
            if source == state or not size:
                continue
            if source in states:
                kept = Arg(self._temporary(size))
                early.append(Copy(source, kept, size))
                source = kept
            late.append(Copy(source, state, size))
        return early + late

    def _temporary(self, size: int, stem: str = "copy") -> str:
        number = 0
        while (name := self._fresh(f"{stem}_{number}")) in self.nbytes:
            number += 1
        self.nbytes[name] = size
        return name


def _offset(part: Part, graph: Graph) -> int:
    """The byte at which a part of a larger buffer starts."""
    value = graph.values[part.buffer]
    offset = 0
    for start, extent in zip(part.start, value.dims, strict=True):
        offset = offset * extent + start
    return offset * itemsize(value.dtype)


def nbytes_of(graph: Graph, name: str) -> int:
    """Bytes of a value."""
    value = graph.values[name]
    return math.prod(value.dims) * itemsize(value.dtype)


def _stride(text: KernelText) -> int:
    """Bytes from one thread's scratch memory to the next's: whole cache lines."""
    return -(-text.scratch_bytes // 64) * 64


def _bytes_behind(buf: Buf) -> int:
    return math.prod(physical_shape(buf)) * itemsize(buf.dtype)


def _moving(start: Arg, size: int, trip: int, backward: bool) -> Arg:
    """A place of `size` bytes that goes through a buffer, one part an iteration."""
    first = size * (trip - 1) if backward else 0
    return Arg(start.buffer, start.offset + max(0, first), -size if backward else size)
