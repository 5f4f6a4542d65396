"""Patterns of RE2 matched in time that grows with the text alone.

Python's matcher goes back over the text, for some patterns an exponential number of times. Here a
pattern becomes a machine whose states are all followed at once; sets of states that were met are
kept with what each character makes of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from rooftile.core.errors import InvalidInput

MAX_STATES = 10_000
"""Patterns of more states are refused: repeated repetitions grow fast."""
MAX_WORK = 1 << 24
"""States that may be entered anew while one text is matched."""
MAX_DEPTH = 100
MAX_REPEAT = 1000
"""As in RE2."""
_BEGIN, _END, _EDGE, _INSIDE = "begin", "end", "edge", "inside"
_ASSERTIONS = {"^": _BEGIN, "$": _END, "\\A": _BEGIN, "\\z": _END, "\\b": _EDGE, "\\B": _INSIDE}
_POSIX = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "blank": "\\t ",
    "digit": "0-9",
    "lower": "a-z",
    "punct": "!-/:-@\\[-`{-~",
    "space": "\\t\\n\\v\\f\\r ",
    "upper": "A-Z",
    "word": "0-9A-Za-z_",
    "xdigit": "0-9A-Fa-f",
}
_REPEAT = re.compile(r"\{(\d+)(,(\d*))?\}")
_CLASS = re.compile(r"\[\^?\]?(?:\[:\w+:\]|\\.|[^\]\\])*\]", re.DOTALL)
_ESCAPE = re.compile(r"\\(?:x[0-9A-Fa-f]{2}|x\{[0-9A-Fa-f]+\}|.)", re.DOTALL)


@dataclass
class _State:
    """Goes on to `after`: behind a character it `accepts`, where an assertion holds, or freely."""

    after: list[int] = field(default_factory=list)
    accepts: Callable[[str], object] | None = None
    holds: str = ""


@dataclass(frozen=True)
class _Set:
    """States that a text has led to, and what stands before the next character."""

    states: frozenset[int]
    word: bool
    begins: bool


class Pattern:
    """A pattern ready to match; InvalidInput for one that is not understood or too large."""

    def __init__(self, text: str) -> None:
        self._states: list[_State] = []
        self._next: dict[tuple[_Set, str], _Set] = {}
        parser = _Parser(text)
        tree = parser.alternatives(0)
        if parser.place < len(text):
            raise parser.refused("an unmatched )")
        self._goal = self._state(_State())
        self._start = self._built(tree, self._goal)

    def matches(self, text: str) -> bool:
        """Whether a text as a whole is of the pattern."""
        here = _Set(frozenset((self._start,)), False, True)
        work = 0
        for character in text:
            found = self._next.get((here, character))
            if found is None:
                work += len(here.states)
                if work > MAX_WORK:
                    raise InvalidInput("the pattern takes too long on a text")
                found = self._step(here, character)
                if len(self._next) > MAX_STATES:
                    self._next.clear()
                self._next[here, character] = found
            here = found
            if not here.states:
                return False
        return self._goal in self._closure(here, "")

    def _step(self, here: _Set, character: str) -> _Set:
        found: set[int] = set()
        for number in self._closure(here, character):
            state = self._states[number]
            if state.accepts is not None and state.accepts(character):
                found.update(state.after)
        return _Set(frozenset(found), _is_word(character), False)

    def _closure(self, here: _Set, character: str) -> set[int]:
        """The states reached before the next character; "" stands for the end."""
        edge = here.word != _is_word(character)
        true = {_BEGIN: here.begins, _END: not character, _EDGE: edge, _INSIDE: not edge}
        found = set(here.states)
        left = list(found)
        while left:
            state = self._states[left.pop()]
            if state.accepts is None and true.get(state.holds, True):
                new = [number for number in state.after if number not in found]
                found.update(new)
                left += new
        return found

    def _state(self, state: _State) -> int:
        self._states.append(state)
        if len(self._states) > MAX_STATES:
            raise InvalidInput(f"a pattern of more than {MAX_STATES} states is too large")
        return len(self._states) - 1

    def _built(self, tree: _Tree, after: int) -> int:
        """The first state of what matches the tree and goes on to `after`."""
        if tree.kind == "one":
            return self._state(_State([after], tree.accepts))
        if tree.kind == "assert":
            return self._state(_State([after], None, tree.holds))
        if tree.kind == "all":
            for part in reversed(tree.parts):
                after = self._built(part, after)
            return after
        if tree.kind == "any":
            return self._state(_State([self._built(part, after) for part in tree.parts]))
        [part] = tree.parts
        if tree.most is None:
            loop = self._state(_State())
            self._states[loop].after = [self._built(part, loop), after]
            after = loop
        else:
            end = after
            for _ in range(tree.most - tree.least):
                after = self._state(_State([self._built(part, after), end]))
        for _ in range(tree.least):
            after = self._built(part, after)
        return after


@dataclass(frozen=True)
class _Tree:
    """One character, an assertion, parts in order (all) or one of them (any), or a repetition."""

    kind: str
    parts: tuple[_Tree, ...] = ()
    accepts: Callable[[str], object] | None = None
    holds: str = ""
    least: int = 0
    most: int | None = None


class _Parser:
    def __init__(self, text: str) -> None:
        self.text, self.place, self.flags = text, 0, re.ASCII

    def refused(self, problem: str) -> InvalidInput:
        """The error about the pattern at the present place."""
        return InvalidInput(
            f"pattern {self.text[:100]!r} is not understood: {problem} at character {self.place}"
        )

    def alternatives(self, depth: int) -> _Tree:
        """Up to the end of the group."""
        if depth > MAX_DEPTH:
            raise self.refused("groups nested too deep")
        flags, found = self.flags, [self._sequence(depth)]
        while self._takes("|"):
            found.append(self._sequence(depth))
        self.flags = flags
        return found[0] if len(found) == 1 else _Tree("any", tuple(found))

    def _sequence(self, depth: int) -> _Tree:
        return _Tree("all", tuple(self._pieces(depth)))

    def _pieces(self, depth: int) -> Iterator[_Tree]:
        while self.place < len(self.text) and self.text[self.place] not in "|)":
            piece = self._atom(depth)
            bounds = self._repetition()
            if bounds is not None:
                piece = _Tree("repeat", (piece,), least=bounds[0], most=bounds[1])
                self._takes("?")  # lazy: of no matter to whether the whole matches
                if self._repetition() is not None:
                    raise self.refused("a repetition of a repetition")
            yield piece

    def _repetition(self) -> tuple[int, int | None] | None:
        for sign, bounds in (("*", (0, None)), ("+", (1, None)), ("?", (0, 1))):
            if self._takes(sign):
                return bounds
        found = _REPEAT.match(self.text, self.place)
        if found is None:
            return None
        least = int(found[1])
        most = least if found[2] is None else int(found[3]) if found[3] else None
        if max(least, most or 0) > MAX_REPEAT or (most is not None and most < least):
            raise self.refused(f"more than {MAX_REPEAT} repetitions, or an empty range")
        self.place = found.end()
        return least, most

    def _atom(self, depth: int) -> _Tree:
        if self._takes("("):
            return self._group(depth)
        for sign, kind in _ASSERTIONS.items():
            if self._takes(sign):
                return _Tree("assert", holds=kind)
        start = self.text[self.place]
        if start in "*+?":
            raise self.refused("nothing to repeat")
        form = {"[": _CLASS, "\\": _ESCAPE}.get(start)
        found = form.match(self.text, self.place) if form else None
        if form and not found:
            raise self.refused("an unfinished class or escape")
        atom = found[0] if found else start
        self._check_escape(atom)
        self.place += len(atom)
        return _Tree("one", accepts=self._accepts(atom))

    def _group(self, depth: int) -> _Tree:
        found = re.compile(r"\?(?:P?<\w+>|([imsU-]*)(:|\)))").match(self.text, self.place)
        if self.text.startswith("?", self.place) and found is None:
            raise self.refused("a group of a kind that RE2 does not have")
        outer = self.flags
        if found is not None:
            self.place = found.end()
            on, _, off = (found[1] or "").partition("-")
            self.flags = (self.flags | _flags(on)) & ~_flags(off)
            if found[2] == ")":  # to the end of the group around it
                return _Tree("all")
        inner = self.alternatives(depth + 1)
        self.flags = outer
        if not self._takes(")"):
            raise self.refused("a missing )")
        return inner

    def _accepts(self, atom: str) -> Callable[[str], object]:
        for name, members in _POSIX.items():
            atom = atom.replace(f"[:{name}:]", members)
        atom = re.sub(r"\\x\{([0-9A-Fa-f]+)\}", lambda m: re.escape(chr(int(m[1], 16))), atom)
        escaped = atom if atom[0] in "[\\." else re.escape(atom)
        try:
            return re.compile(escaped, self.flags).fullmatch
        except (re.error, OverflowError, ValueError) as error:
            raise self.refused(str(error)) from error

    def _check_escape(self, atom: str) -> None:
        if atom[0] == "\\" and atom[1].isalnum() and atom[1] not in "dDsSwWafnrtvx":
            raise self.refused(f"the escape {atom}")

    def _takes(self, sign: str) -> bool:
        if not self.text.startswith(sign, self.place):
            return False
        self.place += len(sign)
        return True


def _flags(letters: str) -> re.RegexFlag:
    known = {"i": re.IGNORECASE, "s": re.DOTALL}
    found = re.RegexFlag(0)
    for letter in letters:
        found |= known.get(letter, re.RegexFlag(0))
    return found


def _is_word(character: str) -> bool:
    return character == "_" or (character.isascii() and character.isalnum())
