"""Reads one line of a program's text, token by token. Every error names the line and shows it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, TypeVar

from rooftile.core.errors import InvalidIR
from rooftile.core.expression import parsed
from rooftile.core.symbolic import Sym, Symbols

PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*")
"""Names that are printed without quotes."""
WRITTEN = "out"
"""The word that marks a written argument; a buffer of that name is quoted."""

_INTEGER = re.compile(r"-?[0-9]{1,19}")
_EXPRESSION = re.compile(r"\{([^{}]*)\}")
_DECODER = json.JSONDecoder()
T = TypeVar("T")


class Cursor:
    """A place in one line, from its start to its end; `symbols` are those of its expressions."""

    def __init__(self, number: int, text: str, symbols: Symbols) -> None:
        self.number = number
        self.text = text
        self.symbols = symbols
        self.at = 0

    def error(self, message: str) -> InvalidIR:
        """An InvalidIR for this line, to be raised."""
        shown = self.text if len(self.text) <= 120 else self.text[:117] + "..."
        return InvalidIR(f"line {self.number}: {message} in: {shown}")

    def accept(self, token: str) -> bool:
        """Consume `token`, a whole word or a sign, if it comes next."""
        self._skip()
        word = PLAIN.match(self.text, self.at)
        if (word.group() if word else self.text[self.at : self.at + len(token)]) != token:
            return False
        self.at += len(token)
        return True

    def expect(self, token: str) -> None:
        """Consume `token` or fail."""
        if not self.accept(token):
            raise self.error(f"expected {token!r}, found {self._next()}")

    def end(self) -> None:
        """Fail unless the line is used up."""
        self._skip()
        if self.at < len(self.text):
            raise self.error(f"unexpected {self._next()}")

    def word(self) -> str:
        """A word without quotes."""
        return self._match(PLAIN, "a word")

    def integer(self) -> int:
        """A signed integer, or in braces one that a run computes from the symbols."""
        self._skip()
        if self.text.startswith("{", self.at):
            return self.expression()
        return int(self._match(_INTEGER, "an integer"))

    def expression(self) -> int:
        """An expression in braces."""
        text = self._match(_EXPRESSION, "an expression in braces")[1:-1]
        try:
            poly = parsed(text)
        except ValueError as error:
            raise self.error(str(error)) from None
        unknown = poly.names - self.symbols.values.keys()
        if unknown:
            raise self.error(f"no line before gives the symbol {min(unknown)}")
        found: int = Sym(self.symbols, poly)
        return found

    def name(self) -> str:
        """A word, or any name as a JSON string."""
        self._skip()
        return str(self.json(str)) if self.text.startswith('"', self.at) else self.word()

    def json(self, kind: type[T]) -> T:
        """A JSON value of the given Python type."""
        self._skip()
        try:
            value, self.at = _DECODER.raw_decode(self.text, self.at)
        except (ValueError, RecursionError) as error:
            raise self.error(f"expected JSON ({error})") from None
        if not isinstance(value, kind):
            raise self.error(f"expected a JSON {kind.__name__}, found {type(value).__name__}")
        return value

    def several(self, close: str, read: Callable[[Cursor], Any]) -> list[Any]:
        """What `read` finds, separated by commas, up to the sign `close`."""
        found: list[Any] = []
        if self.accept(close):
            return found
        found.append(read(self))
        while self.accept(","):
            found.append(read(self))
        self.expect(close)
        return found

    def _match(self, pattern: re.Pattern[str], what: str) -> str:
        self._skip()
        found = pattern.match(self.text, self.at)
        if found is None:
            raise self.error(f"expected {what}, found {self._next()}")
        self.at = found.end()
        return found.group()

    def _skip(self) -> None:
        while self.text.startswith(" ", self.at):
            self.at += 1

    def _next(self) -> str:
        return (
            repr(self.text[self.at : self.at + 20].split(" ")[0])
            if self.text[self.at :]
            else ("the end of the line")
        )
