"""Arrays at the boundary of native code: their addresses, and whether they fit a port."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from rooftile.core.dtype import to_numpy
from rooftile.core.errors import InvalidInput, NoTensor
from rooftile.ir.program import Port

Array = npt.NDArray[Any]


def _address_by_interface(array: Array) -> int:
    return int(array.ctypes.data)


def _address_by_layout(array: Array) -> int:
    # The C interface of numpy fixes where an array object holds its data pointer: first behind
    # the object header. Reading it there takes a tenth of the time of `array.ctypes.data`.
    return _WORD(id(array) + _HEADER).value


_WORD = ctypes.c_size_t.from_address
_HEADER = object.__basicsize__


def _choose() -> Callable[[Array], int]:
    if sys.implementation.name != "cpython":
        return _address_by_interface
    probes: list[Array] = [np.zeros(3), np.zeros((4, 4), np.int8)[1:], np.zeros(())]
    if all(_address_by_layout(probe) == probe.ctypes.data for probe in probes):
        return _address_by_layout
    return _address_by_interface


address: Callable[[Array], int] = _choose()
"""The address of an array's first element."""


class Taker:
    """Makes one input of a run fit its port."""

    def __init__(self, port: Port) -> None:
        self.port = port
        self.shape = port.shape
        self.dtype = to_numpy(port.dtype)

    def take(self, value: Any) -> Array:
        """The value as a C-contiguous array in native byte order, itself where it is one.

        InvalidInput for another element type or shape: values are never converted.
        """
        if type(value) is np.ndarray and self._fits(value):
            return value
        return self._convert(value)

    def _fits(self, array: Array) -> bool:
        if array.dtype != self.dtype or array.shape != self.shape:
            return False
        flags = array.flags
        return flags.c_contiguous and flags.aligned

    def _convert(self, value: Any) -> Array:
        where = f"input {self.port.name!r}"
        array = tensor(value, self.dtype, where)
        if self.shape == () and array.size == 1:
            array = array.reshape(())  # onnxruntime takes one element of any rank for a scalar
        if array.shape != self.shape:
            raise InvalidInput(
                f"{where} has the shape {list(array.shape)}, this program was compiled for "
                f"{list(self.shape)}; reshape it or compile for its shape"
            )
        if self._fits(array):
            return array
        copied = np.empty(self.shape, self.dtype)
        copied[...] = array
        return copied


def tensor(value: Any, dtype: np.dtype[Any], where: str) -> Array:
    """An input as an array of `dtype`, in any byte order and layout.

    Numbers of Python, alone or in lists, take the type that is asked for where that loses nothing
    but the precision of fractions. InvalidInput for arrays of another type, NoTensor for what is
    no array.
    """
    array = readable(value, where)
    if isinstance(value, _PLAIN) and array.dtype != dtype:
        return _converted(array, dtype, where)
    if array.dtype.newbyteorder("=") != dtype:
        raise InvalidInput(
            f"{where} holds {array.dtype}, the model takes {dtype}; pass "
            f"x.astype({dtype.name!r}) if that loses nothing"
        )
    return array


def readable(value: Any, where: str) -> Array:
    """The array that a value is or holds; NoTensor for what is none, such as None or a dict."""
    reads = not isinstance(value, (str, bytes, dict, set)) and value is not None
    try:
        if hasattr(value, "__dlpack__") and not hasattr(value, "__array__"):
            return np.from_dlpack(value)
        array = np.asarray(value)
    except (TypeError, ValueError, RuntimeError, BufferError) as error:
        raise NoTensor(_unreadable(value, where, f" ({error})")) from error
    if not reads or (array.dtype == object and not hasattr(value, "dtype")):
        raise NoTensor(_unreadable(value, where))
    return array


_PLAIN = (list, tuple, bool, int, float)


def _unreadable(value: Any, where: str, why: str = "") -> str:
    return f"{where} is a {type(value).__name__}, which numpy cannot read{why}; pass an array"


def _converted(array: Array, dtype: np.dtype[Any], where: str) -> Array:
    """Numbers of Python, as numpy read them, in another type."""
    if array.dtype.kind in "biuf":
        with np.errstate(all="ignore"):
            found = array.astype(dtype)
        if dtype.kind not in "biu" or array.size == 0 or np.array_equal(found, array):
            return found
    raise NoTensor(f"{where} holds numbers, {array.dtype}, that {dtype} cannot; pass an array")
