"""Figures as people read them."""

from __future__ import annotations

_SCALES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


def scaled(value: float, unit: str) -> str:
    """Three digits and a decimal prefix: 1234567 B is 1.23 MB."""
    for factor, prefix in _SCALES:
        if abs(value) >= factor:
            return f"{_digits(value / factor)} {prefix}{unit}"
    return f"{_digits(value)} {unit}"


def seconds(value: float) -> str:
    """A time in s, ms, us or ns."""
    for factor, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "us")):
        if value >= factor:
            return f"{_digits(value / factor)} {unit}"
    return f"{_digits(value * 1e9)} ns"


def percent(share: float) -> str:
    """A share as whole percents."""
    return f"{share * 100:.0f} %"


def count(number: int, noun: str) -> str:
    """`1 kernel`, `2 kernels`."""
    return f"{number} {noun}" + ("" if number == 1 else "s")


def _digits(value: float) -> str:
    size = abs(value)
    places = 0 if size >= 100 or value == int(value) else 1 if size >= 10 else 2
    return f"{value:.{places}f}"
