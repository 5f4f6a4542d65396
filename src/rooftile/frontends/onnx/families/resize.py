"""Resize and Upsample: along each axis, elements picked by constants and weighted by constants."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from rooftile.core.dtype import itemsize, kind
from rooftile.core.symbolic import hint, same, symbolic
from rooftile.frontends.onnx.call import Call
from rooftile.frontends.onnx.families.interpolate import Kernel, Taps, coordinates, nearest, taps
from rooftile.frontends.onnx.registry import reads
from rooftile.ir.graph import Array, Value


@dataclass(frozen=True)
class Axis:
    """An axis to resize: `extent` elements become `size`; `region` is the part that is kept.

    `scale` is how many elements of the result there are to one of the input.
    """

    dim: int
    extent: int
    size: int
    scale: float
    region: tuple[float, float] = (0.0, 1.0)


@dataclass(frozen=True)
class Manner:
    """How to resize: the attributes of the node."""

    mode: str
    coordinates: str
    nearest: str = "round_prefer_floor"
    cubic: float = -0.75
    antialias: bool = False
    exclude_outside: bool = False
    extrapolation: float = 0.0


@reads("Upsample")
@reads("Upsample", since=7)
def upsample_by_attribute(call: Call) -> Value:
    """Scales as an attribute; in opset 1 there is one for the height and one for the width."""
    x = call.input(0)
    if call.has("scales"):
        scales = call.floats("scales")
    else:
        scales = (1.0, 1.0, call.number("height_scale"), call.number("width_scale"))
    return _resized(call, x, _scaled(call, x, scales, range(x.rank)), _old_manner(call))


@reads("Upsample", since=9)
@reads("Resize", since=10)
def resize_by_scales(call: Call) -> Value:
    """Scales as an input; the corners of input and result meet."""
    x = call.input(0)
    scales = _floats(call, 1, "scales")
    return _resized(call, x, _scaled(call, x, scales, range(x.rank)), _old_manner(call))


@reads("Resize", since=11)
def resize(call: Call) -> Value:
    """Scales or sizes as inputs, a region of interest, and every mode."""
    x = call.input(0)
    dims = tuple(call.axis(axis, x.rank) for axis in call.ints("axes", range(x.rank)))
    if len(set(dims)) < len(dims):
        call.invalid(f"axes {list(dims)} name an axis twice")
    manner = _manner(call)
    regions = _regions(call, dims) if manner.coordinates == "tf_crop_and_resize" else None
    scales = _floats(call, 2, "scales") if call.optional(2) is not None else ()
    sizes = call.input_ints(3, "sizes") if call.optional(3) is not None else ()
    policy = call.text("keep_aspect_ratio_policy", "stretch")
    if bool(scales) == bool(sizes) and dims:
        call.invalid("either scales or sizes must be given, and not both")
    if scales:
        axes = _scaled(call, x, scales, dims, regions)
    else:
        axes = _sized(call, x, sizes, dims, policy)
    if regions is not None:
        axes = [replace(axis, region=part) for axis, part in zip(axes, regions, strict=True)]
    return _resized(call, x, axes, manner)


def _manner(call: Call) -> Manner:
    call.ignore("consumed_inputs")
    return Manner(
        _mode(call),
        call.text("coordinate_transformation_mode", "half_pixel"),
        call.text("nearest_mode", "round_prefer_floor"),
        call.number("cubic_coeff_a", -0.75),
        bool(call.integer("antialias", 0)),
        bool(call.integer("exclude_outside", 0)),
        call.number("extrapolation_value", 0.0),
    )


def _old_manner(call: Call) -> Manner:
    call.ignore("consumed_inputs")
    return Manner(_mode(call), "asymmetric", "simple")


def _mode(call: Call) -> str:
    mode = {"bilinear": "linear"}.get(found := call.text("mode", "nearest"), found)
    if mode not in ("nearest", "linear", "cubic"):
        call.invalid(f"mode {mode!r} must be nearest, linear or cubic")
    return mode


def _floats(call: Call, number: int, what: str) -> tuple[float, ...]:
    array = call.array(number, what)
    if array.ndim > 1 or kind_of(array) != "f":
        call.invalid(f"{what} must be a list of numbers")
    return tuple(float(item) for item in array.ravel())


def kind_of(array: Array) -> str:
    """numpy's letter for the kind of the elements."""
    return array.dtype.kind


def _regions(call: Call, dims: Sequence[int]) -> list[tuple[float, float]]:
    """Start and end of the part of each axis that is kept, as fractions of its length."""
    roi = _floats(call, 1, "roi")
    if len(roi) != 2 * len(dims):
        call.invalid(f"roi needs {2 * len(dims)} numbers, not {len(roi)}")
    return list(zip(roi[: len(dims)], roi[len(dims) :], strict=True))


