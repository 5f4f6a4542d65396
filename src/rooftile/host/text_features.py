"""Features of texts and categories: n-grams, labels, dictionaries (also of ai.onnx.ml)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from rooftile.core.errors import InvalidInput
from rooftile.host.registry import Kinds, body

Array = npt.NDArray[Any]
MAX_COUNTS = 1 << 28
"""Numbers that TfIdfVectorizer may give."""
_ML = "ai.onnx.ml"
_WHY = "it looks strings or keys up"


@body("TfIdfVectorizer", why="it counts n-grams in tables")
def tf_idf_vectorizer(
    x: Array,
    mode: str,
    min_gram_length: int,
    max_gram_length: int,
    max_skip_count: int,
    ngram_counts: Sequence[int],
    ngram_indexes: Sequence[int],
    pool_int64s: Sequence[int] = (),
    pool_strings: Sequence[str] = (),
    weights: Sequence[float] | None = None,
) -> Array:
    """How often each n-gram of the pool occurs in each row, weighted: f32 [..., features]."""
    grams = _pool(pool_strings or pool_int64s, ngram_counts)
    if len(grams) != len(ngram_indexes) or min(ngram_indexes, default=0) < 0:
        raise InvalidInput("ngram_indexes do not fit the pool")
    places = dict(zip(grams, ngram_indexes, strict=True))
    factor = dict(zip(grams, [1.0] * len(grams) if weights is None else weights, strict=True))
    rows = x.reshape(1, -1) if x.ndim < 2 else x
    width = max(ngram_indexes, default=-1) + 1
    if width * len(rows) > MAX_COUNTS:
        raise InvalidInput(f"{len(rows)} rows of {width} counts are too many")
    most = min(max_gram_length, max(map(len, grams), default=0))
    counts = np.zeros((len(rows), width), np.float32)
    scale = np.zeros(width, np.float32)
    for gram, place in places.items():
        scale[place] = factor[gram]
    for row, found in zip(rows, counts, strict=True):
        for gram in _grams(row.tolist(), min_gram_length, most, max_skip_count):
            if gram in places:
                found[places[gram]] += 1
    result = counts if mode == "TF" else (counts > 0).astype(np.float32)
    result = result if mode == "TF" else result * scale if mode == "IDF" else counts * scale
    return result.reshape(width) if x.ndim < 2 else result


def _pool(items: Sequence[Any], starts: Sequence[int]) -> list[tuple[Any, ...]]:
    limits = [*starts[1:], len(items)]
    if list(starts) != sorted(starts) or not 0 <= min(starts, default=0) <= limits[-1]:
        raise InvalidInput(f"ngram_counts {list(starts)} do not cut a pool of {len(items)} items")
    found: list[tuple[Any, ...]] = []
    for number, (start, limit) in enumerate(zip(starts, limits, strict=True)):
        length = number + 1
        found += [tuple(items[at : at + length]) for at in range(start, limit, length)]
    return found


def _grams(row: Sequence[Any], least: int, most: int, skips: int) -> list[tuple[Any, ...]]:
    found: list[tuple[Any, ...]] = []
    for length in range(least, most + 1):
        most_skips = min(skips, len(row)) if length > 1 else 0  # what skips more finds nothing
        for skip in range(most_skips + 1):
            span = (length - 1) * (skip + 1)
            for start in range(len(row) - span):
                found.append(tuple(row[start : start + span + 1 : skip + 1]))
    return found


def _label_kinds(kinds: Sequence[str], attributes: Mapping[str, Any]) -> Kinds:
    values = attributes.get("values_tensor")
    holds_texts = values is not None and values.dtype.kind == "O"
    text = "values_strings" in attributes or holds_texts
    if "classes_strings" in attributes:
        text = kinds[0] != "string"
    return ("string" if text else "tensor",)


@body("LabelEncoder", domain=_ML, gives=_label_kinds, why=_WHY)
def label_encoder(x: Array, **attributes: Any) -> Array:
    """Each element replaced by the value of its key, or by a default."""
    if "classes_strings" in attributes:
        return _by_class(x, **attributes)
    keys = _list(attributes, "keys")
    values = _list(attributes, "values")
    if not len(keys) or len(keys) != len(values):
        raise InvalidInput(f"{len(keys)} keys do not fit {len(values)} values")
    table = {_key(key): value for key, value in zip(keys, values, strict=True)}
    text = isinstance(values[0], str)
    dtype: Any = object if text else _value_type(attributes)
    default = _default(attributes, text)
    found = np.empty(x.size, dtype)
    for place, item in enumerate(x.reshape(-1).tolist()):
        found[place] = table.get(_key(item), default)
    return found.reshape(x.shape)


def _by_class(
    x: Array,
    classes_strings: Sequence[str],
    default_int64: int = -1,
    default_string: str = "_Unused",
) -> Array:
    """The first form of LabelEncoder: strings to their places, places to their strings."""
    if x.dtype == object:
        table = {text: place for place, text in enumerate(classes_strings)}
        places = [table.get(text, default_int64) for text in x.ravel()]
        return np.array(places, np.int64).reshape(x.shape)
    count = len(classes_strings)
    texts = [classes_strings[i] if 0 <= i < count else default_string for i in x.ravel().tolist()]
    found = np.empty(len(texts), object)
    found[:] = texts
    return found.reshape(x.shape)


def _list(attributes: Mapping[str, Any], name: str) -> Sequence[Any]:
    for kind in ("strings", "int64s", "floats"):
        if f"{name}_{kind}" in attributes:
            return list(attributes[f"{name}_{kind}"])
    tensor = attributes.get(f"{name}_tensor")
    return [] if tensor is None else list(tensor.reshape(-1).tolist())


def _value_type(attributes: Mapping[str, Any]) -> Any:
    if "values_tensor" in attributes:
        return attributes["values_tensor"].dtype
    return np.int64 if "values_int64s" in attributes else np.float32


def _default(attributes: Mapping[str, Any], text: bool) -> Any:
    tensor = attributes.get("default_tensor")
    if tensor is not None:
        return tensor.reshape(-1)[0]
    if text:
        return attributes.get("default_string", "_Unused")
    if _value_type(attributes) == np.float32:
        return attributes.get("default_float", -0.0)
    return attributes.get("default_int64", -1)


def _key(item: Any) -> Any:
    """NaN finds NaN."""
    return "\0nan" if item != item else item


@body(
    "CategoryMapper",
    domain=_ML,
    why=_WHY,
    gives=lambda kinds, attributes: ("tensor",) if kinds[0] == "string" else ("string",),
)
def category_mapper(
    x: Array,
    cats_strings: Sequence[str],
    cats_int64s: Sequence[int],
    default_int64: int = -1,
    default_string: str = "_Unused",
) -> Array:
    """Strings to their numbers, or numbers to their strings."""
    if x.dtype == object:
        numbers = dict(zip(cats_strings, cats_int64s, strict=True))
        found = [numbers.get(text, default_int64) for text in x.ravel()]
        return np.array(found, np.int64).reshape(x.shape)
    texts = dict(zip(cats_int64s, cats_strings, strict=True))
    made = np.empty(x.size, object)
    made[:] = [texts.get(number, default_string) for number in x.ravel().tolist()]
    return made.reshape(x.shape)


@body("DictVectorizer", domain=_ML, why=_WHY)
def dict_vectorizer(
    x: Mapping[Any, Any],
    string_vocabulary: Sequence[str] = (),
    int64_vocabulary: Sequence[int] = (),
) -> Array:
    """The values of a map in the order of a vocabulary, 0 for what it lacks: [1, features]."""
    words = list(string_vocabulary or int64_vocabulary)
    kind = type(next(iter(x.values()), 0.0))
    dtype = object if kind is str else np.int64 if issubclass(kind, (int, np.integer)) else None
    missing: Any = "" if dtype is object else 0
    return np.array([[x.get(word, missing) for word in words]], dtype or np.float32)


@body("ZipMap", domain=_ML, why="it makes maps", gives=lambda kinds, attributes: ("seq(map)",))
def zip_map(
    x: Array, classlabels_strings: Sequence[str] = (), classlabels_int64s: Sequence[int] = ()
) -> list[dict[Any, float]]:
    """For each row of [n, classes] (or [classes]) a map from labels to numbers."""
    labels = list(classlabels_strings or classlabels_int64s)
    rows = np.atleast_2d(x)
    if rows.shape[-1] != len(labels):
        raise InvalidInput(f"{rows.shape[-1]} columns do not fit {len(labels)} labels")
    return [dict(zip(labels, row.tolist(), strict=True)) for row in rows]


@body("CastMap", domain=_ML, why="it reads maps")
def cast_map(
    x: Mapping[int, Any], cast_to: str = "TO_FLOAT", map_form: str = "DENSE", max_map: int = 1
) -> Array:
    """The values of a map in the order of its keys: [1, n]; SPARSE puts each at its key."""
    dtype: Any = {"TO_FLOAT": np.float32, "TO_INT64": np.int64, "TO_STRING": object}[cast_to]
    if map_form == "DENSE":
        found: Array = np.array([[x[key] for key in sorted(x)]])
        return found.astype(str).astype(object) if dtype is object else found.astype(dtype)
    if not 0 < max_map <= 1 << 24:
        raise InvalidInput(f"max_map {max_map} is out of range")
    sparse = np.zeros((1, max_map), dtype)
    for key, value in x.items():
        if 0 <= key < max_map:
            sparse[0, key] = value
    return sparse


@body("ArrayFeatureExtractor", domain=_ML, gives=lambda kinds, attributes: (kinds[0],))
def array_feature_extractor(x: Array, places: Array) -> Array:
    """Columns picked from the last dim."""
    found = np.take(x, places.reshape(-1), -1)
    return found.reshape(1, -1) if x.ndim == 1 else found
