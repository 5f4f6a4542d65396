"""OrtValue: a tensor as onnxruntime hands it about. Here always a numpy array on the CPU."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from rooftile.core.errors import InvalidInput, InvalidOption

Array = npt.NDArray[Any]
_TYPE_NAMES = {
    "float64": "double",
    "float32": "float",
}


class OrtValue:
    """A tensor in CPU memory."""

    def __init__(self, array: Array) -> None:
        self._array = array

    @classmethod
    def ortvalue_from_numpy(
        cls, numpy_obj: Array, device_type: str = "cpu", device_id: int = 0
    ) -> OrtValue:
        """A value that shares the memory of an array."""
        check_device(device_type)
        return cls(np.asarray(numpy_obj))

    @classmethod
    def ortvalue_from_shape_and_type(
        cls,
        shape: Sequence[int],
        element_type: npt.DTypeLike = np.float32,
        device_type: str = "cpu",
        device_id: int = 0,
    ) -> OrtValue:
        """A value of undefined content."""
        check_device(device_type)
        return cls(np.empty(tuple(shape), element_type))

    def numpy(self) -> Array:
        """The array itself, not a copy."""
        return self._array

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> Array:
        array = self._array if dtype is None else self._array.astype(dtype, copy=False)
        return array.copy() if copy else array

    def shape(self) -> list[int]:
        """Its extents."""
        return list(self._array.shape)

    def data_type(self) -> str:
        """As onnxruntime writes it: "tensor(float)"."""
        name = self._array.dtype.name
        return f"tensor({_TYPE_NAMES.get(name, name)})"

    def device_name(self) -> str:
        """Where it lies."""
        return "cpu"

    def data_ptr(self) -> int:
        """The address of its first element."""
        return int(self._array.ctypes.data)

    def is_tensor(self) -> bool:
        """Always: there are no sequences or maps."""
        return True

    def has_value(self) -> bool:
        """Always: there are no optionals."""
        return True

    def update_inplace(self, np_arr: Array) -> None:
        """Copy an array of the same shape and type into it; InvalidInput for another."""
        copy_into(self._array, np_arr, "the OrtValue")


def check_device(device_type: str) -> None:
    """InvalidOption for anything but the CPU."""
    if device_type.lower() != "cpu":
        raise InvalidOption(f"device {device_type!r} is reserved; this version knows 'cpu' only")


def copy_into(target: Array, array: Array, name: str) -> None:
    """Copy values; InvalidInput, naming the target, where shape or type differ."""
    given = np.asarray(array)
    if given.shape != target.shape or given.dtype != target.dtype:
        raise InvalidInput(
            f"{name} is {target.dtype}{list(target.shape)}, not {given.dtype}{list(given.shape)}"
        )
    target[...] = given


def at_address(address: int, shape: Sequence[int], dtype: npt.DTypeLike) -> Array:
    """The array that lies at an address of this process; its owner must keep it alive."""
    found = np.dtype(dtype)
    count = int(np.prod(shape, dtype=np.int64)) * found.itemsize
    memory = (ctypes.c_ubyte * count).from_address(address)
    array: Array = np.ctypeslib.as_array(memory).view(found)
    return array.reshape(tuple(shape))
