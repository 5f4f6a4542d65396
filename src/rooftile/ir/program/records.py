"""Program IR: buffers with their places in memory, and the steps that run over them in order.

Everything is decided: sizes are bytes, places are offsets, kernels go by name. A runtime needs
nothing else, so a program that was written to a file runs without the compiler.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, TypeAlias, get_args

from rooftile.core.dtype import DType, itemsize
from rooftile.core.symbolic import Sym, Symbols

Space: TypeAlias = Literal["input", "output", "arena", "constant", "scratch", "table"]
SPACES: tuple[Space, ...] = get_args(Space)
TABLE_SLOT, STOP_SLOT, POOL_SLOT = 0, 1, 2
SLOTS = 3
"""Behind the pointers of the inputs native code finds one to the table of numbers, one to the flag
that ends loops, and one to the pool of threads."""
NUMBER = "#"
"""What stands in front of the name of a number of the run among a kernel's arguments."""
Attr: TypeAlias = "bool | int | float | str | tuple[Attr, ...] | None"


@dataclass(frozen=True)
class Buffer:
    """`nbytes` of memory. `space` says whose: input and output memory is the caller's, constants
    lie at `offset` of one read-only block, arena and scratch at `offset` of the arena. A scratch
    buffer is the workspace of a kernel: what was in it before a step does not matter. The table
    is that of the program's numbers, of i64.
    """

    name: str
    nbytes: int
    space: Space
    offset: int = 0
    align: int = 64

    @property
    def in_arena(self) -> bool:
        """Whether it lies in the arena."""
        return self.space in ("arena", "scratch")

    @property
    def end(self) -> int:
        """The offset of the first byte behind it."""
        return self.offset + self.nbytes


@dataclass(frozen=True)
class Arg:
    """A pointer: `offset` bytes into a buffer. In a loop it moves by `step` bytes an iteration, to
    lower places where that is negative; of nested loops, the innermost counts.
    """

    buffer: str
    offset: int = 0
    step: int = 0

    def lowest(self, trip: int) -> Arg:
        """Where the pointer is lowest in `trip` iterations, standing still."""
        return Arg(self.buffer, self.offset + min(0, self.step * (trip - 1)))


@dataclass(frozen=True)
class Port:
    """A tensor, C-contiguous, at the start of a buffer. `name` is the model's name for it."""

    name: str
    buffer: str
    shape: tuple[int, ...]
    dtype: DType

    @property
    def nbytes(self) -> int:
        """Bytes of the tensor."""
        return math.prod(self.shape) * itemsize(self.dtype)


@dataclass(frozen=True)
class KernelFacts:
    """What is known of a kernel's work, for reports.

    `origin`: the nodes of the model that it computes; `ops`: their canonical ops; `dtype`: what
    it computes in. `bytes_unfused`: the traffic of the same nodes as one kernel each.
    `schedule`: choices by name. Seconds are predictions of the machine's model.
    """

    origin: tuple[str, ...] = ()
    ops: tuple[str, ...] = ()
    dtype: DType = "f32"
    flops: int = 0
    bytes_read: int = 0
    bytes_written: int = 0
    bytes_unfused: int = 0
    predicted_s: float = 0.0
    schedule: tuple[tuple[str, str | int], ...] = ()


@dataclass(frozen=True)
class Split:
    """A kernel's work as `tiles` tiles, of which any range can be computed apart from the others.

    `seconds` are predicted for all of them on one thread. Each thread has its own scratch memory,
    `scratch` bytes behind that of the thread before.
    """

    tiles: int
    seconds: float
    scratch: int = 0


@dataclass(frozen=True)
class Launch:
    """Run a kernel. `writes` holds the positions of the arguments that it writes, by default the
    last; negative positions count from the end and are stored as the others are. `numbers` names
    the numbers of the program that it is given, in front of its last argument. With a `split` it
    takes behind them the first tile and the last, plus one.
    """

    kernel: str
    args: tuple[Arg, ...]
    facts: KernelFacts = KernelFacts()
    writes: tuple[int, ...] = (-1,)
    numbers: tuple[str, ...] = ()
    split: Split | None = None

    def __post_init__(self) -> None:
        count = len(self.args)
        places = {place + count if -count <= place < 0 else place for place in self.writes}
        object.__setattr__(self, "writes", tuple(sorted(places)))

    @property
    def written(self) -> tuple[Arg, ...]:
        """The arguments that it writes."""
        return tuple(self.args[place] for place in self.writes)

    @property
    def read(self) -> tuple[Arg, ...]:
        """The arguments that it only reads."""
        return tuple(arg for place, arg in enumerate(self.args) if place not in self.writes)


@dataclass(frozen=True)
class HostCall:
    """Run a function of the host library on whole tensors. `attrs` are its keyword arguments."""

    function: str
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    attrs: tuple[tuple[str, Attr], ...] = ()
    origin: tuple[str, ...] = ()


@dataclass(frozen=True)
class Copy:
    """Copy `nbytes` bytes from `src` to `dst`."""

    src: Arg
    dst: Arg
    nbytes: int


