"""Arrays of types that programs hold in wider ones: float8, int4 and the like, of ml_dtypes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np

from rooftile.core.errors import InvalidInput

_NAMES: dict[str, tuple[str, Any]] = {
    "float8e4m3fn": ("float8_e4m3fn", np.float32),
    "float8e4m3fnuz": ("float8_e4m3fnuz", np.float32),
    "float8e5m2": ("float8_e5m2", np.float32),
    "float8e5m2fnuz": ("float8_e5m2fnuz", np.float32),
    "float8e8m0": ("float8_e8m0fnu", np.float32),
    "float4e2m1": ("float4_e2m1fn", np.float32),
    "uint4": ("uint4", np.uint8),
    "int4": ("int4", np.int8),
    "uint2": ("uint2", np.uint8),
    "int2": ("int2", np.int8),
}
NARROW: dict[str, np.dtype[Any]] = {
    name: np.dtype(getattr(ml_dtypes, own))
    for name, (own, _) in _NAMES.items()
    if hasattr(ml_dtypes, own)
}
"""The type of an array by the name that onnxruntime writes between "tensor(" and ")"."""
_WIDE = {NARROW[name]: wide for name, (_, wide) in _NAMES.items() if name in NARROW}


def widened(array: Any) -> Any:
    """What a program takes for an array of a narrow type; anything else as it is."""
    wide = _WIDE.get(array.dtype) if isinstance(array, np.ndarray) else None
    return array if wide is None else array.astype(wide)


def type_name(dtype: np.dtype[Any]) -> str:
    """The name of a narrow type; empty for others."""
    return next((name for name, own in NARROW.items() if own == dtype), "")


class Boundary:
    """The conversions of a model's inputs and outputs, given as types such as "tensor(int4)"."""

    def __init__(self, inputs: Sequence[str], outputs: Sequence[str]) -> None:
        self._inputs = _narrow(inputs)
        self._outputs = _narrow(outputs)

    def __bool__(self) -> bool:
        """Whether there is anything to convert."""
        return bool(self._inputs or self._outputs)

    def enter(self, values: Sequence[Any]) -> list[Any]:
        """Inputs as a program takes them; InvalidInput for one of another type."""
        found = list(values)
        for place, dtype in self._inputs.items():
            array = np.asarray(found[place])
            if array.dtype != dtype:
                raise InvalidInput(
                    f"input {place} holds {array.dtype}, the model takes {dtype}; pass "
                    f"x.astype(ml_dtypes.{dtype.name}) if that loses nothing"
                )
            found[place] = widened(array)
        return found

    def leave(self, values: Sequence[Any]) -> list[Any]:
        """Outputs as the model declares them."""
        types = self._outputs
        return [
            value.astype(types[place]) if place in types else value
            for place, value in enumerate(values)
        ]


def _narrow(types: Sequence[str]) -> dict[int, np.dtype[Any]]:
    names = [text.removeprefix("tensor(").removesuffix(")") for text in types]
    return {place: NARROW[name] for place, name in enumerate(names) if name in NARROW}
