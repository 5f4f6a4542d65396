"""gather_nd against a loop, its body, its errors; bitcast against numpy's views."""

from __future__ import annotations

import numpy as np
import pytest
from pointwise import check_body

from rooftile.core.errors import InvalidInput, InvalidModel
from rooftile.ir.graph import Value
from rooftile.ops import OPS

DATA = np.arange(2 * 3 * 4 * 2, dtype=np.float64).reshape(2, 3, 4, 2)


@pytest.mark.parametrize(("batch", "depth"), [(0, 1), (0, 3), (1, 2), (2, 1), (1, 0)])
def test_reference_and_body(batch: int, depth: int) -> None:
    rng = np.random.default_rng(batch + depth)
    indices = rng.integers(-2, 2, (*DATA.shape[:batch], 5, depth))
    (found,) = OPS["gather_nd"].reference({"batch": batch}, [DATA, indices])
    for place in np.ndindex(*indices.shape[:-1]):
        wanted = DATA[place[:batch]][tuple(indices[place])]
        np.testing.assert_array_equal(found[place], wanted)
    check_body("gather_nd", [DATA, indices], ["f32", "i64"], batch=batch)


def test_each_component_is_checked() -> None:
    indices = np.array([[0, 2], [1, -4]])
    with pytest.raises(InvalidInput, match=r"gather_nd: index \[1, -4\] is outside \[2, 3\]"):
        OPS["gather_nd"].reference({"batch": 0}, [DATA, indices])


def test_shapes_that_do_not_fit() -> None:
    data = Value("d", (2, 3), "f32")
    with pytest.raises(InvalidModel, match="with 1 batch dims"):
        OPS["gather_nd"].infer({"batch": 1}, [data, Value("i", (3, 1), "i64")])
    with pytest.raises(InvalidModel, match="must be i32 or i64"):
        OPS["gather_nd"].infer({"batch": 0}, [data, Value("i", (3, 1), "f32")])


def test_bitcast() -> None:
    x = np.array([1.5, -0.0, 3e-40], np.float32)
    attributes = {"dtype": "i32", "source": "f32"}
    (found,) = OPS["bitcast"].reference(attributes, [x.astype(np.float64)])
    np.testing.assert_array_equal(found, x.view(np.int32))
    with pytest.raises(InvalidModel, match="is not of the source type i32"):
        OPS["bitcast"].infer({"dtype": "i32", "source": "i32"}, [Value("x", (3,), "f32")])
    with pytest.raises(InvalidModel, match="differ in size, or are bool"):
        OPS["bitcast"].infer({"dtype": "u8", "source": "bool"}, [Value("x", (3,), "bool")])
