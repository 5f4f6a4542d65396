"""Program IR as text: `to_text` prints a program, `parse` reads it back to an equal program.

One line a buffer, port or step. A name that is not a plain word is a JSON string; facts and
attributes are JSON, so any value that JSON holds survives. A number that a run computes from the
symbols is an expression in braces; the symbols, with the values at hand, and what was assumed of
them come first.
"""

from __future__ import annotations

import json
from dataclasses import asdict, fields, replace
from typing import Any

from rooftile.core.dtype import DTYPES
from rooftile.core.errors import InvalidIR
from rooftile.core.symbolic import Guard, Sym, Symbols
from rooftile.ir.program.cursor import PLAIN, WRITTEN, Cursor
from rooftile.ir.program.records import (
    SPACES,
    Arg,
    Buffer,
    Copy,
    HostCall,
    KernelFacts,
    Launch,
    Loop,
    Port,
    Program,
    Split,
    Step,
)

_FACTS = [field.name for field in fields(KernelFacts)]


def to_text(program: Program) -> str:
    """The program as text; ends with a newline."""
    lines = [f"program {_name(program.name)}"]
    sizes = (program.arena_bytes, program.lower_bound_bytes, program.no_reuse_bytes)
    lines.append("  arena {} bound {} no_reuse {}".format(*sizes))
    lines += [f"  threads {program.threads}"] if program.threads != 1 else []
    symbols = program.symbols
    if symbols is not None:
        lines += [f"  symbol {name} {value}" for name, value in symbols.values.items()]
        lines += [f"  guard {{{g.poly}}} {'==' if g.equal else '>='} 0" for g in symbols.guards]
    lines += [f"  number {_name(name)} {_integer(value)}" for name, value in program.numbers]
    for buffer in program.buffers:
        place = f"{_integer(buffer.nbytes)} at {_integer(buffer.offset)} align {buffer.align}"
        lines.append(f"  buffer {_name(buffer.name)} {buffer.space} {place}")
    lines += [f"  input {_port(port)}" for port in program.inputs]
    lines += [f"  output {_port(port)}" for port in program.outputs]
    for step in program.steps:
        lines += [f"  {line}" for line in _step(step)]
    return "\n".join(lines) + "\n"


def parse(text: str) -> Program:
    """The program that a text stands for; InvalidIR names the line. It is not yet verified."""
    symbols = Symbols()
    lines = [
        Cursor(number, line.strip(), symbols)
        for number, line in enumerate(text.split("\n"), 1)
        if line.strip() and not line.lstrip().startswith("#")
    ]
    if not lines:
        raise InvalidIR("line 1: the text is empty; a program starts with `program NAME`")
    reader = _Reader()
    lines[0].expect("program")
    name = lines[0].name()
    lines[0].end()
    for line in lines[1:]:
        reader.read(line)
        line.end()
    if reader.open:
        raise lines[-1].error(f"loop {reader.open[-1][0].name!r} has no end")
    inputs, outputs = tuple(reader.inputs), tuple(reader.outputs)
    buffers, steps = tuple(reader.buffers), tuple(reader.steps)
    numbers = tuple(reader.numbers)
    return Program(name, inputs, outputs, buffers, steps, *reader.sizes, numbers, reader.threads)


def _name(name: str) -> str:
    return name if PLAIN.fullmatch(name) and name != WRITTEN else json.dumps(name)


def _integer(value: int) -> str:
    return f"{{{value}}}" if isinstance(value, Sym) else str(value)


def _arg(arg: Arg) -> str:
    offset = f"+{_integer(arg.offset)}" if arg.offset != 0 else ""
    return _name(arg.buffer) + offset + (f" by {_integer(arg.step)}" if arg.step != 0 else "")


def _port(port: Port) -> str:
    shape = ", ".join(map(_integer, port.shape))
    return f"{_name(port.name)} = {_name(port.buffer)}[{shape}] {port.dtype}"


def _step(step: Step) -> list[str]:
    if isinstance(step, Copy):
        return [f"copy {_arg(step.src)} -> {_arg(step.dst)} {_integer(step.nbytes)}"]
    if isinstance(step, Loop):
        body = [f"  {line}" for inner in step.body for line in _step(inner)]
        return [f"loop {_name(step.name)} {_integer(step.trip)}", *_facts(step.facts), *body, "end"]
    if isinstance(step, HostCall):
        inputs, outputs = (", ".join(map(_port, ports)) for ports in (step.inputs, step.outputs))
        lines = [f"host {_name(step.function)}({inputs}) -> ({outputs})"]
        lines += [f"  attrs {json.dumps(dict(step.attrs))}"] if step.attrs else []
        return lines + ([f"  origin {json.dumps(step.origin)}"] if step.origin else [])
    args = ", ".join(
        (f"{WRITTEN} " if place in step.writes else "") + _arg(arg)
        for place, arg in enumerate(step.args)
    )
    numbers = f" numbers {json.dumps(step.numbers)}" if step.numbers else ""
    split = ""
    if step.split is not None:
        split = f" split {_integer(step.split.tiles)} {step.split.seconds!r} {step.split.scratch}"
    return [f"launch {_name(step.kernel)}({args}){numbers}{split}", *_facts(step.facts)]


def _facts(facts: KernelFacts) -> list[str]:
    if facts == KernelFacts():
        return []
    return [f"  facts {json.dumps(asdict(facts) | {'schedule': dict(facts.schedule)})}"]


