"""Inputs for a model: from files, else random ones that fit its signature."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import ml_dtypes
import numpy as np

from rooftile.core.errors import InvalidInput
from rooftile.core.signature import Argument, Signature
from rooftile.frontends.onnx import signature
from rooftile.ir.graph import Array

Feeds = dict[str, Array]
NamedShapes = Sequence[tuple[str, tuple[int, ...]]]

_NUMPY: dict[str, Any] = {
    "float": np.float32,
    "double": np.float64,
    "float16": np.float16,
    "bfloat16": ml_dtypes.bfloat16,
    "bool": np.bool_,
    **{f"{u}int{n}": np.dtype(f"{u}int{n}").type for u in ("", "u") for n in (8, 16, 32, 64)},
}


def feeds_for(
    model: Any,
    shapes: NamedShapes = (),
    feed: Path | None = None,
    files: Iterable[tuple[str, Path]] = (),
    seed: int = 0,
) -> tuple[Feeds, list[str]]:
    """Inputs by name, and a note for each input with open dims that were taken as 1.

    InvalidInput for files that cannot be read and for names or shapes that do not fit.
    """
    given = {} if feed is None else _archive(feed)
    given |= {name: _array(path) for name, path in files}
    return fitting(signature(model), dict(shapes), given, seed)


def fitting(
    found: Signature,
    shapes: Mapping[str, tuple[int, ...]],
    given: Mapping[str, Array],
    seed: int = 0,
) -> tuple[Feeds, list[str]]:
    """What is given, completed by seeded random arrays: normal floats, integers of 0 and 1."""
    names = [item.name for item in found.inputs]
    for name in (*shapes, *given):
        if name not in names:
            listed = ", ".join(map(repr, names)) or "nothing"
            raise InvalidInput(f"the model has no input {name!r}; it takes {listed}")
    known = {**shapes, **{name: array.shape for name, array in given.items()}}
    symbols = _symbols(found.inputs, known)
    rng, feeds, notes = np.random.default_rng(seed), {}, []
    for item in found.inputs:
        if item.name in given:
            feeds[item.name] = given[item.name]
            continue
        shape = known.get(item.name)
        if shape is None:
            shape, open_dims = _bound(item, symbols)
            if open_dims:
                notes.append(f"input {item.name!r}: open dims taken as 1: {', '.join(open_dims)}")
        feeds[item.name] = _random(item, shape, rng)
    return feeds, notes


def _symbols(inputs: Iterable[Argument], known: Mapping[str, tuple[int, ...]]) -> dict[str, int]:
    """Values of symbolic dims, as far as known shapes tell them."""
    symbols: dict[str, int] = {}
    for item in inputs:
        for dim, extent in zip(item.shape, known.get(item.name, ())):  # noqa: B905 (checked later)
            if isinstance(dim, str):
                symbols.setdefault(dim, extent)
    return symbols


def _bound(item: Argument, symbols: Mapping[str, int]) -> tuple[tuple[int, ...], list[str]]:
    """A shape without open dims, and the dims that nothing tells."""
    shape, unknown = [], []
    for place, dim in enumerate(item.shape):
        extent = symbols.get(dim) if isinstance(dim, str) else dim
        if not extent:  # files write 0 for a dim that is not known
            unknown.append(dim if isinstance(dim, str) else str(place))
        shape.append(extent or 1)
    return tuple(shape), unknown


def _random(item: Argument, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    kind = item.type.removeprefix("tensor(").removesuffix(")")
    if kind not in _NUMPY:
        raise InvalidInput(
            f"input {item.name!r} is a {item.type}: no random one can be made; give it by --feed"
        )
    dtype = np.dtype(_NUMPY[kind])
    if dtype.kind in "iub":  # 0 and 1 are valid as indices, masks, lengths and kinds
        return rng.integers(0, 2, shape).astype(dtype)
    return rng.standard_normal(shape).astype(dtype)


def _archive(path: Path) -> Feeds:
    found = _loaded(path, ".npz archive")
    if isinstance(found, np.ndarray):
        raise InvalidInput(f"{path} is a single array; give it by --input NAME={path}")
    with found:
        return {name: found[name] for name in found.files}


def _array(path: Path) -> Array:
    found = _loaded(path, ".npy array")
    if not isinstance(found, np.ndarray):
        raise InvalidInput(f"{path} is an archive; give it by --feed")
    return found


def _loaded(path: Path, wanted: str) -> Any:
    try:
        return np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError, BadZipFile) as error:
        raise InvalidInput(f"{path} cannot be read as an {wanted}: {error}") from error
