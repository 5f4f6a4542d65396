"""Random generators: numpy's, seeded from the attribute, or from the system where there is none."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from rooftile.core.errors import InvalidInput
from rooftile.core.limits import machine_bytes
from rooftile.host.registry import body
from rooftile.host.types import element

Array = npt.NDArray[Any]
_WHY = "it draws random numbers"


def _generator(seed: float | None) -> np.random.RandomState:
    """The generator that the reference implementation of ONNX uses, so that seeds mean the same."""
    known = seed is not None and np.isfinite(seed)
    return np.random.RandomState(abs(int(seed)) % (1 << 32) if known and seed is not None else None)


@body("RandomNormal", why=_WHY)
def random_normal(
    shape: Sequence[int],
    dtype: int = 1,
    mean: float = 0.0,
    scale: float = 1.0,
    seed: float | None = None,
) -> Array:
    """Numbers of a normal distribution."""
    return _generator(seed).normal(mean, scale, _checked(shape)).astype(element(dtype))


@body("RandomUniform", why=_WHY)
def random_uniform(
    shape: Sequence[int],
    dtype: int = 1,
    low: float = 0.0,
    high: float = 1.0,
    seed: float | None = None,
) -> Array:
    """Numbers spread evenly."""
    return _generator(seed).uniform(low, high, _checked(shape)).astype(element(dtype))


@body("RandomNormalLike", why=_WHY)
def random_normal_like(x: Array, dtype: int | None = None, **more: Any) -> Array:
    """As RandomNormal, in the shape of the input."""
    made: Array = random_normal(x.shape, **more)
    return made.astype(x.dtype if dtype is None else element(dtype))


@body("RandomUniformLike", why=_WHY)
def random_uniform_like(x: Array, dtype: int | None = None, **more: Any) -> Array:
    """As RandomUniform, in the shape of the input."""
    made: Array = random_uniform(x.shape, **more)
    return made.astype(x.dtype if dtype is None else element(dtype))


@body("Bernoulli", why=_WHY)
def bernoulli(x: Array, dtype: int | None = None, seed: float | None = None) -> Array:
    """1 with the probability that the input gives, else 0."""
    drawn: Array = _generator(seed).binomial(1, np.clip(x.astype(np.float64), 0, 1))
    found: Array = drawn.astype(x.dtype if dtype is None else element(dtype))
    return found


@body("Multinomial", why=_WHY)
def multinomial(x: Array, dtype: int = 6, sample_size: int = 1, seed: float | None = None) -> Array:
    """Classes drawn by their logarithmic odds: x [batch, class] -> [batch, sample_size]."""
    _checked((x.shape[0], sample_size))
    odds = np.exp(x.astype(np.float64) - x.max(-1, keepdims=True))
    limits = np.cumsum(odds, -1)
    drawn = _generator(seed).uniform(0, 1, (x.shape[0], sample_size)) * limits[:, -1:]
    found = [np.searchsorted(row, at, "right") for row, at in zip(limits, drawn, strict=True)]
    drawn_classes: Array = np.minimum(np.array(found), x.shape[1] - 1)
    return drawn_classes.astype(element(dtype))


@body("Dropout", why=_WHY)
def dropout(
    x: Array,
    ratio: Array | None = None,
    training_mode: Array | None = None,
    seed: float | None = None,
    **older: Any,
) -> tuple[Array, Array]:
    """Elements set to 0 at random and the rest scaled up, in training; and which are kept."""
    part = float(older.get("ratio", 0.5) if ratio is None else ratio)
    if training_mode is None or not bool(training_mode) or not part:
        return x, np.ones(x.shape, np.bool_)
    if not 0 <= part < 1:
        raise InvalidInput(f"ratio {part} is not from 0 up to 1")
    kept = _generator(seed).uniform(0, 1, x.shape) >= part
    return (x * kept / np.asarray(1 - part, x.dtype)).astype(x.dtype), kept


def _checked(shape: Sequence[int]) -> tuple[int, ...]:
    if min(shape, default=0) < 0 or math.prod(shape) * 16 > machine_bytes():
        raise InvalidInput(f"random numbers of shape {list(shape)} are too many")
    return tuple(shape)
