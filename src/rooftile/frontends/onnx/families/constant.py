"""Constants and generated tensors."""

from __future__ import annotations

import math

import numpy as np

from rooftile.core.symbolic import symbolic
from rooftile.frontends.onnx.call import Call
from rooftile.frontends.onnx.registry import reads
from rooftile.frontends.onnx.tensors import element_type
from rooftile.ir.graph import Value


@reads("Constant")
def constant(call: Call) -> Value:
    """A tensor, number or list of numbers in an attribute."""
    if call.has("value"):
        return call.literal(call.tensor("value"))
    if call.has("value_float"):
        return call.constant(call.number("value_float"), "f32")
    if call.has("value_int"):
        return call.constant(call.integer("value_int"), "i64")
    if call.has("value_floats"):
        return call.constant(call.floats("value_floats"), "f32")
    if call.has("value_ints"):
        return call.constant(np.array(call.ints("value_ints"), np.int64), "i64")
    if call.has("sparse_value"):
        return call.literal(call.sparse_tensor("sparse_value"))
    return call.unsupported("a constant other than numbers")


@reads("ConstantOfShape")
def constant_of_shape(call: Call) -> Value:
    """One number (f32 zero by default) in a shape that an input gives."""
    value = call.tensor("value") if call.has("value") else np.zeros(1, np.float32)
    shape = call.input_ints(0, "shape")
    if value.size != 1 or any(extent < 0 for extent in shape):
        call.invalid("value must hold one element, and shape no negative dim")
    one = call.builder.constant(value.reshape((1,) * len(shape)))
    return call.broadcast(one, shape)


@reads("Range")
def arange(call: Call) -> Value:
    """Numbers from start up to limit by delta, all three known before the run."""
    start, limit, delta = (
        call.known(number, name).reshape(()).item()
        for number, name in enumerate(("start", "limit", "delta"))
    )
    if not delta:
        call.invalid("delta is 0")
    if symbolic((start, limit, delta)):
        start, limit, delta = map(_as_int, (start, limit, delta))
        count = max(0, -((start - limit) // delta))
    elif all(map(math.isfinite, (start, limit, delta))):
        count = max(0, math.ceil((limit - start) / delta))
    else:
        call.invalid(f"from {start} to {limit} by {delta} there is no end")
    dtype = call.input(0).dtype
    steps = call.emit("iota", shape=(count,), axis=0, dtype=dtype)
    scaled = call.elementwise("mul", steps, call.constant(delta, dtype))
    return call.elementwise("add", scaled, call.constant(start, dtype))


def _as_int(number: float) -> float:
    """A whole number as an int, which can be added to extents of a run."""
    return number if symbolic((number,)) or number % 1 else int(number)


@reads("EyeLike")
def eye_like(call: Call) -> Value:
    """Ones on a diagonal of a matrix of the input's shape."""
    x, shift = call.input(0), call.integer("k", 0)
    dtype = element_type(call.integer("dtype"), call.where) if call.has("dtype") else x.dtype
    if x.rank != 2:
        call.invalid(f"a matrix is needed, not {list(x.shape)}")
    rows = call.emit("iota", shape=(x.dims[0], 1), axis=0, dtype="i64")
    columns = call.emit("iota", shape=(1, x.dims[1]), axis=1, dtype="i64")
    return call.cast(call.elementwise("eq", call.elementwise("add", rows, shift), columns), dtype)
