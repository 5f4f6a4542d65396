"""Ops whose output sizes depend on the data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from rooftile.core.errors import InvalidInput
from rooftile.host.registry import Kinds, body, same

Array = npt.NDArray[Any]
_WHY = "the size of its output depends on the data"


@body("NonZero", why=_WHY)
def nonzero(x: Array) -> Array:
    """The positions of values other than 0, as i64 [rank, count]; a scalar counts as [1]."""
    return np.array(np.nonzero(np.atleast_1d(x)), np.int64)


@body("Compress", gives=same, why=_WHY)
def compress(x: Array, condition: Array, axis: int | None = None) -> Array:
    """The elements or slices where the condition, which may be shorter, holds."""
    extent = x.size if axis is None else x.shape[axis]
    if condition.ndim != 1 or np.nonzero(condition)[0].max(initial=-1) >= extent:
        raise InvalidInput(f"a condition of shape {list(condition.shape)} does not fit {extent}")
    places = np.nonzero(condition)[0]
    return np.ascontiguousarray(np.take(x.ravel() if axis is None else x, places, axis or 0))


def _unique_kinds(kinds: Sequence[str], attributes: Mapping[str, Any]) -> Kinds:
    return (kinds[0], "tensor")


@body("Unique", gives=_unique_kinds, why=_WHY)
def unique(x: Array, axis: int | None = None, sorted: int = 1) -> tuple[Array, Array, Array, Array]:
    """The different values (or slices of an axis), the first place of each, where each element is
    among them, and how often each occurs.
    """
    slices = x.reshape(-1, 1) if axis is None else np.moveaxis(x, axis, 0)
    keys = [_key(row) for row in slices.reshape(len(slices), -1)]
    first: dict[Any, int] = {}
    for place, key in enumerate(keys):
        first.setdefault(key, place)
    found = list(first)
    if sorted:
        found.sort()
    number = {key: place for place, key in enumerate(found)}
    places = np.array([first[key] for key in found], np.int64)
    inverse = np.array([number[key] for key in keys], np.int64)
    counts = np.bincount(inverse, minlength=len(found)).astype(np.int64)
    kept = slices[places] if len(places) else slices[:0]
    values = kept.reshape(-1) if axis is None else np.moveaxis(kept, 0, axis)
    return np.ascontiguousarray(values), places, inverse, counts


def _key(row: Array) -> tuple[Any, ...]:
    """Equal for equal rows and sorted as they are; NaNs are all the same, and the last."""
    return tuple((True, 0) if item != item else (False, item) for item in row.tolist())


@body("NonMaxSuppression", why=_WHY)
def non_max_suppression(
    boxes: Array,
    scores: Array,
    max_output_boxes_per_class: Array | None = None,
    iou_threshold: Array | None = None,
    score_threshold: Array | None = None,
    center_point_box: int = 0,
) -> Array:
    """Boxes by falling score that overlap no better one of their class: i64 [n, 3] of batch,
    class, box. boxes: [batch, n, 4], scores: [batch, class, n].
    """
    if boxes.ndim != 3 or boxes.shape[2] != 4 or scores.ndim != 3:
        raise InvalidInput(
            f"boxes [batch, n, 4] and scores [batch, class, n] are needed, not "
            f"{list(boxes.shape)} and {list(scores.shape)}"
        )
    limit = int(_scalar(max_output_boxes_per_class, 0))
    most, least = float(_scalar(iou_threshold, 0.0)), _scalar(score_threshold, None)
    found: list[tuple[int, int, int]] = []
    corners = _corners(boxes, center_point_box)
    for batch in range(scores.shape[0] if limit > 0 else 0):
        for group in range(scores.shape[1]):
            kept = _suppressed(corners[batch], scores[batch, group], limit, most, least)
            found += [(batch, group, box) for box in kept]
    return np.array(found, np.int64).reshape(len(found), 3)


def _corners(boxes: Array, center: int) -> Array:
    """Boxes as least y, least x, largest y, largest x."""
    if center:
        middle, half = boxes[..., 1::-1], boxes[..., 3:1:-1] / np.float32(2)
        return np.concatenate([middle - half, middle + half], -1)
    a, b = boxes[..., :2], boxes[..., 2:]
    return np.concatenate([np.minimum(a, b), np.maximum(a, b)], -1)


def _suppressed(
    boxes: Array, scores: Array, limit: int, most: float, least: float | None
) -> list[int]:
    order = np.argsort(-scores, kind="stable")
    if least is not None:
        order = order[scores[order] > least]
    areas = np.prod(boxes[:, 2:] - boxes[:, :2], axis=-1)
    kept: list[int] = []
    while len(order) and len(kept) < limit:
        best, rest = int(order[0]), order[1:]
        kept.append(best)
        low = np.maximum(boxes[best, :2], boxes[rest, :2])
        high = np.minimum(boxes[best, 2:], boxes[rest, 2:])
        shared = np.prod(np.maximum(high - low, 0), axis=-1)
        union = areas[best] + areas[rest] - shared
        overlap = np.where(union > 0, shared / np.where(union > 0, union, 1), 0)
        order = rest[overlap <= most]
    return kept


def _scalar(value: Array | None, default: Any) -> Any:
    return default if value is None or not value.size else value.reshape(-1)[0]
