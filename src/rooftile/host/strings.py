"""Ops on strings. Tensors of strings are arrays of Python strings (dtype object)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from rooftile.core.errors import InvalidInput
from rooftile.host.regex import Pattern
from rooftile.host.registry import body, strings

Array = npt.NDArray[Any]
_WHY = "it computes on strings"
MAX_LENGTH = 1 << 27
"""Characters, or strings, that one op may make."""


@body("StringConcat", gives=strings, why=_WHY)
def string_concat(a: Array, b: Array) -> Array:
    """Strings joined pair by pair, shapes broadcast."""
    left, right = np.broadcast_arrays(a, b)
    _check_length(sum(map(len, left.ravel())) + sum(map(len, right.ravel())))
    return _objects([x + y for x, y in zip(left.ravel(), right.ravel(), strict=True)], left.shape)


def _split_kinds(kinds: Sequence[str], attributes: Any) -> tuple[str, ...]:
    return ("string", "tensor")


@body("StringSplit", gives=_split_kinds, why=_WHY)
def string_split(x: Array, delimiter: str = "", maxsplit: int | None = None) -> tuple[Array, Array]:
    """The parts of each string along a new last dim, filled up with "", and how many there are."""
    limit = -1 if maxsplit is None else maxsplit
    parts = [text.split(delimiter or None, limit) if text else [] for text in x.ravel()]
    longest = max(map(len, parts), default=0)
    _check_length(longest * len(parts))
    filled = [item + [""] * (longest - len(item)) for item in parts]
    flat = [text for item in filled for text in item]
    counts = np.array([len(item) for item in parts], np.int64).reshape(x.shape)
    return _objects(flat, (*x.shape, longest)), counts


@body("StringNormalizer", gives=strings, why=_WHY)
def string_normalizer(
    x: Array,
    case_change_action: str = "NONE",
    is_case_sensitive: int = 0,
    locale: str = "",
    stopwords: Sequence[str] = (),
) -> Array:
    """Stop words left out, then letters in upper or lower case; one empty string if all are gone.

    x: [C] or [1, C].
    """
    if x.ndim > 2 or (x.ndim == 2 and x.shape[0] != 1):
        raise InvalidInput(f"strings of shape [C] or [1, C] are needed, not {list(x.shape)}")
    if case_change_action not in ("NONE", "LOWER", "UPPER"):
        raise InvalidInput(f"case_change_action {case_change_action!r} is not known")
    if is_case_sensitive:
        refused = set(stopwords)
        kept = [text for text in x.ravel() if text not in refused]
    else:
        refused = {word.lower() for word in stopwords}
        kept = [text for text in x.ravel() if text.lower() not in refused]
    if case_change_action != "NONE":
        upper = case_change_action == "UPPER"
        kept = [text.upper() if upper else text.lower() for text in kept]
    found = kept or [""]
    return _objects(found, (len(found),) if x.ndim < 2 else (1, len(found)))


@body("RegexFullMatch", why=_WHY)
def regex_full_match(x: Array, pattern: str = "") -> Array:
    """Whether each string as a whole matches a pattern of RE2."""
    wanted = Pattern(pattern)
    return np.array([wanted.matches(text) for text in x.ravel()], np.bool_).reshape(x.shape)


def texts_of(x: Array) -> Array:
    """Numbers as strings, written as onnxruntime writes them."""
    if x.dtype == object:
        return x
    if x.dtype.kind in "iub":
        return _objects([str(int(item)) for item in x.ravel()], x.shape)
    return _objects([_number(float(item)) for item in x.ravel()], x.shape)


def numbers_of(x: Array, dtype: np.dtype[Any]) -> Array:
    """Strings as numbers; InvalidInput for one that is none."""
    try:
        if dtype.kind in "iu":
            found = [int(text) if _is_integer(text) else int(float(text)) for text in x.ravel()]
            return np.array(found, object).astype(dtype).reshape(x.shape)
        numbers = np.array([float(text) for text in x.ravel()], np.float64)
        if dtype == np.bool_:
            return np.asarray(numbers.reshape(x.shape) != 0)
        return numbers.astype(dtype).reshape(x.shape)
    except (ValueError, OverflowError) as error:
        raise InvalidInput(f"a string is no {dtype}: {error}") from error


def _is_integer(text: str) -> bool:
    return text.strip().lstrip("+-").isdigit()


def _number(value: float) -> str:
    """Eight digits, for doubles too."""
    if value != value:
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "INF" if value > 0 else "-INF"
    return f"{value:.8g}"


def _check_length(count: int) -> None:
    if count > MAX_LENGTH:
        raise InvalidInput(f"strings of {count} characters or parts in all are too long")


def _objects(texts: Sequence[str], shape: Sequence[int]) -> Array:
    found = np.empty(len(texts), object)
    found[:] = texts
    return found.reshape(tuple(shape))
