"""Reads graphs and regions from the text that `text.to_text` writes.

Line breaks mean nothing to the grammar; they only locate what is wrong.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from typing import Any, NoReturn, TypeVar

import numpy as np

from rooftile.core.affine import Affine, Dim, affine, dim
from rooftile.core.dtype import DTYPES, DType, from_numpy, kind, to_numpy
from rooftile.core.errors import InvalidIR
from rooftile.ir.graph.records import Array, Attr, Graph, Node, Region, Value, verify
from rooftile.ir.graph.text import digest

_TOKEN = re.compile(
    r"""(?P<space>\s+)
    |(?P<digest>sha256:[0-9a-f]+)
    |(?P<hex>0x[0-9a-f]+)
    |(?P<float>-?[0-9]+(?:\.[0-9]+(?:[eE][+-]?[0-9]+)?|[eE][+-]?[0-9]+)|-inf|-nan)
    |(?P<int>-?[0-9]+)
    |(?P<word>[A-Za-z_][A-Za-z0-9_.]*)
    |(?P<string>"(?:[^"\\\n]|\\.)*")
    |(?P<mark>[%:=,+*()\[\]{}])""",
    re.VERBOSE,
)
_WORDS = {"true": True, "false": False, "null": None, "inf": math.inf, "nan": math.nan}
T = TypeVar("T")


def parse(text: str, data: Mapping[str, Array] | None = None) -> Graph:
    """The graph of a text, verified. `data` holds large constants by digest or by name.

    InvalidIR names the line where the text breaks the grammar or lacks data.
    """
    reader = _Reader(text, data or {})
    graph = reader.graph()
    reader.expect_end()
    return verify(graph)


def parse_regions(text: str) -> tuple[Region, ...]:
    """The regions of a text; InvalidIR names the line where it breaks the grammar."""
    reader = _Reader(text, {})
    found = []
    while reader.at("region"):
        found.append(reader.region())
    reader.expect_end()
    return tuple(found)


def _tokens(text: str) -> list[tuple[str, str, int]]:
    """(group, text, line) of each token; the last is of group "end"."""
    found: list[tuple[str, str, int]] = []
    at, line = 0, 1
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise InvalidIR(f"line {line}: unexpected character {text[at]!r}")
        if match.lastgroup != "space":
            found.append((str(match.lastgroup), match.group(), line))
        line += match.group().count("\n")
        at = match.end()
    return [*found, ("end", "", line)]


class _Reader:
    """A recursive descent over the tokens; each method reads what it is named after."""

    def __init__(self, text: str, data: Mapping[str, Array]) -> None:
        self.data = data
        self.tokens = _tokens(text)
        self.next = 0

    def fail(self, problem: str) -> NoReturn:
        """InvalidIR with the line of the token that comes next."""
        raise InvalidIR(f"line {self.tokens[self.next][2]}: {problem}")

    def at(self, text: str) -> bool:
        """Whether the next token is this word or mark."""
        group, found, _ = self.tokens[self.next]
        return found == text and group in ("word", "mark")

    def take(self, *groups: str, wanted: str) -> str:
        """The next token's text, of one of the groups."""
        group, found, _ = self.tokens[self.next]
        if group not in groups:
            self.fail(f"expected {wanted}, found {repr(found) if found else 'the end'}")
        self.next += 1
        return found

    def skip(self, text: str) -> bool:
        """Step over a word or mark if it comes next."""
        if not self.at(text):
            return False
        self.next += 1
        return True

    def expect(self, text: str) -> None:
        """Step over a word or mark that must come next."""
        if not self.skip(text):
            found = self.tokens[self.next][1]
            self.fail(f"expected {text!r}, found {repr(found) if found else 'the end'}")

    def expect_end(self) -> None:
        """Nothing may follow."""
        self.take("end", wanted="the end")

    def listed(self, item: Callable[[], T], close: str) -> tuple[T, ...]:
        """Items between commas, and the closing mark."""
        found: list[T] = []
        while not self.skip(close):
            if found:
                self.expect(",")
            found.append(item())
        return tuple(found)

    def graph(self) -> Graph:
        self.expect("graph")
        name = self.word()
        inputs: list[Value] = []
        constants: dict[str, Array] = {}
        nodes: list[Node] = []
        outputs: list[str] = []
        while True:
            if self.skip("input"):
                inputs.append(self.value())
            elif self.skip("const"):
                value, array = self.constant()
                if value.name in constants:
                    self.fail(f"constant %{value.name} is given twice")
                constants[value.name] = array
            elif self.at("%"):
                nodes.append(self.node())
            elif self.skip("output"):
                outputs.append(self.ref())
                # In a body, the comma may be the one before the node's next attribute.
                while self.at(",") and self.tokens[self.next + 1][1] == "%":
                    self.next += 1
                    outputs.append(self.ref())
                break
            else:
                break
        return Graph(name, tuple(inputs), tuple(nodes), tuple(outputs), constants)

    def region(self) -> Region:
        self.expect("region")
        name, choice = self.word(), self.attrs()
        inputs: list[Value] = []
        nodes: list[Node] = []
        outputs: list[Value] = []
        while True:
            if self.skip("input"):
                inputs.append(self.value())
            elif self.at("%"):
                nodes.append(self.node())
            elif self.skip("output"):
                outputs.append(self.value())
            else:
                break
        return Region(name, tuple(nodes), tuple(inputs), tuple(outputs), choice)

    def node(self) -> Node:
        outputs = [self.value()]
        while self.skip(","):
            outputs.append(self.value())
        self.expect("=")
        op = self.word()
        self.expect("(")
        inputs = self.listed(self.ref, ")")
        attrs = self.attrs()
        origin: list[str] = []
        if self.skip("from"):
            origin.append(self.string())
            while self.tokens[self.next][0] == "string":
                origin.append(self.string())
        return Node(op, inputs, tuple(outputs), attrs, tuple(origin))

    def attrs(self) -> tuple[tuple[str, Attr], ...]:
        return self.listed(self.named_attr, "}") if self.skip("{") else ()

    def named_attr(self) -> tuple[str, Attr]:
        name = self.word()
        self.expect("=")
        return name, self.attr()

    def attr(self) -> Attr:
        if self.at("graph"):
            return self.graph()
        if self.skip("["):
            return self.listed(self.attr, "]")
        group, found, _ = self.tokens[self.next]
        if group == "string":
            return self.string()
        if group == "word" and found in _WORDS:
            self.next += 1
            return _WORDS[found]
        return self.number()

    def value(self) -> Value:
        name = self.ref()
        self.expect(":")
        dtype: DType = self.tokens[self.next][1]
        if dtype not in DTYPES:
            self.fail(f"{dtype!r} is no element type; the types are {', '.join(DTYPES)}")
        self.next += 1
        self.expect("[")
        return Value(name, self.listed(self.dim, "]"), dtype)

    def dim(self) -> Dim:
        total = self.term()
        while self.skip("+") or self.tokens[self.next][0] == "int":
            total = total + self.term()
        return dim(total)

    def term(self) -> Affine:
        if self.tokens[self.next][0] != "int":
            return affine(self.word())
        factor = self.integer()
        return affine(self.word()) * factor if self.skip("*") else affine(factor)

    def constant(self) -> tuple[Value, Array]:
        value = self.value()
        self.expect("=")
        if self.tokens[self.next][0] == "digest":
            return value, self.stored(value)
        self.expect("[")
        items = self.listed(lambda: self.element(value.dtype), "]")
        if len(items) != math.prod(value.dims):
            self.fail(
                f"constant %{value.name} has {math.prod(value.dims)} elements, not {len(items)}"
            )
        return value, np.array(items, to_numpy(value.dtype)).reshape(value.dims)

    def stored(self, value: Value) -> Array:
        """A large constant, found in the data and held against its digest."""
        wanted = self.tokens[self.next][1]
        array = self.data.get(wanted, self.data.get(value.name))
        if array is None:
            self.fail(f"constant %{value.name}: data holds neither {wanted} nor its name")
        if (from_numpy(array.dtype), array.shape) != (value.dtype, value.shape):
            self.fail(f"constant %{value.name}: data holds {array.dtype} {list(array.shape)}")
        if digest(array) != wanted:
            self.fail(f"constant %{value.name}: data holds {digest(array)}, not {wanted}")
        self.next += 1
        return array

    def element(self, dtype: DType) -> Any:
        """One element of an inline constant, as a numpy scalar of the type."""
        target = to_numpy(dtype)
        group = kind(dtype)
        if group == "float" and self.skip("nan"):
            if not self.skip("("):
                return np.asarray(math.nan).astype(target)[()]
            bits = self.take("hex", wanted="the bits of a NaN")
            self.expect(")")
            if int(bits, 16) >= 256**target.itemsize:
                self.fail(f"{bits} is too wide for {dtype}")
            return np.frombuffer(int(bits, 16).to_bytes(target.itemsize, "little"), target)[0]
        value = self.attr()
        fits = isinstance(value, bool if group == "bool" else (int, float))
        if not fits or (group in ("int", "uint") and isinstance(value, float)):
            self.fail(f"{value!r} is no element of {dtype}")
        if group in ("int", "uint"):
            limits: Any = np.iinfo(target)
            if not limits.min <= value <= limits.max:
                self.fail(f"{value} is outside {dtype}")
        return np.asarray(value).astype(target)[()]

    def ref(self) -> str:
        self.expect("%")
        return self.word()

    def word(self) -> str:
        if self.tokens[self.next][0] == "string":
            return self.string()
        return self.take("word", wanted="a name")

    def string(self) -> str:
        shown = self.take("string", wanted="a string")
        try:
            return str(json.loads(shown))
        except ValueError:
            self.next -= 1
            self.fail(f"{shown} is not a string in JSON's form")

    def integer(self) -> int:
        return int(self.take("int", wanted="an integer"))

    def number(self) -> int | float:
        if self.tokens[self.next][0] == "int":
            return self.integer()
        return float(self.take("float", wanted="a value"))
