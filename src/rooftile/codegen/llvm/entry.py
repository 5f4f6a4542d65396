"""Program -> LLVM text of the native entry: one function that runs the steps in order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from rooftile.codegen.llvm.bounds import Access, Guard, starts
from rooftile.core.errors import InvalidIR
from rooftile.core.symbolic import Sym, hint
from rooftile.ir.program import Arg, Copy, Launch, Loop, Program, Split, Step
from rooftile.ir.program.records import (
    POOL_SLOT,
    STOP_SLOT,
    TABLE_SLOT,
    loop_symbol,
    part_symbol,
    segment_symbol,
)
from rooftile.native.bounds import OUTSIDE
from rooftile.native.stop import STOPPED

Reach = Mapping[str, Sequence[int]]
"""The bytes that each kernel may use behind each of its pointers."""
_Path = tuple[int, ...]
_PARAMETERS = "ptr %inputs, ptr %outputs, ptr %arena, ptr %constants"
_HEADER = "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)"


def entry_text(
    program: Program,
    kernel_symbols: Mapping[str, str],
    name: str = "rooftile_entry",
    reach: Reach | None = None,
) -> str:
    """LLVM text of `i32 @name(ptr inputs, ptr outputs, ptr arena, ptr constants)`.

    `inputs` and `outputs` are arrays of pointers in the order of the program's ports. The result
    is 0, or `(step + 1) << 8 | code` of the first kernel that returned a code other than 0: the
    steps behind it do not run. `kernel_symbols` gives the symbol of each kernel; a kernel is
    `i32 @symbol(ptr..., i64 numbers..., ptr)`. Where host calls cut the program, each run of native
    steps between them is a function of its own, named by `segment_symbol`; so is each loop, by
    `loop_symbol`.

    Behind the pointers of the inputs are those of `rooftile.ir.program.records.SLOTS`: to the
    table, of i64, of a program with numbers; to an i32, at which loops look before each iteration,
    to return `rooftile.native.stop.STOPPED` where it is not 0; and to the pool of threads, to which
    launches with a split go in parts named by `part_symbol` (done at once where it is null).

    `reach` asks for checked code: what kernels may use and copies move lies inside its buffer, in
    each iteration, else the step is not run and its code is `rooftile.native.bounds.OUTSIDE`.
    InvalidIR for a kernel without a symbol.
    """
    symbols: dict[str, str] = {}
    for launch in program.launches:
        symbol = kernel_symbols.get(launch.kernel)
        if symbol is None:
            raise InvalidIR(f"{program.name}: kernel {launch.kernel!r} has no symbol")
        numbers = len(launch.numbers) + (0 if launch.split is None else 2)
        kinds = ["ptr"] * (len(launch.args) - 1) + ["i64"] * numbers + ["ptr"]
        pointers = ", ".join(kinds)
        declared = symbols.setdefault(symbol, pointers)
        if declared != pointers:
            raise InvalidIR(f"{program.name}: kernel {launch.kernel!r} is called with two arities")
    lines = [_HEADER]
    lines += [f"declare i32 @{_quoted(symbol)}({args})" for symbol, args in symbols.items()]
    checks = None if reach is None else _Checks(Guard(name), reach)
    parts = list(_split(program.steps))
    for path, launch in parts:
        writer = _Writer(program, kernel_symbols, name, checks)
        lines += ["", *writer.part(launch, path)]
    if parts:
        lines += ["", *_shared(program, name)]
    for path, loop in _loops(program.steps):
        writer = _Writer(program, kernel_symbols, name, checks)
        lines += ["", *writer.loop(loop, path)]
    for index in range(len(program.segments)):
        lines += ["", *_Writer(program, kernel_symbols, name, checks).segment(index)]
    if checks is not None:
        lines += ["", *checks.guard.module()]
    return "\n".join(lines) + "\n"


def _loops(steps: Sequence[Step], path: tuple[int, ...] = ()) -> Iterator[tuple[_Path, Loop]]:
    """Every loop, with the places of the steps that lead to it."""
    for place, step in enumerate(steps):
        if isinstance(step, Loop):
            yield (*path, place), step
            yield from _loops(step.body, (*path, place))


def _split(steps: Sequence[Step], path: _Path = ()) -> Iterator[tuple[_Path, Launch]]:
    """Every launch whose tiles may be computed by several threads, with its place."""
    for place, step in enumerate(steps):
        if isinstance(step, Loop):
            yield from _split(step.body, (*path, place))
        elif isinstance(step, Launch) and step.split is not None:
            yield (*path, place), step


def _nanoseconds(steps: Sequence[Step]) -> int:
    """What launches that may be split are expected to take on one thread."""
    total = 0
    for step in steps:
        if isinstance(step, Loop):
            total += hint(step.trip) * _nanoseconds(step.body)
        elif isinstance(step, Launch) and step.split is not None:
            total += round(step.split.seconds * 1e9)
    return total


def _shared(program: Program, entry: str) -> list[str]:
    """The function that hands a launch to the pool, whose address lies behind that of the table;
    where there is none, the launch is done at once."""
    pool = len(program.inputs) + POOL_SLOT
    symbol = _quoted(f"{entry}.split")
    arguments = "ptr %context, ptr %part, i64 %tiles, i64 %cost, i64 %ahead"
    given = "ptr %pool, ptr %part, ptr %context, i64 %tiles, i64 %cost, i64 %ahead, i64 {}"
    return [
        f"define internal i32 @{symbol}({arguments}) {{",
        "entry:",
        "  %inputs = load ptr, ptr %context",
        f"  %place = getelementptr ptr, ptr %inputs, i64 {pool}",
        "  %pool = load ptr, ptr %place",
        "  %none = icmp eq ptr %pool, null",
        "  br i1 %none, label %alone, label %shared",
        "alone:",
        "  %code = call i32 %part(ptr %context, i64 0, i64 %tiles, i64 0)",
        "  ret i32 %code",
        "shared:",
        "  %run = load ptr, ptr %pool",
        f"  %codes = call i32 %run({given.format(program.threads)})",
        "  ret i32 %codes",
        "}",
    ]


@dataclass(frozen=True)
class _Checks:
    """What all functions of a checked entry share."""

    guard: Guard
    reach: Reach


class _Writer:
    """Writes one function: a run of native steps, or a loop."""

    def __init__(
        self,
        program: Program,
        kernel_symbols: Mapping[str, str],
        entry: str,
        checks: _Checks | None = None,
    ) -> None:
        self.program = program
        self.kernel_symbols = kernel_symbols
        self.entry = entry
        self.checks = checks
        self.code = OUTSIDE
        """What is returned where a check of the present step fails."""
        self.ahead = 0
        """Nanoseconds of work that may be split, from the present step to the end."""
        self.lines: list[str] = []
        self.names = 0
        self.failures: list[int] = []
        self.table = {key: place for place, key in enumerate(program.table)}
        self.inputs = {port.buffer: place for place, port in enumerate(program.inputs)}

    def segment(self, index: int) -> list[str]:
        """The function of one run of native steps."""
        start, stop = self.program.segments[index]
        steps = self.program.steps[start:stop]
        self._context(steps)
        self.ahead = _nanoseconds(steps)
        for place, step in enumerate(steps, start):
            self.code = _code(place, OUTSIDE)
            self._step(step, (place,))
            self.ahead -= _nanoseconds([step])
        if index == len(self.program.segments) - 1:
            self.code = _code(len(self.program.steps), OUTSIDE)
            for place in self.program.copied_outputs:
                port = self.program.outputs[place]
                target = self._element("%outputs", place)
                source = self._pointer(Arg(port.buffer), port.nbytes, "copy reads")
                self._copy(target, source, port.nbytes)
        lines = [*self.lines, "  ret i32 0"]
        for place in self.failures:
            lines += [
                f"fail{place}:",
                f"  %low{place} = and i32 %code{place}, 255",
                f"  %result{place} = or i32 %low{place}, {_code(place, 0)}",
                f"  ret i32 %result{place}",
            ]
        return self._function(segment_symbol(self.entry, index), lines)

    def loop(self, loop: Loop, path: _Path) -> list[str]:
        """The function of a loop; it returns the code of the first kernel that fails."""
        trip = self._amount(loop.trip)
        flag = self._element("%inputs", len(self.program.inputs) + STOP_SLOT)
        self.ahead = hint(loop.trip) * _nanoseconds(loop.body)
        self._context(loop.body)
        before, self.lines = self.lines, []
        for place, step in enumerate(loop.body):
            self._step(step, (*path, place))
        lines = [
            *before,
            "  br label %loop",
            "loop:",
            "  %iteration = phi i64 [ 0, %entry ], [ %next, %latch ]",
            f"  %asked = load atomic i32, ptr {flag} monotonic, align 4",
            "  %stop = icmp ne i32 %asked, 0",
            "  br i1 %stop, label %stopped, label %begin",
            "begin:",
            *self.lines,
            "  br label %latch",
            "latch:",
            "  %next = add i64 %iteration, 1",
            f"  %over = icmp eq i64 %next, {trip}",
            "  br i1 %over, label %done, label %loop",
            "done:",
            "  ret i32 0",
            "stopped:",
            f"  ret i32 {STOPPED}",
        ]
        for place in self.failures:
            lines += [f"fail{place}:", f"  ret i32 %code{place}"]
        return self._function(loop_symbol(self.entry, path), lines)

    def part(self, launch: Launch, path: _Path) -> list[str]:
        """The function of a range of tiles of a launch, as a pool calls it."""
        assert launch.split is not None
        for place, name in enumerate(("inputs", "outputs", "arena", "constants")):
            address = self._offset("%context", place, "ptr")
            self.lines.append(f"  %{name} = load ptr, ptr {address}")
        address = self._offset("%context", 4, "ptr")
        self.lines.append(f"  %iteration = load i64, ptr {address}")
        behind = launch.split.scratch * (self.program.threads - 1)
        *before, last = self._arguments(launch, behind)
        if launch.split.scratch:
            moved = self._new(f"mul i64 %thread, {launch.split.scratch}")
            last = "ptr " + self._new(f"getelementptr i8, {last}, i64 {moved}")
        args = ", ".join((*before, "i64 %first", "i64 %last", last))
        symbol = _quoted(self.kernel_symbols[launch.kernel])
        lines = [*self.lines, f"  %code = call i32 @{symbol}({args})", "  ret i32 %code"]
        parameters = "ptr %context, i64 %first, i64 %last, i64 %thread"
        return self._function(part_symbol(self.entry, path), lines, parameters)

    def _context(self, steps: Sequence[Step]) -> None:
        """What the functions of parts are given by a function that runs these steps."""
        if not any(isinstance(step, Launch) and step.split for step in steps):
            return
        self.lines.append("  %context = alloca [5 x ptr]")
        for place, name in enumerate(("inputs", "outputs", "arena", "constants")):
            self.lines.append(f"  store ptr %{name}, ptr {self._offset('%context', place, 'ptr')}")

    def _function(self, symbol: str, lines: list[str], parameters: str = _PARAMETERS) -> list[str]:
        return [f"define i32 @{_quoted(symbol)}({parameters}) {{", "entry:", *lines, "}"]

    def _step(self, step: Step, path: _Path) -> None:
        """The call or copy of one step."""
        if isinstance(step, Copy):
            target = self._pointer(step.dst, step.nbytes, "copy writes")
            source = self._pointer(step.src, step.nbytes, "copy reads")
            self._copy(target, source, step.nbytes)
        elif isinstance(step, Launch) and step.split is not None:
            self._share(step.split, path)
        elif isinstance(step, Launch):
            args = ", ".join(self._arguments(step))
            self._call(self.kernel_symbols[step.kernel], args, path[-1])
        elif isinstance(step, Loop):
            self._call(loop_symbol(self.entry, path), _PARAMETERS, path[-1])

    def _arguments(self, launch: Launch, behind: int = 0) -> list[str]:
        """What a kernel is given: pointers, numbers, and a pointer, behind whose own memory there
        are `behind` bytes of other threads."""
        what = f"kernel {launch.kernel!r} is given"
        reach = list(self.checks.reach[launch.kernel]) if self.checks else [0] * len(launch.args)
        reach[-1] += behind
        *pointers, last = (
            f"ptr {self._pointer(arg, nbytes, what)}"
            for arg, nbytes in zip(launch.args, reach, strict=True)
        )
        return [*pointers, *(f"i64 {self._number(name)}" for name in launch.numbers), last]

    def _share(self, split: Split, path: _Path) -> None:
        """A launch that several threads may take part in."""
        if len(path) > 1:
            address = self._offset("%context", 4, "ptr")
            self.lines.append(f"  store i64 %iteration, ptr {address}")
        tiles = self._amount(split.tiles)
        cost = str(round(split.seconds * 1e9))
        if isinstance(split.tiles, Sym):
            each = max(1, round(split.seconds * 1e9 / hint(split.tiles)))
            cost = self._new(f"mul i64 {tiles}, {each}")
        part = _quoted(part_symbol(self.entry, path))
        args = f"ptr %context, ptr @{part}, i64 {tiles}, i64 {cost}, i64 {self.ahead}"
        self._call(f"{self.entry}.split", args, path[-1])

    def _call(self, symbol: str, args: str, place: int) -> None:
        self.failures.append(place)
        self.lines += [
            f"  %code{place} = call i32 @{_quoted(symbol)}({args})",
            f"  %bad{place} = icmp ne i32 %code{place}, 0",
            f"  br i1 %bad{place}, label %fail{place}, label %after{place}",
            f"after{place}:",
        ]

    def _pointer(self, arg: Arg, nbytes: int, what: str) -> str:
        """An argument's address, of which `nbytes` bytes are used; `what` is said if they do not
        all lie in its buffer."""
        pointer = self._start(arg)
        offset: int | str = arg.offset
        if arg.step:
            moved = self._new(f"mul i64 %iteration, {self._amount(arg.step)}")
            pointer = self._new(f"getelementptr i8, ptr {pointer}, i64 {moved}")
            offset = self._new(f"add i64 {moved}, {arg.offset}") if self.checks else moved
        if self.checks is not None:
            extent = self.program.by_name[arg.buffer].nbytes
            access = Access(f"{what} buffer {arg.buffer!r}", offset, nbytes, extent)
            self.lines += self.checks.guard.check(access, starts(extent, nbytes), self.code)
        return pointer

    def _start(self, arg: Arg) -> str:
        """The pointer in the first iteration."""
        buffer = self.program.by_name[arg.buffer]
        if buffer.space == "constant":
            return self._offset("%constants", buffer.offset + arg.offset)
        if buffer.in_arena and self.program.numbers:
            offset = self._number(f"@{buffer.name}")
            start = self._new(f"getelementptr i8, ptr %arena, i64 {offset}")
            return self._offset(start, arg.offset)
        if buffer.in_arena:
            return self._offset("%arena", buffer.offset + arg.offset)
        if buffer.space == "table":
            return self._offset(
                self._element("%inputs", len(self.program.inputs) + TABLE_SLOT), arg.offset
            )
        if buffer.space == "input":
            return self._offset(self._element("%inputs", self.inputs[buffer.name]), arg.offset)
        place = self.program.output_place[buffer.name]
        return self._offset(self._element("%outputs", place), arg.offset)

    def _amount(self, number: int) -> str:
        """A number as an operand: a symbol is read from the table."""
        return self._number(str(number)) if isinstance(number, Sym) else str(number)

    def _number(self, name: str) -> str:
        """A number of the program's table."""
        table = self._element("%inputs", len(self.program.inputs) + TABLE_SLOT)
        address = self._offset(table, self.table[name], "i64")
        return self._new(f"load i64, ptr {address}")

    def _element(self, array: str, place: int) -> str:
        """The pointer at a place of an array of pointers."""
        address = self._offset(array, place, "ptr")
        return self._new(f"load ptr, ptr {address}")

    def _offset(self, base: str, count: int, unit: str = "i8") -> str:
        if isinstance(count, int) and not count:
            return base
        return self._new(f"getelementptr {unit}, ptr {base}, i64 {self._amount(count)}")

    def _copy(self, target: str, source: str, nbytes: int) -> None:
        if nbytes:
            size = self._amount(nbytes)
            pointers = f"ptr {target}, ptr {source}"
            self.lines.append(
                f"  call void @llvm.memcpy.p0.p0.i64({pointers}, i64 {size}, i1 false)"
            )

    def _new(self, value: str) -> str:
        self.names += 1
        self.lines.append(f"  %p{self.names} = {value}")
        return f"%p{self.names}"


def _code(place: int, reason: int) -> int:
    """What the entry returns where a step fails."""
    return (place + 1) << 8 | reason


def _quoted(symbol: str) -> str:
    if '"' in symbol or "\\" in symbol:
        raise InvalidIR(f"symbol {symbol!r} cannot be written in LLVM text")
    return symbol if symbol.replace("_", "a").isalnum() and symbol.isascii() else f'"{symbol}"'
