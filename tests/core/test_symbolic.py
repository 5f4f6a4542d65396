"""Extents that only a run knows: arithmetic as that of ints, and guards that keep answers true."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rooftile.core.expression import parsed
from rooftile.core.symbolic import Sym, Symbols, evaluated, hint, same, symbolic, to_dim

VALUES = {"N": 6, "M": 35}


def made() -> tuple[Symbols, int, int]:
    """Symbols, and the extents N and M."""
    symbols = Symbols()
    return symbols, symbols.new("N", VALUES["N"]), symbols.new("M", VALUES["M"])


@st.composite
def expressions(draw: st.DrawFn) -> Callable[[int, int], Any]:
    """A function of two extents, made of the arithmetic that shapes need."""
    kinds = ["first", "second", "number"]
    kind = draw(st.sampled_from([*kinds, *kinds, "add", "sub", "mul", "floordiv", "mod", "ceil"]))
    if kind == "first":
        return lambda n, m: n
    if kind == "second":
        return lambda n, m: m
    number = draw(st.integers(1, 9))
    if kind == "number":
        return lambda n, m: number
    one = draw(expressions())
    if kind in ("floordiv", "mod"):
        work = operator.floordiv if kind == "floordiv" else operator.mod
        return lambda n, m: work(one(n, m), number)
    if kind == "ceil":
        return lambda n, m: -(-one(n, m) // number)
    two = draw(expressions())
    combine = {"add": operator.add, "sub": operator.sub, "mul": operator.mul}[kind]
    return lambda n, m: combine(one(n, m), two(n, m))


@given(expressions(), st.integers(2, 50), st.integers(2, 50))
def test_arithmetic_is_that_of_ints(work: Callable[[int, int], Any], n: int, m: int) -> None:
    _, first, second = made()
    found = work(first, second)
    assert evaluated(found, {"N": n, "M": m}) == work(n, m)
    assert hint(found) == work(VALUES["N"], VALUES["M"])


@given(expressions())
def test_text_is_read_back(work: Callable[[int, int], Any]) -> None:
    _, first, second = made()
    found = work(first, second)
    if isinstance(found, Sym):
        assert parsed(str(found)) == found.poly


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "needs a number or name, not 'its end'"),
        ("N+", "needs a number or name, not 'its end'"),
        ("2*(N", "lacks a closing parenthesis"),
        ("N M", "'M' was not expected in 'N M'"),
        ("N%2", "'%' is no part of an expression: 'N%2'"),
        ("*N", r"needs a number or name, not '\*'"),
        ("(" * 60 + "N" + ")" * 60, "nests more than 50 deep"),
    ],
)
def test_what_is_no_expression(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parsed(text)


@given(expressions(), st.integers(-3, 60), st.integers(2, 50), st.integers(2, 50))
def test_answers_hold_where_guards_hold(
    work: Callable[[int, int], Any], number: int, n: int, m: int
) -> None:
    symbols, first, second = made()
    extent = work(first, second)
    compare = [operator.lt, operator.le, operator.gt, operator.ge]
    answers = [ask(extent, number) for ask in compare]
    answers += [extent == 0, extent == 1, bool(extent), max(extent, number) is extent]
    assert symbols.hold(VALUES)
    if symbols.hold({"N": n, "M": m}):
        value = work(n, m)
        asked = [ask(value, number) for ask in compare]
        assert answers[:7] == [*asked, value == 0, value == 1, bool(value)]
        assert answers[7] == (max(value, number) == value and value >= number)


def test_what_is_proved_needs_no_guard() -> None:
    symbols, n, m = made()
    assert n >= 2 and n * m > m and n * m - m >= 2 and n != 1 and (n + 3) // 2 >= 2
    assert math.prod((1, n, 4, m)) == 4 * n * m and n * 8 // 8 == n and (n * 6) % 3 == 0
    assert -(-n // 16) == (n + 15) // 16 and n // 2 // 3 == n // 6
    assert not symbols.guards


def test_numbers_by_chance_are_not_equal() -> None:
    symbols, n, m = made()
    assert n != 6 and n != m and (n,) != (6,)
    assert not symbols.guards
    assert same(n, n) and not same(n, m)
    assert same(n, 6)
    assert [str(guard) for guard in symbols.guards] == ["N-6 == 0"]


@pytest.mark.parametrize(
    "use", [int, float, range, np.zeros, lambda n: n / 2, lambda n: 0.5 * n, lambda n: n < 2.5]
)
def test_where_an_int_is_needed_the_number_is_kept(use: Callable[[int], Any]) -> None:
    symbols, n, _ = made()
    use(n)
    assert symbols.pinned == {"N"}
    assert symbols.hold(VALUES) and not symbols.hold({"N": 7, "M": 35})
    better = symbols.again()
    assert better is not None and better.new("N", 6) == 6 and symbolic([better.new("M", 35)])


def test_equal_quotients_ask_for_units() -> None:
    symbols = Symbols()
    height = symbols.new("H", 96)
    assert same(height // 16 * 2, height // 8)
    better = symbols.again()
    assert better is not None and better.units == {"H": 16}
    height = better.new("H", 96)
    assert better.values == {"H": 6} and str(height) == "16*H"
    assert height // 16 * 2 == height // 8 and not better.guards
    assert better.new("W", 7) is not None and better.again() is None


def test_small_and_fixed_extents_are_numbers() -> None:
    symbols = Symbols(fixed=frozenset("F"))
    assert [symbols.new("a", 0), symbols.new("b", 1), symbols.new("F", 9)] == [0, 1, 9]
    assert not symbols.values


def test_names_in_kernels() -> None:
    symbols, n, m = made()
    assert str(to_dim(2 * n + 1)) == "2*N+1" and to_dim(5) == 5
    assert str(to_dim(n * m)) == "q0" and str(to_dim(3 * m * n + n)) == "N+3*q0"
    assert evaluated(symbols.number("q0"), {"N": 2, "M": 3}) == 6
    assert symbols.hints == {"N": 6, "M": 35, "q0": 210}
    symbols.reaches(to_dim(n), 4)
    assert not symbols.hold({"N": 3, "M": 35})
    with pytest.raises(AssertionError, match="N is below 9"):
        symbols.reaches(to_dim(n), 9)


def test_symbols_of_two_compilations_differ() -> None:
    (_, n, _), (_, other, _) = made(), made()
    assert n != other and len({n, other}) == 2


def test_division_by_nothing() -> None:
    _, n, _ = made()
    with pytest.raises(ZeroDivisionError):
        n // 0


def test_text() -> None:
    _, n, m = made()
    shown = [f"{n // 2 + 1}", str(n * m - 3), repr(m // n), f"{n:>5}"]
    assert shown == ["N//2+1", "M*N-3", "M//N", "    N"]
    assert isinstance(n, Sym)
