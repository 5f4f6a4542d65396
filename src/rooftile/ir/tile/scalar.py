"""The scalar operations of Map: arity, result type, and their meaning in numpy."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rooftile.core.dtype import DType


@dataclass(frozen=True)
class Scalar:
    """`meaning` works on numpy arrays of the argument type; `gives` is "same" or "bool"."""

    arity: int
    meaning: Callable[..., Any]
    gives: str = "same"

    def result(self, dtypes: Sequence[DType]) -> DType:
        """The result's type: bool for comparisons, else that of the last argument."""
        return "bool" if self.gives == "bool" else dtypes[-1]


def _divide(a: Any, b: Any) -> Any:
    """True quotient of floats; of integers the quotient truncated toward zero, 0 for b = 0."""
    if np.asarray(b).dtype.kind in "iu":
        divisor = np.where(b == 0, 1, b).astype(np.asarray(b).dtype)
        down = np.floor_divide(a, divisor)
        inexact = (down * divisor != a) & ((np.asarray(a) < 0) != (divisor < 0))
        return np.where(b == 0, 0, down + inexact).astype(np.asarray(b).dtype)
    return np.divide(a, b)


def _erf(x: Any) -> Any:
    flat = [math.erf(value) for value in np.asarray(x, np.float64).ravel()]
    return np.reshape(flat, np.shape(x)).astype(np.asarray(x).dtype)


POWER_BITS = 7
"""Bits of the exponent that integer pow looks at: 1 << 6 is enough to move every bit of 64 out."""


def _power(a: Any, b: Any) -> Any:
    """Integers wrap; exponents of 64 and more count as 64 or 65, negative ones give 1 / a**-b."""
    if np.asarray(b).dtype.kind not in "iu":
        return np.power(a, b)
    a, b = np.asarray(a), np.asarray(b)
    below = b < 0
    size = np.where(below, -b, b).astype(b.dtype) if b.dtype.kind == "i" else b
    limit = 1 << POWER_BITS - 1
    held = np.where((size >= 0) & (size < limit), size, limit | (size & 1)).astype(np.int64)
    bits = a.astype(np.int64).view(np.uint64)
    wrapped = np.power(bits, held.view(np.uint64)).astype(a.dtype)
    whole = (a == 1) | ((a == -1) if a.dtype.kind == "i" else False)
    return np.where(below & ~whole, 0, wrapped).astype(a.dtype)


def _shift(ufunc: Any) -> Callable[[Any, Any], Any]:
    """A shift by the type's width or more (or by less than 0) leaves no bit but the sign."""

    def meaning(a: Any, b: Any) -> Any:
        b = np.asarray(b)
        bits = 8 * b.dtype.itemsize
        fits = (b >= 0) & (b < bits)
        if ufunc is np.right_shift and b.dtype.kind == "i":
            return ufunc(a, np.where(fits, b, bits - 1).astype(b.dtype))
        return np.where(fits, ufunc(a, np.where(fits, b, 0).astype(b.dtype)), 0).astype(b.dtype)

    return meaning


LIBRARY: dict[str, Callable[..., Any]] = {
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
}
"""Functions of one float by their names in the C library."""
EXPENSIVE = frozenset(("exp", "log", "erf", "tanh", "pow", "fmod", *LIBRARY))
"""Operations that are not done while accumulators fill the registers, nor twice."""
FLOAT_ONLY = EXPENSIVE - {"pow"} | {"sqrt", "floor", "ceil", "round"}
INTEGER_ONLY = frozenset(("bitand", "bitor", "bitxor", "bitnot", "shl", "shr"))

SCALARS: dict[str, Scalar] = {
    "add": Scalar(2, np.add),
    "sub": Scalar(2, np.subtract),
    "mul": Scalar(2, np.multiply),
    "div": Scalar(2, _divide),
    "max": Scalar(2, np.maximum),
    "min": Scalar(2, np.minimum),
    "neg": Scalar(1, np.negative),
    "abs": Scalar(1, np.abs),
    "sqrt": Scalar(1, np.sqrt),
    "exp": Scalar(1, np.exp),
    "log": Scalar(1, np.log),
    "erf": Scalar(1, _erf),
    "tanh": Scalar(1, np.tanh),
    "floor": Scalar(1, np.floor),
    "ceil": Scalar(1, np.ceil),
    "round": Scalar(1, np.rint),
    "pow": Scalar(2, _power),
    "lt": Scalar(2, np.less, "bool"),
    "le": Scalar(2, np.less_equal, "bool"),
    "eq": Scalar(2, np.equal, "bool"),
    "not": Scalar(1, np.logical_not, "bool"),
    "and": Scalar(2, np.logical_and, "bool"),
    "or": Scalar(2, np.logical_or, "bool"),
    "where": Scalar(3, np.where),
    "fmod": Scalar(2, np.fmod),
    "bitand": Scalar(2, np.bitwise_and),
    "bitor": Scalar(2, np.bitwise_or),
    "bitxor": Scalar(2, np.bitwise_xor),
    "bitnot": Scalar(1, np.invert),
    "shl": Scalar(2, _shift(np.left_shift)),
    "shr": Scalar(2, _shift(np.right_shift)),
    **{name: Scalar(1, meaning) for name, meaning in LIBRARY.items()},
}
"""Every scalar operation. max and min propagate NaN; round ties to even; fmod has the sign of its
first argument, as in C; shr keeps the sign of signed integers."""
