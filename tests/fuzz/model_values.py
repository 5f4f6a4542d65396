"""Values of random models: what they should be, and how far rounding may carry them.

A float value is held in float64, several times over: as it should be, and as it comes out when
every element is off by random errors of the size of a rounding, at each node before it and at its
own. How far these runs lie apart is the condition of the value, and so what an engine may differ.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
RUNS = 5
"""The value itself, and four under rounding errors."""
AMPLIFIED = 50.0
"""A result that jumps must not do so when its inputs are off by so many times their errors."""
TINY = {"float16": 1e-7}
"""The size of errors that do not shrink with the value: subnormal numbers are coarse."""
COARSE = frozenset(
    (
        *("Softplus", "Gelu", "Erf", "Tanh", "Elu", "Selu", "Celu", "LogSoftmax", "Asinh", "Atanh"),
        *("GRU", "LSTM", "RNN", "Resize"),
    )
)
"""Ops that engines compute to a rounding of 1 or of their input, however small the result."""
SUMS = frozenset(
    (
        *("ReduceSum", "ReduceMean", "ReduceL1", "ReduceL2", "ReduceSumSquare"),
        *("ReduceLogSumExp", "Softmax", "LogSoftmax", "LayerNormalization", "LpNormalization"),
        *("InstanceNormalization", "GroupNormalization", "MeanVarianceNormalization", "MatMul"),
        *("Gemm", "Einsum", "Conv", "ConvTranspose", "CumSum", "GlobalAveragePool"),
    )
)
"""Ops that add up many elements, with a rounding at each step."""


@dataclass(frozen=True)
class Value:
    """A value of a model; `dtype` is the declared one, `runs` hold floats in float64."""

    name: str
    dtype: Any
    runs: tuple[Array, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """The dims."""
        return self.runs[0].shape

    @property
    def rank(self) -> int:
        """How many dims there are."""
        return self.runs[0].ndim

    @property
    def is_float(self) -> bool:
        """Whether rounding matters to it."""
        return bool(self.dtype.kind == "f")

    @property
    def largest(self) -> float:
        """The largest magnitude."""
        return float(np.max(np.abs(self.runs[0].astype(np.float64)), initial=0.0))

    @property
    def spread(self) -> Array:
        """How far the runs lie from the value."""
        return np.max([np.abs(run - self.runs[0]) for run in self.runs[1:]], axis=0)

    def tolerance(self) -> Array:
        """How far an engine's elements may be off."""
        eps, tiny = rounding(self.dtype)
        return 12 * self.spread + 4 * eps * (self.largest + np.abs(self.runs[0])) + tiny

    def amplified(self, run: int, sign: int) -> Array:
        """The value with the errors of a run made larger, and turned around by a sign of -1."""
        if not self.is_float:
            return self.runs[run]
        found: Array = self.runs[0] + sign * AMPLIFIED * (self.runs[run] - self.runs[0])
        return found


def rounding(dtype: Any) -> tuple[float, float]:
    """The relative and the least absolute error of a rounding."""
    return float(np.finfo(dtype).eps), TINY.get(dtype.name, 0.0)


def noisy(
    array: Array,
    dtype: Any,
    generator: np.random.Generator,
    coarse: float = 0.0,
    roundings: float = 1.0,
) -> Array:
    """Each element of a float array off by up to some roundings, of `coarse` at least."""
    if np.dtype(dtype).kind != "f":
        return array
    eps, tiny = rounding(np.dtype(dtype))
    size = roundings * eps * np.maximum(np.abs(array), coarse) + tiny
    errors: Array = generator.uniform(-1, 1, array.shape) * size
    return array + errors


def held(array: Array) -> Array:
    """An array as runs hold it."""
    return array.astype(np.float64) if array.dtype.kind == "f" else array
