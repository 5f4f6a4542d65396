"""Patterns of RE2 against Python's matcher, in time that no pattern makes explode."""

from __future__ import annotations

import random
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rooftile.core.errors import InvalidInput
from rooftile.host import regex
from rooftile.host.regex import Pattern

PATTERNS = (
    *(
        "",
        "()",
        "a",
        "a|",
        "a|b|",
        "a*b",
        "(a|b)*c",
        "[a-c]+\\d",
        "^ab$",
        "a{2,3}",
        "a{2}",
        "a{1,}",
    ),
    *("(?i)Ab", "(?i:a)b", "x?y??z", "\\bab\\b", "a\\Bb", "a.c", "(?s)a.c", "(?s-i:a).", "[^a]b"),
    *(
        "[]a]",
        "[\\]a]",
        "(a+)+b",
        "(ab|cd){0,2}e",
        "\\w+\\s\\w+",
        "(?P<n>a)b",
        "\\.",
        "[.]",
        "\\x41",
    ),
    *(
        "(?:a|b)+?",
        "$a",
        "a^",
        "\\Aab",
        "((a)(b)?)*",
        "a{0}b",
        "(a|b){2}(c|)",
        "[A-Z_]{1,3}",
        "\\n",
    ),
)


@given(st.sampled_from(PATTERNS), st.text("abcdexyzAB1_ \n.]", max_size=8))
def test_whole_texts_match_as_in_python(pattern: str, text: str) -> None:
    wanted = re.compile(pattern, re.ASCII).fullmatch(text) is not None
    assert Pattern(pattern).matches(text) == wanted


@given(st.text("ab|*+?()[]{}1,\\d^$.", max_size=10), st.text("ab1", max_size=5))
def test_what_both_understand_is_the_same(pattern: str, text: str) -> None:
    try:
        mine = Pattern(pattern).matches(text)
    except InvalidInput:
        return
    try:
        wanted = re.compile(pattern, re.ASCII)
    except re.error:  # Python refuses some that RE2 takes
        return
    assert mine == (wanted.fullmatch(text) is not None)


@pytest.mark.parametrize(
    ("pattern", "text", "wanted"),
    [
        ("((a+))+b", "a" * 60, False),
        ("(a|aa)+b", "a" * 5000, False),
        ("(a|a)*b", "a" * 5000 + "b", True),
        ("a*a*a*a*a*a*a*a*a*a*b", "a" * 5000, False),
        ("(?:(?:a|b)*)*c", "ab" * 2000, False),
        ("(a?){60}a{60}", "a" * 60, True),
        ("(.*)(.*)(.*)(.*)(.*)(.*)(.*)z", "a" * 50_000, False),
        ("([ab]*a[ab]{14})*", "ab" * 3000, False),
        ("(x*)*", "x" * 50_000, True),
        ("[[:digit:]]+[^[:space:]]*", "12", True),
        ("\\x{e9}", "\u00e9", True),
        ("\\z", "", True),
    ],
)
def test_patterns_that_take_others_for_ever(pattern: str, text: str, wanted: bool) -> None:
    assert Pattern(pattern).matches(text) is wanted


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("(a{1000}){1000}", "more than 10000 states"),
        ("(" * 5000 + ")" * 5000, "groups nested too deep at character 101"),
        ("a{1001}", "more than 1000 repetitions"),
        ("a{3,2}", "or an empty range"),
        ("a**", "a repetition of a repetition"),
        ("*a", "nothing to repeat at character 0"),
        ("[a", "an unfinished class or escape"),
        ("[z-a]", "bad character range"),
        ("\\", "an unfinished class or escape"),
        ("(a", "a missing )"),
        ("a)", "an unmatched )"),
        ("(?=a)", "a group of a kind that RE2 does not have"),
        ("(?P=n)", "a group of a kind that RE2 does not have"),
        ("\\1", "the escape"),
        ("\\pL", "the escape"),
    ],
)
def test_refused_patterns(pattern: str, message: str) -> None:
    with pytest.raises(InvalidInput, match=re.escape(message)) as caught:
        Pattern(pattern)
    assert len(str(caught.value)) < 300


def test_work_on_one_text_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(regex, "MAX_WORK", 1000)
    with pytest.raises(InvalidInput, match="the pattern takes too long on a text"):
        Pattern("([ab]*a[ab]{14})*").matches("".join(random.Random(0).choices("ab", k=5000)))


def test_sets_of_states_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(regex, "MAX_STATES", 40)
    pattern = Pattern("[ab]*a[ab]{6}")
    for text in ("abbabbaaaaaaaaaaaaa", "babababababababb", "bbbbbbbbbbbbb"):
        assert pattern.matches(text) == (re.fullmatch("[ab]*a[ab]{6}", text) is not None)
    assert len(pattern._next) <= 41
