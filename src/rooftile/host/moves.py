"""Data movement of strings and sequences, and of tensors whose bounds change with every run."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from rooftile.core.errors import InvalidInput
from rooftile.core.limits import machine_bytes
from rooftile.host.registry import Kinds, body, same
from rooftile.host.slices import part_of
from rooftile.host.strings import numbers_of, texts_of
from rooftile.host.types import STRING, element

Array = npt.NDArray[Any]


def _cast_kinds(kinds: Sequence[str], attributes: Mapping[str, Any]) -> Kinds:
    return ("string" if attributes.get("to") == STRING else "tensor",)


@body("Cast", gives=_cast_kinds, why="it reads or writes strings")
def cast(x: Array, to: int, saturate: int = 1, round_mode: str = "up") -> Array:
    """To or from strings."""
    if to == STRING:
        return texts_of(x)
    return numbers_of(x, element(to)) if x.dtype == object else x.astype(element(to))


def _like_second(kinds: Sequence[str], attributes: Mapping[str, Any]) -> Kinds:
    return (kinds[1],)


@body("CastLike", gives=_like_second, why="it reads or writes strings")
def cast_like(x: Array, like: Array, saturate: int = 1, round_mode: str = "up") -> Array:
    """To the type of the second input."""
    if like.dtype == object:
        return texts_of(x)
    return numbers_of(x, like.dtype) if x.dtype == object else x.astype(like.dtype)


@body("Identity", gives=same)
def identity(x: Any) -> Any:
    """The input itself."""
    return x


@body("Shape")
def shape(x: Array, start: int = 0, end: int | None = None) -> Array:
    """The dims from `start` to `end` as i64."""
    return np.array(x.shape[start:end], np.int64)


@body("Size")
def size(x: Array) -> Array:
    """The number of elements as i64."""
    return np.asarray(x.size, np.int64)


@body("Reshape", gives=same)
def reshape(x: Array, shape: Array, allowzero: int = 0) -> Array:
    """0 takes the input's dim over (unless allowzero), -1 is what remains."""
    dims = [int(extent) for extent in shape]
    if not allowzero:
        dims = [extent if extent else x.shape[place] for place, extent in enumerate(dims)]
    return x.reshape(dims)


@body("Flatten", gives=same)
def flatten(x: Array, axis: int = 1) -> Array:
    """A matrix: the dims before `axis`, and the rest."""
    axis += x.ndim if axis < 0 else 0
    return x.reshape(math.prod(x.shape[:axis]), math.prod(x.shape[axis:]))


@body("Squeeze", gives=same)
def squeeze(x: Array, axes: Any = None) -> Array:
    """Dims of 1 left out."""
    return x.squeeze(None if axes is None else _ints(axes))


@body("Unsqueeze", gives=same)
def unsqueeze(x: Array, axes: Any) -> Array:
    """Dims of 1 put in."""
    return np.expand_dims(x, _ints(axes))


@body("Transpose", gives=same)
def transpose(x: Array, perm: Sequence[int] | None = None) -> Array:
    """Dims permuted; reversed where no order is given."""
    return np.ascontiguousarray(x.transpose(perm))


@body("Concat", gives=same)
def concat(*values: Array, axis: int = 1) -> Array:
    """Tensors joined along one axis."""
    return np.concatenate(values, axis)


@body("Expand", gives=same)
def expand(x: Array, shape: Array) -> Array:
    """Dims of 1 grown to a shape."""
    wanted = np.broadcast_shapes(x.shape, _checked(_ints(shape)))
    return np.ascontiguousarray(np.broadcast_to(x, wanted))


@body("Tile", gives=same)
def tile(x: Array, repeats: Array) -> Array:
    """Each dim repeated."""
    counts = _ints(repeats)
    _checked([extent * count for extent, count in zip(x.shape, counts, strict=True)])
    return np.tile(x, counts)


@body("Gather", gives=same)
def gather(x: Array, indices: Array, axis: int = 0) -> Array:
    """Elements of one axis picked by integers; InvalidInput for one out of range."""
    return np.take(x, indices, axis)


@body("GatherElements", gives=same)
def gather_elements(x: Array, indices: Array, axis: int = 0) -> Array:
    """Elements of one axis picked by an integer for each element."""
    return np.take_along_axis(x, indices, axis)


@body("Slice", gives=same)
def slice_(x: Array, starts: Any, ends: Any, axes: Any = None, steps: Any = None) -> Array:
    """A part of each axis."""
    first, last = _ints(starts), _ints(ends)
    places = range(len(first)) if axes is None else _ints(axes)
    strides = (1,) * len(first) if steps is None else _ints(steps)
    found = [slice(None)] * x.ndim
    for place, start, end, step in zip(places, first, last, strides, strict=True):
        low, limit, stride = part_of(x.shape[place], start, end, step)
        found[place] = slice(low, None if limit < 0 else limit, stride)
    return np.ascontiguousarray(x[tuple(found)])


@body("Split", gives=same)
def split(
    x: Array, split: Any = None, axis: int = 0, num_outputs: int | None = None
) -> tuple[Array, ...]:
    """Parts of an axis, of given sizes or equal ones."""
    extent = x.shape[axis]
    if split is None:
        if not num_outputs:
            raise InvalidInput("neither sizes nor a number of parts are given")
        each = -(-extent // num_outputs)
        sizes = [max(0, min(each, extent - each * place)) for place in range(num_outputs)]
    else:
        sizes = list(_ints(split))
    if sum(sizes) != extent or min(sizes, default=0) < 0:
        raise InvalidInput(f"parts of {sizes} do not make up an axis of {extent}")
    parts = np.split(x, np.cumsum(sizes)[:-1], axis)
    return tuple(np.ascontiguousarray(part) for part in parts)


@body("Equal")
def equal(a: Array, b: Array) -> Array:
    """Where two tensors of strings are equal."""
    return np.asarray(a == b, np.bool_)


def _second(kinds: Sequence[str], attributes: Mapping[str, Any]) -> Kinds:
    return (kinds[1],)


@body("Where", gives=_second)
def where(condition: Array, a: Array, b: Array) -> Array:
    """Elements of one or the other."""
    return np.where(condition, a, b)


@body("Range", why="its length changes with every run")
def range_(start: Array, limit: Array, delta: Array) -> Array:
    """Numbers from start up to limit by delta."""
    first, last, step = (item.reshape(()).item() for item in (start, limit, delta))
    if not step:
        raise InvalidInput("delta is 0")
    count = max(0, math.ceil((last - first) / step))
    _checked([count])
    found: Array = (first + np.arange(count) * step).astype(start.dtype)
    return found


@body("ConstantOfShape", why="its shape changes with every run")
def constant_of_shape(shape: Array, value: Array | None = None) -> Array:
    """One number (f32 zero by default) in a shape."""
    one = np.zeros(1, np.float32) if value is None else value
    return np.full(_checked(_ints(shape)), one.reshape(-1)[0], one.dtype)


def _ints(values: Any) -> tuple[int, ...]:
    return tuple(int(item) for item in np.asarray(values).reshape(-1))


def _checked(shape: Sequence[int]) -> tuple[int, ...]:
    if min(shape, default=0) < 0 or math.prod(shape) * 8 > machine_bytes():
        raise InvalidInput(f"a tensor of shape {list(shape)} cannot be made")
    return tuple(shape)
