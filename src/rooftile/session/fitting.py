"""Shapes of inputs held against those that a model declares."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from rooftile.core.errors import InvalidInput
from rooftile.runtime.arrays import readable
from rooftile.session.signature import NodeArg

Wanted = Sequence[int | str | None] | None
"""A declared shape; a dim may be open. None where even the rank is."""


def wanted(declared: NodeArg, ranked: bool) -> Wanted:
    """The declared shape of an input; files write 0 for a dim that is not known."""
    return [dim or None for dim in declared.shape] if ranked else None


def closed(shape: Wanted) -> tuple[int, ...] | None:
    """The shape where all of it is known, else None."""
    known = tuple(dim for dim in shape or () if isinstance(dim, int))
    return known if shape is not None and len(known) == len(shape) else None


def shape_of(name: str, value: Any) -> tuple[int, ...]:
    """The shape of what an input is given; NoTensor where that is no array."""
    array = value if isinstance(value, np.ndarray) else readable(value, f"input {name!r}")
    found: tuple[int, ...] = array.shape
    return found


def fitting(name: str, shape: tuple[int, ...], wanted: Wanted) -> tuple[int, ...]:
    """The shape itself, or () for one element given for a scalar, as onnxruntime takes it.

    InvalidInput for a shape that contradicts the declared one.
    """
    if wanted is None:
        return shape
    if not wanted and math.prod(shape) == 1:
        return ()
    fits = len(shape) == len(wanted) and all(
        not isinstance(dim, int) or dim == extent for dim, extent in zip(wanted, shape, strict=True)
    )
    if not fits:
        shown = ", ".join("?" if dim is None else str(dim) for dim in wanted)
        raise InvalidInput(f"input {name!r} has the shape {list(shape)}, the model takes [{shown}]")
    return shape
