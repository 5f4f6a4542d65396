"""Physical layouts: strides, packing and unpacking."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rooftile.core.affine import affine
from rooftile.ir.tile import Buf
from rooftile.ir.tile.layout import pack, physical_dims, physical_shape, unpack
from rooftile.ir.tile.text import parse


def _buf(line: str) -> Buf:
    return parse(f"kernel k\n  memory {line}\n").bufs[0]


def test_panels() -> None:
    buf = _buf("B: f32[3,5] layout 1/2 0 1%2")
    assert physical_shape(buf) == (3, 3, 2)
    assert [entry.stride for entry in physical_dims(buf)] == [6, 2, 1]
    array = np.arange(15.0).reshape(3, 5)
    packed = pack(buf, array)
    assert packed[2, 1].tolist() == [9.0, 0.0]
    np.testing.assert_array_equal(unpack(buf, packed.reshape(-1)), array)


def test_halo_and_symbols() -> None:
    buf = _buf("X: f32[4,S,3] halo 0:0 1:2 0:0")
    outer, middle, inner = physical_dims(buf)
    assert (outer.stride, outer.factors) == (3, (affine("S") + 3,))
    assert (middle.stride, middle.count, inner.stride) == (3, affine("S") + 3, 1)
    array = np.ones((4, 2, 3))
    packed = pack(buf, array, {"S": 2})
    assert packed.shape == (4, 5, 3)
    assert packed[:, 0].sum() == packed[:, 3:].sum() == 0
    np.testing.assert_array_equal(unpack(buf, packed, {"S": 2}), array)


@given(st.permutations(range(3)), st.integers(1, 5), st.integers(0, 2))
def test_round_trip(order: list[int], block: int, which: int) -> None:
    layout = [(d, 1, "all") for d in order if d != which]
    split = (*[(which, block, "div")], *layout, (which, block, "mod"))
    buf = Buf("A", (3, 4, 5), layout=split)  # type: ignore[arg-type]
    array = np.random.default_rng(0).standard_normal((3, 4, 5))
    np.testing.assert_array_equal(unpack(buf, pack(buf, array)), array)


def test_scalar() -> None:
    buf = _buf("A: f32[]")
    assert physical_dims(buf) == ()
    assert unpack(buf, pack(buf, np.array(3.0))) == 3.0
