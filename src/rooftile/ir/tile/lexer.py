"""Lines and tokens of the tile IR's text."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from rooftile.core.errors import InvalidIR

_TOKEN = re.compile(
    r"\s*(?:(?P<number>\d+(?:\.\d*)?(?:e[+-]?\d+)?)|(?P<name>[A-Za-z_]\w*)"
    r"|(?P<sign>:=|->|[\[\](),:=</%+*@-]))"
)


@dataclass(frozen=True)
class Line:
    """A line that is not empty: its `number` from 1, its `indent` in spaces, its text."""

    number: int
    indent: int
    text: str


def split(text: str) -> list[Line]:
    """The lines of a text without comments and empty lines; InvalidIR if nothing is left."""
    lines = []
    for number, raw in enumerate(text.splitlines(), 1):
        content = raw.split("#", 1)[0].rstrip()
        if content:
            indent = len(content) - len(content.lstrip())
            lines.append(Line(number, indent, content.strip()))
    if not lines:
        raise InvalidIR("line 1: the text is empty; a kernel starts with `kernel NAME`")
    return lines


class Cursor:
    """Reads the tokens of one line. Every error names the line and shows it."""

    def __init__(self, line: Line) -> None:
        self.line = line
        self.tokens: list[tuple[str, str]] = []
        self.at = 0
        position = 0
        while position < len(line.text):
            found = _TOKEN.match(line.text, position)
            if found is None:
                raise self.error(f"unexpected character {line.text[position:].strip()[:1]!r}")
            self.tokens.append((str(found.lastgroup), found.group(str(found.lastgroup))))
            position = found.end()

    def error(self, message: str) -> InvalidIR:
        """An InvalidIR for this line, to be raised."""
        return InvalidIR(f"line {self.line.number}: {message} in: {self.line.text}")

    def peek(self) -> str:
        """The next token, "" at the end."""
        return self.tokens[self.at][1] if self.at < len(self.tokens) else ""

    def take(self) -> str:
        """The next token, consumed."""
        token = self.peek()
        self.at += 1
        return token

    def accept(self, token: str) -> bool:
        """Consume the next token if it is `token`."""
        found = self.peek() == token
        self.at += found
        return found

    def expect(self, token: str) -> None:
        """Consume `token` or fail."""
        if not self.accept(token):
            raise self.error(f"expected {token!r}, found {self.peek() or 'the end'!r}")

    def end(self) -> None:
        """Fail unless the line is used up."""
        if self.peek():
            raise self.error(f"unexpected {self.peek()!r} at the end")

    def is_number(self) -> bool:
        """Whether the next token is an unsigned number."""
        return self.at < len(self.tokens) and self.tokens[self.at][0] == "number"

    def name(self, what: str) -> str:
        """A name; `what` says in the error what is missing."""
        if self.at >= len(self.tokens) or self.tokens[self.at][0] != "name":
            raise self.error(f"expected {what}, found {self.peek() or 'the end'!r}")
        return self.take()

    def integer(self) -> int:
        """An unsigned integer."""
        if not self.peek().isdecimal():
            raise self.error(f"expected an integer, found {self.peek() or 'the end'!r}")
        return int(self.take())

    def number(self) -> float:
        """A signed integer or float; inf and nan are numbers."""
        sign = -1 if self.accept("-") else 1
        token = self.take()
        if token in ("inf", "nan"):
            return sign * math.inf if token == "inf" else math.nan
        if token.isdecimal():
            return sign * int(token)
        try:
            return sign * float(token)
        except ValueError:
            raise self.error(f"expected a number, found {token or 'the end'!r}") from None
