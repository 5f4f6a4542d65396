"""Inputs of models that run in steps: tensors, strings, sequences and optionals as they come."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np

from rooftile.core.errors import InvalidInput
from rooftile.runtime.arrays import readable, tensor
from rooftile.session.fitting import Wanted, fitting
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
    shape: Wanted

    usual: list[Any] = field(default_factory=list, compare=False)
    """Type and shape of the last array that was taken as it is: the next one is likely the same."""

    def take(self, value: Any) -> Any:
        """The value as steps hand it on; InvalidInput where it does not fit."""
        plain = type(value) is np.ndarray and value.flags.c_contiguous and value.flags.aligned
        if plain and [value.dtype, value.shape] == self.usual:
            return value
        taken = _take(value, self.type, f"input {self.name!r}", self)
        if plain and is_tensor(self.type) and taken.shape == value.shape:
            self.usual[:] = value.dtype, value.shape
        return taken


def takers(inputs: Sequence[Any], shapes: Sequence[Wanted]) -> list[Taken]:
    """For inputs with `name` and `type`, and their shapes."""
    return [Taken(item.name, item.type, shape) for item, shape in zip(inputs, shapes, strict=True)]


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
        array = array.reshape(fitting(whole.name, array.shape, whole.shape))
    return array


def _array(value: Any, element: str, where: str) -> Any:
    if element == "string":
        array = np.asarray(value) if isinstance(value, (str, bytes)) else readable(value, where)
        if array.dtype.kind not in "OUSb" and array.size:
            raise InvalidInput(f"{where} holds {array.dtype}, the model takes strings")
        return array.astype(object) if array.dtype.kind != "S" else _decoded(array)
    wanted = _TYPES.get(element)
    array = readable(value, where) if wanted is None else tensor(value, np.dtype(wanted), where)
    return np.ascontiguousarray(array, dtype=wanted).reshape(array.shape)


def _decoded(array: Any) -> Any:
    texts = [item.decode("utf-8", "replace") for item in array.ravel()]
    return np.array(texts, object).reshape(array.shape)
