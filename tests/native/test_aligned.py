"""Aligned buffers."""

from __future__ import annotations

import pytest

from rooftile.core.errors import InvalidOption
from rooftile.native import aligned


@pytest.mark.parametrize("nbytes", [0, 1, 63, 64, 100_001])
@pytest.mark.parametrize("alignment", [1, 64, 4096])
def test_address_and_size(nbytes: int, alignment: int) -> None:
    buffer = aligned(nbytes, alignment)
    assert buffer.ctypes.data % alignment == 0 or nbytes == 0
    assert buffer.nbytes == nbytes
    assert not buffer.any()
    assert buffer.flags.c_contiguous


def test_refusals() -> None:
    with pytest.raises(InvalidOption, match=r"a buffer of -1 bytes cannot be made"):
        aligned(-1)
    with pytest.raises(InvalidOption, match=r"alignment 48 is not a power of two"):
        aligned(64, 48)