def _scaled(
    call: Call,
    x: Value,
    scales: Sequence[float],
    dims: Sequence[int],
    regions: Sequence[tuple[float, float]] | None = None,
) -> list[Axis]:
    """Axes whose sizes follow from scales, in f32 as the scales are."""
    if len(scales) != len(dims) or not all(0 < scale < math.inf for scale in scales):
        call.invalid(f"scales {list(scales)} must be {len(dims)} positive numbers")
    found = []
    for number, (dim, scale) in enumerate(zip(dims, scales, strict=True)):
        start, end = regions[number] if regions is not None else (0.0, 1.0)
        extent = x.dims[dim]
        if symbolic((extent,)) and (start, end) == (0.0, 1.0) and scale == int(scale):
            found.append(Axis(dim, extent, extent * int(scale), scale))
            continue
        size = math.floor(np.float32(extent) * np.float32(end - start) * np.float32(scale))
        found.append(Axis(dim, extent, max(0, size), scale))
    return found


def _sized(
    call: Call, x: Value, sizes: Sequence[int], dims: Sequence[int], policy: str
) -> list[Axis]:
    """Axes whose scales follow from sizes; a policy may make all scales one."""
    if len(sizes) != len(dims) or any(size < 0 for size in sizes):
        call.invalid(f"sizes {list(sizes)} must be {len(dims)} numbers, none negative")
    factors = [_whole_factor(x.dims[dim], size) for size, dim in zip(sizes, dims, strict=True)]
    ratios = [
        factor if factor else size / max(x.dims[dim], 1)
        for factor, size, dim in zip(factors, sizes, dims, strict=True)
    ]
    if policy == "stretch":
        parts = zip(dims, sizes, ratios, strict=True)
        return [Axis(dim, x.dims[dim], size, ratio) for dim, size, ratio in parts]
    if policy not in ("not_larger", "not_smaller"):
        call.invalid(
            f"keep_aspect_ratio_policy {policy!r} must be stretch, not_larger or not_smaller"
        )
    scale = min(ratios) if policy == "not_larger" else max(ratios)
    extents = [x.dims[dim] for dim in dims]
    return [
        Axis(dim, extent, math.floor(scale * extent + 0.5), scale)
        for dim, extent in zip(dims, extents, strict=True)
    ]


def _whole_factor(extent: int, size: int) -> int:
    """How many times a symbolic extent goes into a size; 0 where that is no whole number."""
    if not symbolic((extent, size)):
        return 0
    factor, rest = divmod(hint(size), max(1, hint(extent)))
    return factor if not rest and same(size, extent * factor) else 0


def _resized(call: Call, x: Value, axes: Sequence[Axis], manner: Manner) -> Value:
    for axis in axes:
        if not axis.extent and axis.size:
            call.invalid(f"dim {axis.dim} is empty and cannot become {axis.size} elements")
        call.check_size((axis.size, TAPS), "f64", "a table")
    sizes = {axis.dim: axis.size for axis in axes}
    call.check_size([sizes.get(dim, extent) for dim, extent in enumerate(x.dims)], x.dtype)
    cropped = manner.coordinates == "tf_crop_and_resize"
    if not cropped and all(axis.size == axis.extent for axis in axes):
        return x
    moved = [
        axis
        for axis in axes
        if axis.size != axis.extent or axis.scale != 1 or (cropped and axis.region != (0.0, 1.0))
    ]
    result = _nearest(call, x, moved, manner)
    if manner.mode != "nearest":
        result = _weighted(call, x, moved, manner)
    if cropped:
        result = _outside(call, result, moved, manner)
    return result


def _places(call: Call, axis: Axis, manner: Manner, dtype: type) -> Array:
    found = coordinates(
        manner.coordinates, axis.extent, axis.size, axis.scale, axis.region, np.dtype(dtype)
    )
    if found is None:
        call.invalid(f"coordinate_transformation_mode {manner.coordinates!r} is unknown")
    return found


def _nearest(call: Call, x: Value, axes: Sequence[Axis], manner: Manner) -> Value:
    """Elements picked along each axis; whole factors are a broadcast of a new dim."""
    if manner.mode != "nearest":
        return x
    factors = [1] * x.rank
    for axis in axes:
        if symbolic((axis.extent,)):
            factors[axis.dim] = _open_factor(call, axis, manner)
            continue
        # f32 as in onnxruntime: what lies between two elements must fall to the same one.
        places = _places(call, axis, manner, np.float32)
        chosen = nearest(places, manner.nearest, axis.scale < 1)
        if chosen is None:
            call.invalid(f"nearest_mode {manner.nearest!r} is unknown")
        indices = np.clip(chosen, 0, max(axis.extent - 1, 0)).astype(np.int64)
        factor = axis.size // max(axis.extent, 1)
        if np.array_equal(indices, np.repeat(np.arange(axis.extent), factor)):
            factors[axis.dim] = factor
        else:
            x = _picked(call, x, axis.dim, indices)
    return _repeated(call, x, factors)


