"""cast: truncation, wrapping, and what lies outside the range."""

from __future__ import annotations

import numpy as np
import pytest
from pointwise import check_body, values

from rooftile.core.dtype import to_numpy
from rooftile.core.errors import InvalidModel
from rooftile.ops import OPS

BEYOND = [2.9, -2.9, np.nan, np.inf, -np.inf, 3e9, 1e19, 300.0]
LEAST32, LEAST64 = -(2**31), -(2**63)


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [
        ("i32", [2, -2, LEAST32, LEAST32, LEAST32, LEAST32, LEAST32, 300]),
        ("i64", [2, -2, LEAST64, LEAST64, LEAST64, 3000000000, LEAST64, 300]),
        ("u8", [2, 254, 0, 0, 0, 0, 0, 44]),
        ("i8", [2, -2, 0, 0, 0, 0, 0, 44]),
        ("u32", [2, 2**32 - 2, 2**31, 0, 2**31, 3000000000, 0, 300]),
        ("u64", [2, 2**64 - 2, 2**63, 0, 2**63, 3000000000, 10**19, 300]),
    ],
)
def test_floats_to_integers(dtype: str, expected: list[int]) -> None:
    (got,) = OPS["cast"].reference({"dtype": dtype}, [np.array(BEYOND)])
    assert got.dtype == to_numpy(dtype)
    assert got.tolist() == expected


def test_between_other_kinds() -> None:
    assert OPS["cast"].reference({"dtype": "u8"}, [np.array([-1, 257])])[0].tolist() == [255, 1]
    booleans = OPS["cast"].reference({"dtype": "bool"}, [np.array([0.0, 0.5, np.nan])])[0]
    assert booleans.tolist() == [False, True, True]
    floats = OPS["cast"].reference({"dtype": "f32"}, [np.array([2**24 + 1])])[0]
    assert (floats.dtype, floats.tolist()) == (np.float64, [2.0**24 + 1])
    single = np.array([0.1], np.float32)
    assert OPS["cast"].reference({"dtype": "f64"}, [single])[0].dtype == np.float32


def test_bodies() -> None:
    x = np.array([-1.5, 0.0, 0.25, 7.9])
    for dtype in ("i32", "u8", "bool", "f16"):
        check_body("cast", [x], ["f32"], dtype=dtype)
    check_body("cast", [np.array([0, 3])], ["i64"], dtype="bool")


def test_unknown_type() -> None:
    with pytest.raises(InvalidModel, match="cast: dtype 'f31' is unknown; it is one of f64"):
        OPS["cast"].infer({"dtype": "f31"}, values([np.zeros(2)], ["f32"]))
    with pytest.raises(InvalidModel, match="cast: attribute dtype is missing"):
        OPS["cast"].infer({}, values([np.zeros(2)], ["f32"]))
