"""What the property tests of index arithmetic share: models of one op, run; arrays to move."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from onnx_models import Const, one_node

import rooftile

Array = npt.NDArray[Any]

EXTENTS = st.sampled_from((1, 2, 3, 4, 5, 7, 0))
DTYPES = st.sampled_from(
    (np.float32, np.int64, np.float16, np.float64, np.int32, np.int8, np.uint8, np.bool_)
)
MOST_ELEMENTS = 600


def examples(count: int) -> settings:
    """Settings of a test that compiles a model an example."""
    return settings(max_examples=count, deadline=None, suppress_health_check=list(HealthCheck))


def computed(op: str, *inputs: Any, opset: int = 22, **more: Any) -> list[Array]:
    """The outputs of a model of one node. Inputs are arrays, Const, or None for one left out."""
    model, feeds = one_node(op, *inputs, opset=opset, **more)
    found: list[Array] = rooftile.InferenceSession(model.SerializeToString()).run(None, feeds)
    return found


def same(got: Array, want: Any, rtol: float = 0.0) -> None:
    """Assert that type, shape and values are equal, or close."""
    want = np.asarray(want)
    assert (got.dtype, got.shape) == (want.dtype, want.shape)
    np.testing.assert_allclose(got, want, rtol=rtol, atol=rtol)


def numbered(*shape: int, dtype: Any = np.float32) -> Array:
    """Elements that tell where they were: 0, 1, 2, ... as far as the type goes."""
    places = np.arange(math.prod(shape))
    return (places % 3 == 0 if dtype == np.bool_ else places).astype(dtype).reshape(shape)


def small(*shape: int, dtype: Any = np.float32, seed: int = 0) -> Array:
    """Integers of -9 to 9: sums of their products are exact in any order."""
    return np.random.default_rng(seed).integers(-9, 10, shape).astype(dtype)


@st.composite
def shapes(draw: st.DrawFn, least: int = 0, most: int = 5) -> tuple[int, ...]:
    """A shape of few elements; a dim may be 0."""
    found: list[int] = []
    for _ in range(draw(st.integers(least, most))):
        extent = draw(EXTENTS)
        found.append(extent if math.prod(found) * extent <= MOST_ELEMENTS else 1)
    return tuple(found)


@st.composite
def given_as(draw: st.DrawFn, array: Any) -> Any:
    """The integers as a constant of the model, or, one time in four, as an input of the run."""
    array = np.asarray(array, np.int64)
    return array if array.size and not draw(st.integers(0, 3)) else Const(array)


def axis_of(draw: st.DrawFn, rank: int) -> int:
    """An axis, counted from either end."""
    return draw(st.integers(-rank, rank - 1))
