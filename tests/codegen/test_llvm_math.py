"""exp, log, erf and tanh of generated code against float64, over every exponent of f32.

The bounds are those that docs/numerics.md states.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import pytest

from rooftile.codegen.llvm import emit
from rooftile.ir.tile.text import parse
from rooftile.native import Library, assemble, host_target, link

Array = npt.NDArray[np.generic]
STEP = 4099
"""Every STEP-th bit pattern of f32 is tried: a prime, so that all mantissas come up."""


@dataclass(frozen=True)
class Function:
    """`exact` takes and gives float64. The bounds: ulp of the f32 result, and absolute."""

    name: str
    exact: Callable[[Array], Array]
    ulp: float
    absolute: float = math.inf


FUNCTIONS = (
    Function("exp", np.exp, ulp=1.2),
    Function("log", np.log, ulp=0.8),
    Function("erf", np.vectorize(math.erf, otypes=[np.float64]), ulp=40, absolute=4e-7),
    Function("tanh", np.tanh, ulp=4.5, absolute=3e-7),
)


@lru_cache(maxsize=1)
def arguments() -> Array:
    """Bit patterns over all of f32 without its NaNs, and the corners."""
    patterns = np.arange(0, 1 << 32, STEP, np.uint32).view(np.float32)
    corners = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, 1e-45, -1e-45, 1.1754942e-38, 3.4028235e38]
    corners += [88.72283, 88.7229, -87.33655, -103.972, -103.98, 4.0, -4.0, 7.9, 9.0, 0.0004]
    every = np.concatenate([patterns[~np.isnan(patterns)], np.array(corners, np.float32)])
    return np.sort(every)


def computed(function: str, x: Array, dtype: str = "f32") -> Array:
    """The function of each element, by a generated kernel over `len(x)` elements."""
    text = f"""
kernel math
  memory X: {dtype}[{len(x)}]
  memory Y: {dtype}[{len(x)}]
  whole i<{len(x)}
  Y[i] := {function}(X[i])
"""
    made = emit(parse(text), host_target())
    library = Library(link([assemble(made.text, host_target())]))
    kernel = ctypes.CFUNCTYPE(ctypes.c_int32, *[ctypes.c_void_p] * 3)(library.address(made.symbol))
    y = np.empty_like(x)
    scratch = np.zeros(max(1, made.scratch_bytes), np.uint8)
    assert kernel(x.ctypes.data, y.ctypes.data, scratch.ctypes.data) == 0
    return y


def ulps(got: Array, want: Array) -> Array:
    """Differences in units of the last place of the f32 nearest to `want`."""
    with np.errstate(over="ignore"):
        unit = np.spacing(np.abs(want).astype(np.float32)).astype(np.float64)
    return np.abs(got.astype(np.float64) - want) / unit


def errors(function: Function) -> tuple[Array, Array, Array]:
    """Arguments with finite results, and the errors there, in ulp and absolute.

    Asserts that infinite and NaN results are where they should be.
    """
    x = arguments()
    got = computed(function.name, x)
    with np.errstate(all="ignore"):
        want = function.exact(x.astype(np.float64))
        rounded = want.astype(np.float32)
    special = ~np.isfinite(rounded)
    np.testing.assert_array_equal(got[special], rounded[special])
    assert np.isfinite(got[~special]).all()
    apart = np.abs(got[~special].astype(np.float64) - want[~special])
    return x[~special], ulps(got[~special], want[~special]), apart


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.name)
def test_errors_are_within_the_stated_bounds(function: Function) -> None:
    x, ulp, apart = errors(function)
    assert ulp.max() <= function.ulp, f"{ulp.max():.2f} ulp at {x[ulp.argmax()]!r}"
    assert apart.max() <= function.absolute, f"{apart.max():.1e} at {x[apart.argmax()]!r}"


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.name)
def test_nan_stays_nan(function: Function) -> None:
    x = np.full(37, 0.5, np.float32)
    x[[3, 20, 36]] = np.nan
    got = computed(function.name, x)
    np.testing.assert_array_equal(np.isnan(got), np.isnan(x))


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.name)
def test_vectors_and_tails_agree(function: Function) -> None:
    """A value does not depend on whether it is computed in a vector or alone."""
    x = np.linspace(-3, 3, 35, dtype=np.float32)
    whole = computed(function.name, x)
    alone = np.concatenate([computed(function.name, x[i : i + 1].copy()) for i in range(len(x))])
    np.testing.assert_array_equal(whole, alone)


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.name)
def test_double_is_as_good_as_the_c_library(function: Function) -> None:
    x = np.concatenate([np.linspace(-30, 30, 1001), [0.0, np.inf, -np.inf, np.nan, 1e-310]])
    got = computed(function.name, x, "f64")
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(got, function.exact(x), rtol=1e-14)


def test_odd_functions_keep_the_sign_of_zero() -> None:
    for name in ("erf", "tanh"):
        got = computed(name, np.array([0.0, -0.0], np.float32))
        np.testing.assert_array_equal(np.signbit(got), [False, True])


if __name__ == "__main__":
    for one in FUNCTIONS:
        where, in_ulp, absolute = errors(one)
        for word, found in (("ulp", in_ulp), ("absolute", absolute)):
            print(f"{one.name}: {found.max():.3g} {word} at {where[found.argmax()]}")
