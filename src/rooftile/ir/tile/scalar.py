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
        divisor = np.where(b == 0, 1, b)
        quotient = np.abs(a) // np.abs(divisor) * np.sign(a) * np.sign(divisor)
        return np.where(b == 0, 0, quotient).astype(np.asarray(b).dtype)
    return np.divide(a, b)


def _erf(x: Any) -> Any:
    flat = [math.erf(value) for value in np.asarray(x, np.float64).ravel()]
    return np.reshape(flat, np.shape(x)).astype(np.asarray(x).dtype)


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
    "lt": Scalar(2, np.less, "bool"),
    "le": Scalar(2, np.less_equal, "bool"),
    "eq": Scalar(2, np.equal, "bool"),
    "not": Scalar(1, np.logical_not, "bool"),
    "and": Scalar(2, np.logical_and, "bool"),
    "or": Scalar(2, np.logical_or, "bool"),
    "where": Scalar(3, np.where),
}
"""Every scalar operation. max and min propagate NaN; round ties to even; tanh, erf, exp and log
are floats only."""