@dataclass(frozen=True)
class Loop:
    """Run the steps of `body`, in order, `trip` times, at least once. There are no host calls in
    it. `facts` are those of all iterations together.
    """

    name: str
    trip: int
    body: tuple[Step, ...]
    facts: KernelFacts = KernelFacts()

    @property
    def read(self) -> tuple[Arg, ...]:
        """What the body reads, each place as the lowest of all iterations."""
        return tuple(arg.lowest(self.trip) for step in self.body for arg in reads(step))

    @property
    def written(self) -> tuple[Arg, ...]:
        """What the body writes, each place as the lowest of all iterations."""
        return tuple(arg.lowest(self.trip) for step in self.body for arg in writes(step))


Step: TypeAlias = "Launch | HostCall | Copy | Loop"


@dataclass(frozen=True)
class Program:
    """A compiled model. Steps run in order.

    An output may lie in an input or a constant buffer, or share one with another output: it is
    copied when the steps are done. `arena_bytes` is what a run allocates, `lower_bound_bytes`
    what no plan can go below, `no_reuse_bytes` what it would be without sharing memory.

    `numbers`: extents by name that kernels take as arguments, for programs whose code serves many
    shapes. Such code finds them, and the offsets of the buffers in the arena, in `table`.

    `threads`: how many may take part in one launch; scratch memory is there for so many.
    """

    name: str
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    buffers: tuple[Buffer, ...]
    steps: tuple[Step, ...]
    arena_bytes: int = 0
    lower_bound_bytes: int = 0
    no_reuse_bytes: int = 0
    numbers: tuple[tuple[str, int], ...] = ()
    threads: int = 1

    @cached_property
    def table(self) -> dict[str, int]:
        """The numbers, then the offsets of the buffers in the arena (as `@name`), in order."""
        if not self.numbers:
            return {}
        offsets = {f"@{buffer.name}": buffer.offset for buffer in self.buffers if buffer.in_arena}
        return {**dict(self.numbers), **offsets}

    @cached_property
    def symbols(self) -> Symbols | None:
        """The symbols that its shapes are made of; None where all are numbers."""
        extents = (extent for port in self.inputs for extent in port.shape)
        return next((extent.symbols for extent in extents if isinstance(extent, Sym)), None)

    @cached_property
    def by_name(self) -> dict[str, Buffer]:
        """The buffers by name."""
        return {buffer.name: buffer for buffer in self.buffers}

    @property
    def constant_bytes(self) -> int:
        """Bytes of the block that holds the constants."""
        return max((b.end for b in self.buffers if b.space == "constant"), default=0)

    @property
    def launches(self) -> tuple[Launch, ...]:
        """The steps that run kernels, in order; those in loops once."""
        return tuple(step for step in flat(self.steps) if isinstance(step, Launch))

    @cached_property
    def output_place(self) -> dict[str, int]:
        """The output port whose memory each output buffer is: the first that names it."""
        spaces = self.by_name
        found: dict[str, int] = {}
        for place, port in enumerate(self.outputs):
            if spaces[port.buffer].space == "output":
                found.setdefault(port.buffer, place)
        return found

    @cached_property
    def copied_outputs(self) -> tuple[int, ...]:
        """Positions of the outputs that are copied when the steps are done."""
        own = set(self.output_place.values())
        return tuple(place for place in range(len(self.outputs)) if place not in own)

    @cached_property
    def segments(self) -> tuple[tuple[int, int], ...]:
        """Runs `(first, last + 1)` of native steps between host calls, empty ones included.

        There is one more than there are host calls; the last ends with the copied outputs.
        """
        cuts = [i for i, step in enumerate(self.steps) if isinstance(step, HostCall)]
        starts = [0, *(cut + 1 for cut in cuts)]
        return tuple(zip(starts, [*cuts, len(self.steps)], strict=True))


def flat(steps: Iterable[Step]) -> Iterator[Step]:
    """The steps in order, those of a loop in its place."""
    for step in steps:
        if isinstance(step, Loop):
            yield from flat(step.body)
        else:
            yield step


def reads(step: Step) -> Iterator[Arg]:
    """What a step reads."""
    if isinstance(step, (Launch, Loop)):
        yield from step.read
    elif isinstance(step, Copy):
        yield step.src
    else:
        yield from (Arg(port.buffer) for port in step.inputs)


def writes(step: Step) -> Iterator[Arg]:
    """What a step writes."""
    if isinstance(step, (Launch, Loop)):
        yield from step.written
    elif isinstance(step, Copy):
        yield step.dst
    else:
        yield from (Arg(port.buffer) for port in step.outputs)


def label(step: Step) -> str:
    """What a step is called in messages and reports."""
    if isinstance(step, Launch):
        return step.kernel
    if isinstance(step, Loop):
        return step.name
    return step.function if isinstance(step, HostCall) else "copy"


def segment_symbol(entry: str, index: int) -> str:
    """The symbol of the native function of one segment: the first is the entry itself."""
    return f"{entry}.{index}" if index else entry


def part_symbol(entry: str, path: Sequence[int]) -> str:
    """The symbol of the native function of a range of tiles of a launch: `i32 part(ptr context,
    i64 first, i64 last, i64 thread)`. The context holds the entry's four pointers, then the number
    of the iteration as i64."""
    return f"{entry}.part{'.'.join(map(str, path))}"


def loop_symbol(entry: str, path: Sequence[int]) -> str:
    """The symbol of the native function of a loop: the places of the steps that lead to it."""
    return f"{entry}.loop{'.'.join(map(str, path))}"
