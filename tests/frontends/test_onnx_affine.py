"""AffineGrid against onnxruntime; the body in its schema fails for one image."""

from __future__ import annotations

import numpy as np
import pytest
from onnx_models import compiled, floats, ints, one_node

from rooftile.core.errors import InvalidModel
from rooftile.frontends.onnx import read

SIZES = [[1, 1, 4, 4], [1, 3, 5, 2], [3, 1, 4, 7], [1, 1, 1, 5], [2, 1, 3, 4, 5], [1, 2, 1, 2, 3]]


@pytest.mark.parametrize("corners", [0, 1])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_places_of_each_image(size: list[int], dtype: str, corners: int) -> None:
    rank = len(size) - 2
    theta = floats(size[0], rank, rank + 1).astype(dtype)
    [found] = compiled("AffineGrid", theta, ints(*size), opset=20, align_corners=corners)
    assert found.shape == (size[0], *size[2:], rank)


def test_the_identity_gives_the_middles_of_elements() -> None:
    theta = np.array([[[1, 0, 0], [0, 1, 0]]], np.float32)
    [found] = compiled("AffineGrid", theta, ints(1, 1, 2, 4), opset=20)
    np.testing.assert_allclose(found[0, 0, :, 0], [-0.75, -0.25, 0.25, 0.75])
    np.testing.assert_allclose(found[0, :, 0, 1], [-0.5, 0.5])


@pytest.mark.parametrize("size", [[1, 1, 4], [2, 1, 4, 4], [1, 1, -4, 4], [1, 1, 2, 2, 2]])
def test_sizes_that_do_not_fit(size: list[int]) -> None:
    model, _ = one_node("AffineGrid", floats(1, 2, 3), ints(*size), opset=20)
    with pytest.raises(InvalidModel, match=r"node it .*theta \[1, 2, 3\] does not fit the size"):
        read(model)
