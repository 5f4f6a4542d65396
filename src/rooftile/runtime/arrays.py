"""Arrays at the boundary of native code: their addresses, and whether they fit a port."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from rooftile.core.dtype import to_numpy
from rooftile.core.errors import InvalidInput
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
        try:
            array = np.asarray(value)
        except (TypeError, ValueError, RuntimeError) as error:
            raise InvalidInput(
                f"{where} is a {type(value).__name__}, which numpy cannot read ({error}); pass an "
                f"array of {self.dtype}"
            ) from error
        if array.dtype.newbyteorder("=") != self.dtype:
            raise InvalidInput(
                f"{where} holds {array.dtype}, the model takes {self.dtype}; pass "
                f"x.astype({self.dtype.name!r}) if that loses nothing"
            )
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
