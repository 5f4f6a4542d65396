"""Sequences as Python lists, optionals as the value or None."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from rooftile.core.errors import InvalidInput
from rooftile.host.registry import Kinds, body, same, tensors

Array = npt.NDArray[Any]
_WHY = "it computes on sequences"
_OPTIONAL = "it computes on optionals"


def _sequence(kinds: Sequence[str], attributes: Mapping[str, Any]) -> Kinds:
    return (f"seq({kinds[0] if kinds else 'tensor'})",)


def _empty(kinds: Sequence[str], attributes: Mapping[str, Any]) -> Kinds:
    return ("seq(string)" if attributes.get("dtype") == 8 else "seq(tensor)",)


def _element(kinds: Sequence[str], attributes: Mapping[str, Any]) -> Kinds:
    return (kinds[0].removeprefix("seq(").removesuffix(")"),)


@body("SequenceConstruct", gives=_sequence, why=_WHY)
def sequence_construct(*items: Any) -> list[Any]:
    """A sequence of the inputs."""
    return list(items)


@body("SequenceEmpty", gives=_empty, why=_WHY)
def sequence_empty(dtype: int = 1) -> list[Any]:
    """A sequence of nothing."""
    return []


@body("SequenceAt", gives=_element, why=_WHY)
def sequence_at(items: list[Any], position: Array) -> Any:
    """One element; negative positions count from the end."""
    return items[_place(position, len(items), len(items) - 1)]


@body("SequenceInsert", gives=same, why=_WHY)
def sequence_insert(items: list[Any], item: Any, position: Array | None = None) -> list[Any]:
    """The sequence with an element more, at the end where no position is given."""
    place = len(items) if position is None else _place(position, len(items), len(items))
    return [*items[:place], item, *items[place:]]


@body("SequenceErase", gives=same, why=_WHY)
def sequence_erase(items: list[Any], position: Array | None = None) -> list[Any]:
    """The sequence with an element less, the last where no position is given."""
    last = np.asarray(-1)
    place = _place(last if position is None else position, len(items), len(items) - 1)
    return [*items[:place], *items[place + 1 :]]


@body("SequenceLength", why=_WHY)
def sequence_length(items: list[Any]) -> Array:
    """How many elements, as i64."""
    return np.asarray(len(items), np.int64)


@body("SplitToSequence", gives=_sequence, why=_WHY)
def split_to_sequence(
    x: Array, split: Array | None = None, axis: int = 0, keepdims: int = 1
) -> list[Any]:
    """Parts of an axis: of given sizes, of one size, or of size 1 (the dim goes if asked)."""
    extent = x.shape[axis]
    if split is None:
        parts = [np.take(x, [place], axis) for place in range(extent)]
        return parts if keepdims else [part.squeeze(axis) for part in parts]
    if split.ndim == 0:
        size = int(split)
        if size < 1:
            raise InvalidInput(f"parts of size {size} cannot be made")
        sizes = [min(size, extent - start) for start in range(0, extent, size)]
    else:
        sizes = [int(size) for size in split]
    if sum(sizes) != extent or min(sizes, default=0) < 0:
        raise InvalidInput(f"parts of {sizes} do not make up axis {axis} of {extent}")
    return [np.ascontiguousarray(part) for part in np.split(x, np.cumsum(sizes)[:-1], axis)]


@body("ConcatFromSequence", gives=_element, why=_WHY)
def concat_from_sequence(items: list[Any], axis: int = 0, new_axis: int = 0) -> Array:
    """The elements joined along an axis of theirs, or along a new one."""
    return np.stack(items, axis) if new_axis else np.concatenate(items, axis)


def _optional(kinds: Sequence[str], attributes: Mapping[str, Any]) -> Kinds:
    return (f"optional({kinds[0] if kinds else 'tensor'})",)


def _content(kinds: Sequence[str], attributes: Mapping[str, Any]) -> Kinds:
    kind = kinds[0]
    inner = kind.removeprefix("optional(").removesuffix(")")
    return (inner if kind.startswith("optional(") else kind,)


@body("Optional", gives=_optional, why=_OPTIONAL)
def optional(x: Any = None, type: str = "") -> Any:
    """The input, or None."""
    return x


@body("OptionalHasElement", gives=tensors, why=_OPTIONAL)
def optional_has_element(x: Any = None) -> Array:
    """Whether there is a value."""
    return np.asarray(x is not None)


@body("OptionalGetElement", gives=_content, why=_OPTIONAL)
def optional_get_element(x: Any) -> Any:
    """The value, which must be there."""
    if x is None:
        raise InvalidInput("the optional is empty")
    return x


def _place(position: Array, length: int, last: int) -> int:
    place = int(np.asarray(position).reshape(()))
    found = place + length if place < 0 else place
    if not 0 <= found <= last:
        raise InvalidInput(f"position {place} is outside a sequence of {length} elements")
    return found
