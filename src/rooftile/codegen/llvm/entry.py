"""Program -> LLVM text of the native entry: one function that runs the steps in order."""

from __future__ import annotations

from collections.abc import Mapping

from rooftile.core.errors import InvalidIR
from rooftile.ir.program import Arg, Copy, Launch, Program
from rooftile.ir.program.records import segment_symbol

_HEADER = "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)"


def entry_text(
    program: Program, kernel_symbols: Mapping[str, str], name: str = "rooftile_entry"
) -> str:
    """LLVM text of `i32 @name(ptr inputs, ptr outputs, ptr arena, ptr constants)`.

    `inputs` and `outputs` are arrays of pointers in the order of the program's ports. The result
    is 0, or `(step + 1) << 8 | code` of the first kernel that returned a code other than 0: the
    steps behind it do not run. `kernel_symbols` gives the symbol of each kernel; a kernel is
    `i32 @symbol(ptr...)`. Where host calls cut the program, each run of native steps between them
    is a function of its own, named by `segment_symbol`. InvalidIR for a kernel without a symbol.
    """
    symbols: dict[str, str] = {}
    for launch in program.launches:
        symbol = kernel_symbols.get(launch.kernel)
        if symbol is None:
            raise InvalidIR(f"{program.name}: kernel {launch.kernel!r} has no symbol")
        pointers = ", ".join(["ptr"] * len(launch.args))
        declared = symbols.setdefault(symbol, pointers)
        if declared != pointers:
            raise InvalidIR(f"{program.name}: kernel {launch.kernel!r} is called with two arities")
    lines = [_HEADER]
    lines += [f"declare i32 @{_quoted(symbol)}({args})" for symbol, args in symbols.items()]
    for index in range(len(program.segments)):
        lines += ["", *_Segment(program, kernel_symbols, index).function(name)]
    return "\n".join(lines) + "\n"


class _Segment:
    """Writes the function of one run of native steps."""

    def __init__(self, program: Program, kernel_symbols: Mapping[str, str], index: int) -> None:
        self.program = program
        self.kernel_symbols = kernel_symbols
        self.index = index
        self.lines: list[str] = []
        self.names = 0
        self.failures: list[int] = []
        self.inputs = {port.buffer: place for place, port in enumerate(program.inputs)}

    def function(self, name: str) -> list[str]:
        """The lines of the function."""
        start, stop = self.program.segments[self.index]
        for place in range(start, stop):
            self.step(place)
        if self.index == len(self.program.segments) - 1:
            for place in self.program.copied_outputs:
                port = self.program.outputs[place]
                target = self._element("%outputs", place)
                self._copy(target, self._pointer(Arg(port.buffer)), port.nbytes)
        symbol = _quoted(segment_symbol(name, self.index))
        header = f"define i32 @{symbol}(ptr %inputs, ptr %outputs, ptr %arena, ptr %constants) {{"
        return [header, "entry:", *self.lines, "  ret i32 0", *self._failure(), "}"]

    def step(self, place: int) -> None:
        """The call or copy of one step."""
        step = self.program.steps[place]
        if isinstance(step, Copy):
            self._copy(self._pointer(step.dst), self._pointer(step.src), step.nbytes)
        elif isinstance(step, Launch):
            args = ", ".join(f"ptr {self._pointer(arg)}" for arg in step.args)
            symbol = _quoted(self.kernel_symbols[step.kernel])
            self.failures.append(place)
            self.lines += [
                f"  %code{place} = call i32 @{symbol}({args})",
                f"  %bad{place} = icmp ne i32 %code{place}, 0",
                f"  br i1 %bad{place}, label %fail{place}, label %after{place}",
                f"after{place}:",
            ]

    def _failure(self) -> list[str]:
        """Blocks that turn the code of a kernel into the code of the entry."""
        lines: list[str] = []
        for place in self.failures:
            lines += [
                f"fail{place}:",
                f"  %low{place} = and i32 %code{place}, 255",
                f"  %result{place} = or i32 %low{place}, {(place + 1) << 8}",
                f"  ret i32 %result{place}",
            ]
        return lines

    def _pointer(self, arg: Arg) -> str:
        buffer = self.program.by_name[arg.buffer]
        if buffer.space == "constant":
            return self._offset("%constants", buffer.offset + arg.offset)
        if buffer.in_arena:
            return self._offset("%arena", buffer.offset + arg.offset)
        if buffer.space == "input":
            return self._offset(self._element("%inputs", self.inputs[buffer.name]), arg.offset)
        place = self.program.output_place[buffer.name]
        return self._offset(self._element("%outputs", place), arg.offset)

    def _element(self, array: str, place: int) -> str:
        """The pointer at a place of an array of pointers."""
        address = self._offset(array, place, "ptr")
        return self._new(f"load ptr, ptr {address}")

    def _offset(self, base: str, count: int, unit: str = "i8") -> str:
        return self._new(f"getelementptr {unit}, ptr {base}, i64 {count}") if count else base

    def _copy(self, target: str, source: str, nbytes: int) -> None:
        if nbytes:
            pointers = f"ptr {target}, ptr {source}"
            self.lines.append(
                f"  call void @llvm.memcpy.p0.p0.i64({pointers}, i64 {nbytes}, i1 false)"
            )

    def _new(self, value: str) -> str:
        self.names += 1
        self.lines.append(f"  %p{self.names} = {value}")
        return f"%p{self.names}"


def _quoted(symbol: str) -> str:
    if '"' in symbol or "\\" in symbol:
        raise InvalidIR(f"symbol {symbol!r} cannot be written in LLVM text")
    return symbol if symbol.replace("_", "a").isalnum() and symbol.isascii() else f'"{symbol}"'
