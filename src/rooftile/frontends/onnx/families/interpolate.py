"""Where the elements of a resized axis come from: coordinates, and the weights around them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from rooftile.ir.graph import Array

Kernel = Literal["linear", "cubic"]


@dataclass(frozen=True)
class Taps:
    """Indices into the input (inside it) and their weights, both [size, taps]."""

    indices: Array
    weights: Array


def coordinates(
    mode: str,
    extent: int,
    size: int,
    scale: float,
    region: tuple[float, float],
    dtype: np.dtype[Any],
) -> Array | None:
    """The place in the input of each of `size` elements, computed in `dtype`; None: unknown mode.

    The length of the result is fractional (scale * extent) where the standard says so.
    """
    real = dtype.type
    x = np.arange(size, dtype=dtype)
    length = real(scale) * real(extent)
    if np.isclose(float(length), size, rtol=1e-6, atol=0):
        length = real(size)  # the scale was rounded
    middle = (x + real(0.5)) / real(scale)
    half = middle - real(0.5)
    if mode == "half_pixel":
        return np.asarray(half)
    if mode == "pytorch_half_pixel":
        return np.asarray(half) if size > 1 else np.zeros_like(x)
    if mode == "half_pixel_symmetric":
        shift = real(extent / 2) * (1 - real(size) / length)
        return np.asarray((shift + middle) - real(0.5))
    if mode == "asymmetric":
        return np.asarray(x / real(scale))
    if mode == "tf_half_pixel_for_nn":
        return np.asarray((x + real(0.5)) / real(scale))
    if mode == "align_corners":
        return np.asarray(x * real(extent - 1) / (length - 1)) if length != 1 else np.zeros_like(x)
    if mode == "tf_crop_and_resize":
        start, end = (real(part) for part in region)
        if size <= 1:
            return np.full_like(x, (start + end) * real(extent - 1) / 2)
        return np.asarray((start + x * (end - start) / real(size - 1)) * real(extent - 1))
    return None


def nearest(places: Array, mode: str, smaller: bool) -> Array | None:
    """The element that each place falls to; None for an unknown mode.

    "simple" is what opset 10 left open: the element before, the one behind for a smaller result.
    """
    if mode == "round_prefer_floor":
        return np.asarray(np.ceil(places - places.dtype.type(0.5)))
    if mode == "round_prefer_ceil":
        up = np.nextafter(places, places.dtype.type(np.inf))  # a half that was rounded down
        return np.asarray(np.floor(up + places.dtype.type(0.5)))
    if mode == "floor" or (mode == "simple" and not smaller):
        return np.asarray(np.floor(places))
    if mode in ("ceil", "simple"):
        return np.asarray(np.ceil(places))
    return None


def taps(
    shape: Kernel,
    places: Array,
    extent: int,
    scale: float,
    cubic: float,
    exclude_outside: bool,
) -> Taps:
    """The elements around each place with their weights; the edge is repeated outside.

    `scale` below 1 widens the kernel to 1 / scale, against aliasing; its weights sum to 1 then.
    """
    reach = (1 if shape == "linear" else 2) / scale
    first = int(np.floor(-reach)) + 1
    base = np.ceil(places).astype(np.int64) - 1
    offsets = np.arange(first, 2 - first)
    indices = base[:, None] + offsets
    distance = np.abs(indices - places[:, None]) * scale
    weights = np.clip(1 - distance, 0, 1) if shape == "linear" else _cubic(distance, cubic)
    if exclude_outside:
        weights = np.where((indices < 0) | (indices >= extent), 0.0, weights)
    if exclude_outside or scale < 1:
        total = weights.sum(axis=1, keepdims=True)
        weights = weights / np.where(total == 0, 1.0, total)
    return Taps(np.clip(indices, 0, max(extent - 1, 0)), weights)


def _cubic(distance: Array, a: float) -> Array:
    """Keys' cubic convolution with the free parameter `a`."""
    near = ((a + 2) * distance - (a + 3)) * distance * distance + 1
    far = ((a * distance - 5 * a) * distance + 8 * a) * distance - 4 * a
    return np.where(distance <= 1, near, np.where(distance < 2, far, 0.0))
