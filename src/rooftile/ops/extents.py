"""Shape arithmetic of a model on extents that only a run knows: ops on arrays of ints and symbols.

Models compute shapes with Shape, Gather, Concat, Mul and the like. On symbols these stay symbols;
an op that has no meaning for them takes the numbers at hand instead.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from rooftile.core.dtype import kind as dtype_kind
from rooftile.core.dtype import to_numpy
from rooftile.core.symbolic import Sym
from rooftile.ir.graph import Array
from rooftile.ops.base import OPS, Type

MOST = 4096
"""Larger arrays are no shapes."""


class _NoForm(Exception):
    """An operation whose result is no sum of products of symbols."""


def _divided(a: Any, b: Any) -> Any:
    """Division of integers rounds toward zero."""
    whole = abs(a) // abs(b)
    return whole if (a >= 0) == (b > 0) else -whole


def _exactly_divided(a: Any, b: Any) -> Any:
    """Division of floats that hold whole numbers, where it leaves no rest."""
    if not b or isinstance(a // b * b - a, Sym) or a // b * b != a:
        raise _NoForm
    return a // b


def _whole(x: Any) -> Any:
    """A number as an int."""
    if isinstance(x, Sym) or x == int(x):
        return x if isinstance(x, Sym) else int(x)
    raise _NoForm


def _elementwise(function: Callable[..., Any], count: int) -> Callable[..., Array]:
    return np.frompyfunc(function, count, 1)  # type: ignore[no-any-return]


_NUMBERS: Mapping[str, Callable[..., Any]] = {
    "add": _elementwise(lambda a, b: a + b, 2),
    "sub": _elementwise(lambda a, b: a - b, 2),
    "mul": _elementwise(lambda a, b: a * b, 2),
    "div": _elementwise(_divided, 2),
    "neg": _elementwise(lambda a: -a, 1),
    "abs": _elementwise(abs, 1),
    "max": _elementwise(max, 2),
    "min": _elementwise(min, 2),
    "lt": _elementwise(lambda a, b: a < b, 2),
    "le": _elementwise(lambda a, b: a <= b, 2),
    "eq": _elementwise(lambda a, b: a == b, 2),
    "not": _elementwise(lambda a: not a, 1),
    "and": _elementwise(lambda a, b: a and b, 2),
    "or": _elementwise(lambda a, b: a or b, 2),
    "where": _elementwise(lambda c, a, b: a if c else b, 3),
    "floor": _elementwise(lambda a: a, 1),
    "ceil": _elementwise(lambda a: a, 1),
    "round": _elementwise(lambda a: a, 1),
}
_MOVES = frozenset(
    ("transpose", "broadcast", "slice", "reshape", "concat", "gather", "gather_elements")
)
_TOTALS = {
    "sum": _NUMBERS["add"],
    "prod": _NUMBERS["mul"],
    "max": _NUMBERS["max"],
    "min": _NUMBERS["min"],
}


def fold_extents(
    op: str, attrs: Mapping[str, Any], arrays: Sequence[Array | None], kind: Type
) -> Array | None:
    """The result of an op on arrays some of which hold symbols; None where it has no such form.

    Floats take part as far as they are whole numbers.
    """
    try:
        return _folded(op, attrs, arrays, kind)
    except (_NoForm, OverflowError, ValueError):  # fractions, infinity, NaN
        return None


def _folded(
    op: str, attrs: Mapping[str, Any], arrays: Sequence[Array | None], kind: Type
) -> Array | None:
    shape, dtype = kind
    known = [array.astype(object) for array in arrays if array is not None]
    if len(known) < len(arrays) or any(array.size > MOST for array in known):
        return None
    known = [_elementwise(_whole, 1)(array) for array in known]
    if op == "div" and dtype_kind(dtype) == "float":
        found = _elementwise(_exactly_divided, 2)(*known)
    elif op in _NUMBERS:
        found = _NUMBERS[op](*known)
    elif op == "cast":
        found = known[0]
    elif op == "reduce":
        found = known[0]
        for dim in attrs["dims"]:
            found = np.expand_dims(_TOTALS[attrs["op"]].reduce(found, axis=dim), dim)  # type: ignore
    elif op in _MOVES:
        places = [array for array in arrays[1:] if array is not None and array.dtype != object]
        rest = known[1:] if op == "concat" else places
        [found] = OPS[op].reference(attrs, [known[0], *rest])
    else:
        return None
    return np.asarray(found, object).reshape(tuple(int(extent) for extent in shape))  # type: ignore


def as_array(extents: Array, dtype: str) -> Array:
    """Extents as numbers of a type, symbols as the numbers at hand."""
    return np.frompyfunc(int, 1, 1)(extents).astype(to_numpy(dtype))  # type: ignore