def _open_factor(call: Call, axis: Axis, manner: Manner) -> int:
    """How often each element of a symbolic dim is repeated.

    By a whole factor the places within one element do not depend on the element: what is true at
    the number at hand is true of all. Other forms need the number itself.
    """
    factor = int(axis.scale)
    known = replace(axis, extent=hint(axis.extent), size=hint(axis.extent) * factor)
    places = _places(call, known, manner, np.float32)
    chosen = nearest(places, manner.nearest, axis.scale < 1)
    repeats = np.repeat(np.arange(known.extent), factor)
    shifting = manner.coordinates in ("asymmetric", "half_pixel", "half_pixel_symmetric")
    if (
        chosen is None
        or not np.array_equal(chosen, repeats)
        or factor != axis.scale
        or not shifting
    ):
        int(axis.extent)
        call.unsupported("a resized dim of open extent by other than whole factors")
    return factor


def _repeated(call: Call, x: Value, factors: Sequence[int]) -> Value:
    """Each element of a dim as many times in sequence as its factor says."""
    if all(factor == 1 for factor in factors):
        return x
    apart, grown = [], []
    for extent, factor in zip(x.dims, factors, strict=True):
        apart += [extent, 1] if factor != 1 else [extent]
        grown += [extent, factor] if factor != 1 else [extent]
    together = [extent * factor for extent, factor in zip(x.dims, factors, strict=True)]
    return call.reshape(call.broadcast(call.reshape(x, apart), grown), together)


def _picked(call: Call, x: Value, dim: int, indices: Array) -> Value:
    """Elements of one dim by constant indices; a slice where they are evenly spaced."""
    steps = np.unique(np.diff(indices))
    if len(steps) == 1 and steps[0] > 0:
        starts, limits, strides = [0] * x.rank, list(x.dims), [1] * x.rank
        starts[dim], limits[dim], strides[dim] = (
            int(indices[0]),
            int(indices[-1]) + 1,
            int(steps[0]),
        )
        if limits == list(x.dims) and not any(starts) and strides[dim] == 1:
            return x
        return call.emit(
            "slice", x, starts=tuple(starts), limits=tuple(limits), strides=tuple(strides)
        )
    return call.emit("gather", x, call.constant(indices, "i64"), axis=dim)


def _weighted(call: Call, x: Value, axes: Sequence[Axis], manner: Manner) -> Value:
    """The sum of a few elements times weights, one axis after the other."""
    dtype = x.dtype
    x = call.cast(x, _computed_in(dtype))
    shape: Kernel = "linear" if manner.mode == "linear" else "cubic"
    for axis in axes:
        places = _places(call, axis, manner, np.float64)
        reach = min(axis.scale, 1.0) if manner.antialias else 1.0
        found = taps(shape, places, axis.extent, reach, manner.cubic, manner.exclude_outside)
        x = _sum_of_taps(call, x, axis.dim, found)
    return call.cast(x, dtype)


def _computed_in(dtype: str) -> str:
    """Floats in their own type, halves in f32; integers in a float type that holds them."""
    if kind(dtype) == "float":
        return "f32" if itemsize(dtype) < 4 else dtype
    return "f32" if itemsize(dtype) < 4 else "f64"


TAPS = 8
"""Numbers that are held at least for each place along an axis while a Resize is read."""
MANY_TAPS = 16
"""Above so many taps an axis is resized by one dot with the matrix of all weights."""


def _sum_of_taps(call: Call, x: Value, dim: int, found: Taps) -> Value:
    if found.weights.shape[1] > MANY_TAPS:
        return _by_matrix(call, x, dim, found)
    along = [1] * x.rank
    along[dim] = -1
    total: Value | None = None
    for indices, weights in zip(found.indices.T, found.weights.T, strict=True):
        if not weights.any() and total is not None:
            continue
        part = _picked(call, x, dim, indices)
        if not np.all(weights == 1):
            factor = call.constant(weights.reshape(along), x.dtype)
            part = call.elementwise("mul", part, factor)
        total = part if total is None else call.elementwise("add", total, part)
    return x if total is None else total


def _by_matrix(call: Call, x: Value, dim: int, found: Taps) -> Value:
    size = found.indices.shape[0]
    matrix = np.zeros((x.dims[dim], size))
    np.add.at(matrix, (found.indices, np.arange(size)[:, None]), found.weights)
    weights = call.constant(matrix, x.dtype)
    product = call.emit(
        "dot", x, weights, lhs_contract=(dim,), rhs_contract=(0,), lhs_batch=(), rhs_batch=()
    )
    order = [*range(dim), x.rank - 1, *range(dim, x.rank - 1)]
    return call.emit("transpose", product, perm=tuple(order))


def _outside(call: Call, x: Value, axes: Sequence[Axis], manner: Manner) -> Value:
    """The extrapolation value wherever a coordinate lies outside the input."""
    for axis in axes:
        places = _places(call, axis, manner, np.float64)
        outside = (places < 0) | (places > axis.extent - 1)
        if outside.any():
            along = [1] * x.rank
            along[axis.dim] = -1
            mask = call.constant(outside.reshape(along), "bool")
            filler = call.constant(manner.extrapolation, x.dtype)
            x = call.elementwise("where", mask, filler, x)
    return x