class _Reader:
    """Collects the parts of a program, line by line."""

    def __init__(self) -> None:
        self.sizes = (0, 0, 0)
        self.threads = 1
        self.numbers: list[tuple[str, int]] = []
        self.inputs: list[Port] = []
        self.outputs: list[Port] = []
        self.buffers: list[Buffer] = []
        self.steps: list[Step] = []
        self.open: list[tuple[Loop, list[Step]]] = []

    def read(self, line: Cursor) -> None:
        """One line behind the first."""
        word = line.word()
        if word == "arena":
            arena = line.integer()
            line.expect("bound")
            bound = line.integer()
            line.expect("no_reuse")
            self.sizes = (arena, bound, line.integer())
        elif word == "threads":
            self.threads = line.integer()
        elif word == "symbol":
            self._symbol(line)
        elif word == "guard":
            self._guard(line)
        elif word == "number":
            self.numbers.append((line.name(), line.integer()))
        elif word == "buffer":
            self.buffers.append(_read_buffer(line))
        elif word in ("input", "output"):
            (self.inputs if word == "input" else self.outputs).append(_read_port(line))
        elif word == "launch":
            self.steps.append(_read_launch(line))
        elif word == "host":
            self.steps.append(_read_host(line))
        elif word == "copy":
            src = _read_arg(line)
            line.expect("->")
            self.steps.append(Copy(src, _read_arg(line), line.integer()))
        elif word == "loop":
            self.open.append((Loop(line.name(), line.integer(), ()), self.steps))
            self.steps = []
        elif word == "end" and self.open:
            loop, before = self.open.pop()
            self.steps = [*before, replace(loop, body=tuple(self.steps))]
        elif word in ("facts", "attrs", "origin"):
            self._amend(word, line)
        else:
            raise line.error(f"no line starts with {word!r}")

    def _symbol(self, line: Cursor) -> None:
        name, value = line.word(), line.integer()
        if isinstance(value, Sym):
            raise line.error("the value of a symbol is a number")
        line.symbols.values[name] = value

    def _guard(self, line: Cursor) -> None:
        found: Any = line.expression()
        equal = line.accept("==")
        if not equal:
            line.expect(">=")
        line.expect("0")
        if not isinstance(found, Sym):
            raise line.error("a guard is about symbols")
        line.symbols.guards[Guard(found.poly, equal)] = None

    def _amend(self, word: str, line: Cursor) -> None:
        """Facts, attributes or origin of the step on the line before."""
        step = self.steps[-1] if self.steps else None
        if word == "facts" and isinstance(step, Launch):
            self.steps[-1] = replace(step, facts=_read_facts(line))
        elif word == "facts" and step is None and self.open:
            loop, before = self.open.pop()
            self.open.append((replace(loop, facts=_read_facts(line)), before))
        elif word != "facts" and isinstance(step, HostCall):
            attrs, origin = step.attrs, step.origin
            if word == "attrs":
                attrs = tuple((k, _frozen(v)) for k, v in line.json(dict).items())
            else:
                origin = tuple(map(str, line.json(list)))
            self.steps[-1] = HostCall(step.function, step.inputs, step.outputs, attrs, origin)
        else:
            raise line.error(f"{word} belong behind a {'launch' if word == 'facts' else 'host'}")


def _read_buffer(line: Cursor) -> Buffer:
    name = line.name()
    word = line.word()
    space = next((space for space in SPACES if space == word), None)
    if space is None:
        raise line.error(f"{word!r} is none of the spaces {', '.join(SPACES)}")
    nbytes = line.integer()
    line.expect("at")
    offset = line.integer()
    line.expect("align")
    return Buffer(name, nbytes, space, offset, line.integer())


def _read_port(line: Cursor) -> Port:
    name = line.name()
    line.expect("=")
    buffer = line.name()
    line.expect("[")
    shape = line.several("]", Cursor.integer)
    dtype = line.word()
    if dtype not in DTYPES:
        raise line.error(f"{dtype!r} is no element type")
    return Port(name, buffer, tuple(shape), dtype)


def _read_arg(line: Cursor) -> Arg:
    name = line.name()
    offset = line.integer() if line.accept("+") else 0
    return Arg(name, offset, line.integer() if line.accept("by") else 0)


def _read_launch(line: Cursor) -> Launch:
    kernel = line.name()
    line.expect("(")
    pairs = line.several(")", lambda at: (at.accept(WRITTEN), _read_arg(at)))
    writes = tuple(place for place, (written, _) in enumerate(pairs) if written)
    numbers = tuple(map(str, line.json(list))) if line.accept("numbers") else ()
    split = _read_split(line) if line.accept("split") else None
    args = tuple(arg for _, arg in pairs)
    return Launch(kernel, args, writes=writes, numbers=numbers, split=split)


def _read_split(line: Cursor) -> Split:
    return Split(line.integer(), line.json(float), line.integer())


def _read_host(line: Cursor) -> HostCall:
    function = line.name()
    line.expect("(")
    inputs = line.several(")", _read_port)
    line.expect("->")
    line.expect("(")
    return HostCall(function, tuple(inputs), tuple(line.several(")", _read_port)))


def _read_facts(line: Cursor) -> KernelFacts:
    found = line.json(dict)
    if set(found) != set(_FACTS):
        raise line.error(f"facts are {', '.join(_FACTS)}")
    facts: dict[str, Any] = {}
    for name, default in vars(KernelFacts()).items():
        value = found[name]
        if name == "schedule":
            value = list(value.items()) if isinstance(value, dict) else None
        kind = (int, float) if isinstance(default, float) else type(default)
        facts[name] = _frozen(value)
        if not isinstance(facts[name], kind):
            raise line.error(f"{name} has the wrong type")
    return KernelFacts(**facts)


def _frozen(value: Any) -> Any:
    """A JSON value with tuples for lists."""
    return tuple(map(_frozen, value)) if isinstance(value, (list, tuple)) else value
