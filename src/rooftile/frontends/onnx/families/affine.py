"""AffineGrid: places to sample at, moved by a matrix for each image."""

from __future__ import annotations

import numpy as np

from rooftile.core.dtype import itemsize
from rooftile.frontends.onnx.call import Call
from rooftile.frontends.onnx.registry import reads
from rooftile.ir.graph import Array, Value


@reads("AffineGrid", since=20)
def affine_grid(call: Call) -> Value:
    """theta [N, r, r + 1] times the place of each element and 1: [N, spatial..., r].

    Places go from -1 to 1, those of the last dim come first. (The body in ONNX's schema fails for
    one image.)
    """
    theta, size = call.input(0), call.input_ints(1, "size")
    corners, rank = bool(call.integer("align_corners", 0)), len(size) - 2
    if rank not in (2, 3) or theta.dims != (size[0], rank, rank + 1) or min(size) < 0:
        call.invalid(f"theta {list(theta.shape)} does not fit the size {list(size)}")
    call.check_size((*size[2:], size[0], rank), "f32")
    wide = call.cast(theta, "f32") if itemsize(theta.dtype) < 4 else theta
    total = _column(call, wide, rank)
    for number in range(rank):
        dim = rank - number  # of the result, whose first dim is the batch
        along = [1] * (rank + 2)
        along[dim] = -1
        places = call.constant(_places(int(size[1 + dim]), corners).reshape(along), wide.dtype)
        moved = call.elementwise("mul", _column(call, wide, number), places)
        total = call.elementwise("add", total, moved)
    return call.cast(total, theta.dtype)


def _column(call: Call, theta: Value, number: int) -> Value:
    """A column of each matrix: [N, 1..., r]."""
    batch, rank, _ = theta.dims
    starts, limits = (0, 0, number), (batch, rank, number + 1)
    part = call.emit("slice", theta, starts=starts, limits=limits, strides=(1, 1, 1))
    return call.reshape(part, (batch, *[1] * rank, rank))


def _places(extent: int, corners: bool) -> Array:
    """Where the elements of a dim are: their middles, or from corner to corner."""
    number = np.arange(extent)
    if corners and extent == 1:
        return np.ones(1)  # the standard divides by 0; onnxruntime takes the end
    if corners:
        return np.asarray(2 * number / (extent - 1) - 1)
    return np.asarray((2 * number + 1) / max(extent, 1) - 1)
