"""Inputs of models that run in steps: tensors, strings, sequences and optionals as they come."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

from rooftile.core.errors import InvalidInput
from rooftile.session.narrow import NARROW

_TYPES: dict[str, Any] = {
    "float": np.float32,
    "double": np.float64,
    "float16": np.float16,
    "bfloat16": ml_dtypes.bfloat16,
    "bool": np.bool_,
    "string": object,
    **NARROW,
    **{
        name: getattr(np, name)
        for name in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
    },
}


@dataclass(frozen=True)
class Taken:
    """How one input is taken. `type` as onnxruntime writes it; a dim of `shape` may be open."""

    name: str
    type: str
    shape: tuple[int | str | None, ...]

    def take(self, value: Any) -> Any:
        """The value as steps hand it on; InvalidInput where it does not fit."""
        return _take(value, self.type, f"input {self.name!r}", self)


def takers(inputs: Sequence[Any], shapes: Sequence[Sequence[int | str | None]]) -> list[Taken]:
    """For inputs with `name` and `type`, and their shapes."""
    return [
        Taken(item.name, item.type, tuple(shape))
        for item, shape in zip(inputs, shapes, strict=True)
    ]


def is_tensor(text: str) -> bool:
    """Whether a type is of tensors of numbers."""
    return text.startswith("tensor(") and text != "tensor(string)"


def _take(value: Any, kind: str, where: str, whole: Taken | None = None) -> Any:
    if kind.startswith("optional("):
        inner = kind.removeprefix("optional(").removesuffix(")")
        return None if value is None else _take(value, inner, where)
    if kind.startswith("seq("):
        if not isinstance(value, (list, tuple)):
            raise InvalidInput(f"{where} is a {type(value).__name__}, the model takes a list")
        inner = kind.removeprefix("seq(").removesuffix(")")
        return [_take(item, inner, f"an element of {where}") for item in value]
    if not kind.startswith("tensor("):
        return value
    array = _array(value, kind.removeprefix("tensor(").removesuffix(")"), where)
    if whole is not None:
        _check_shape(array.shape, whole)
    return array


def _array(value: Any, element: str, where: str) -> Any:
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise InvalidInput(f"{where} must be an array; it cannot be read: {error}") from error
    wanted = _TYPES.get(element)
    if element == "string":
        if array.dtype.kind not in "OUSb" and array.size:
            raise InvalidInput(f"{where} holds {array.dtype}, the model takes strings")
        return array.astype(object) if array.dtype.kind != "S" else _decoded(array)
    if wanted is not None and array.dtype.newbyteorder("=") != np.dtype(wanted):
        shown = np.dtype(wanted)
        raise InvalidInput(
            f"{where} holds {array.dtype}, the model takes {shown}; pass "
            f"x.astype({shown.name!r}) if that loses nothing"
        )
    return np.ascontiguousarray(array, dtype=wanted).reshape(array.shape)


def _decoded(array: Any) -> Any:
    texts = [item.decode("utf-8", "replace") for item in array.ravel()]
    return np.array(texts, object).reshape(array.shape)


def _check_shape(shape: Sequence[int], whole: Taken) -> None:
    wanted = whole.shape
    fits = len(shape) == len(wanted) and all(
        not isinstance(dim, int) or dim == extent for dim, extent in zip(wanted, shape, strict=True)
    )
    if not fits:
        shown = ", ".join("?" if dim is None else str(dim) for dim in wanted)
        raise InvalidInput(
            f"input {whole.name!r} has the shape {list(shape)}, the model takes [{shown}]"
        )
