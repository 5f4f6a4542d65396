"""Reductions over axes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from rooftile.frontends.onnx.call import Call
from rooftile.frontends.onnx.registry import Reader, reads
from rooftile.ir.graph import Value

_AXES_AS_INPUT = {"ReduceSum": 13}
"""Since when the axes are an input; 18 for the others."""


def total(call: Call, x: Value, dims: Sequence[int]) -> Value:
    """The sum over dims, kept with size 1."""
    return call.emit("reduce", x, op="sum", dims=tuple(dims))


def mean_of(call: Call, x: Value, dims: Sequence[int]) -> Value:
    """The mean over dims, kept with size 1; half-precision sums are held in f32."""
    count = math.prod(x.dims[dim] for dim in dims)
    wide = call.cast(x, "f32") if x.dtype in ("f16", "bf16") else x
    return call.cast(call.elementwise("div", total(call, wide, dims), count), x.dtype)


def _plain(op: str) -> Callable[[Call, Value, Sequence[int]], Value]:
    return lambda call, x, dims: call.emit("reduce", x, op=op, dims=tuple(dims))


def _l1(call: Call, x: Value, dims: Sequence[int]) -> Value:
    return total(call, call.emit("abs", x), dims)


def _sum_square(call: Call, x: Value, dims: Sequence[int]) -> Value:
    return total(call, call.emit("mul", x, x), dims)


def _l2(call: Call, x: Value, dims: Sequence[int]) -> Value:
    return call.emit("sqrt", _sum_square(call, x, dims))


def _log_sum(call: Call, x: Value, dims: Sequence[int]) -> Value:
    return call.emit("log", total(call, x, dims))


def _log_sum_exp(call: Call, x: Value, dims: Sequence[int]) -> Value:
    """The maximum is taken out first, so that exp cannot overflow; not an infinite one."""
    top = call.emit("reduce", x, op="max", dims=tuple(dims))
    finite = call.elementwise("lt", call.emit("abs", top), call.constant(math.inf, x.dtype))
    top = call.elementwise("where", finite, top, call.constant(0, x.dtype))
    rest = total(call, call.emit("exp", call.emit("sub", x, top)), dims)
    return call.emit("add", call.emit("log", rest), top)


_KINDS: dict[str, Callable[[Call, Value, Sequence[int]], Value]] = {
    "ReduceSum": _plain("sum"),
    "ReduceProd": _plain("prod"),
    "ReduceMax": _plain("max"),
    "ReduceMin": _plain("min"),
    "ReduceMean": mean_of,
    "ReduceL1": _l1,
    "ReduceL2": _l2,
    "ReduceSumSquare": _sum_square,
    "ReduceLogSum": _log_sum,
    "ReduceLogSumExp": _log_sum_exp,
}


def _reader(compute: Callable[[Call, Value, Sequence[int]], Value], by_input: bool) -> Reader:
    def read(call: Call) -> Value:
        x = call.input(0)
        keep, nothing = call.integer("keepdims", 1), call.integer("noop_with_empty_axes", 0)
        if by_input:
            given = call.input_ints(1, "axes") if call.optional(1) is not None else ()
        else:
            given = call.ints("axes", ())
        every = () if nothing else range(x.rank)  # over no axis, elements are computed alone
        dims = call.axes(given, x.rank) if given else tuple(every)
        result = compute(call, x, dims)
        if keep:
            return result
        kept = [extent for dim, extent in enumerate(result.dims) if dim not in dims]
        return call.reshape(result, kept)

    return read


for _name, _compute in _KINDS.items():
    reads(_name)(_reader(_compute, by_input=False))
    reads(_name, since=_AXES_AS_INPUT.get(_name, 18))(_reader(_compute, by_input=True))
