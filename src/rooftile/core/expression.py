"""Polynomials read from their text: sums, products, and quotients rounded down."""

from __future__ import annotations

import re

from rooftile.core.poly import Poly, constant, divided, plus, poly_of, times

_TOKEN = re.compile(r"\s*([0-9]+|[A-Za-z_][A-Za-z0-9_.]*|//|[-+*()])")
MOST_NESTED = 50


def parsed(text: str) -> Poly:
    """The polynomial that a text such as `2*N+(M-1)//2` stands for.

    ValueError says what is wrong with it.
    """
    tokens = _tokens(text)
    reader = _Reader(tokens)
    found = reader.total()
    if reader.at < len(tokens):
        raise ValueError(f"{tokens[reader.at]!r} was not expected in {text!r}")
    return found


def _tokens(text: str) -> list[str]:
    found, at = [], 0
    text = text.rstrip()
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise ValueError(f"{text[at]!r} is no part of an expression: {text!r}")
        found.append(match[1])
        at = match.end()
    return found


class _Reader:
    """A place in a row of tokens; each method reads what it is named after."""

    def __init__(self, tokens: list[str]) -> None:
        self.tokens = tokens
        self.at = 0
        self.depth = 0

    def total(self) -> Poly:
        found = constant(0)
        sign = -1 if self._accept("-") else 1
        while True:
            found = plus(found, self.product(), sign)
            if self._accept("+"):
                sign = -1 if self._accept("-") else 1
            elif self._accept("-"):
                sign = -1
            else:
                return found

    def product(self) -> Poly:
        found = self.factor()
        while True:
            if self._accept("*"):
                found = times(found, self.factor())
            elif self._accept("//"):
                found = divided(found, self.factor())
            else:
                return found

    def factor(self) -> Poly:
        if self._accept("("):
            self.depth += 1
            if self.depth > MOST_NESTED:
                raise ValueError(f"an expression nests more than {MOST_NESTED} deep")
            found = self.total()
            self.depth -= 1
            if not self._accept(")"):
                raise ValueError("an expression lacks a closing parenthesis")
            return found
        token = self.tokens[self.at] if self.at < len(self.tokens) else "its end"
        self.at += 1
        if token.isdigit():
            return constant(int(token))
        if (not token[0].isalpha() and token[0] != "_") or token == "its end":
            raise ValueError(f"an expression needs a number or name, not {token!r}")
        return poly_of({(token,): 1})

    def _accept(self, token: str) -> bool:
        if self.at < len(self.tokens) and self.tokens[self.at] == token:
            self.at += 1
            return True
        return False
