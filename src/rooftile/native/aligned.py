"""Buffers on the boundaries that vector loads and cache lines like."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from rooftile.core.errors import InvalidOption


def aligned(nbytes: int, alignment: int = 64) -> npt.NDArray[np.uint8]:
    """`nbytes` zero bytes whose address is a multiple of `alignment`, a power of two."""
    if nbytes < 0:
        raise InvalidOption(f"a buffer of {nbytes} bytes cannot be made")
    if alignment < 1 or alignment & (alignment - 1):
        raise InvalidOption(f"alignment {alignment} is not a power of two")
    raw = np.zeros(nbytes + alignment - 1, np.uint8)
    start = -raw.ctypes.data % alignment
    return raw[start : start + nbytes]
