"""What one node gives in float64: by onnx's evaluator, or by numpy for ops that it gets wrong.

Onnx's evaluator computes some ops in float32, and has faults in others: ReduceLogSumExp of a
scalar, the last window of a pool, LRN of more images than channels, the 1-norm of negative numbers,
ConvTranspose in groups, Mean of operands that grow, GatherElements of negative indices, the rank of
GlobalMaxPool.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from model_values import Array
from numpy.lib.stride_tricks import sliding_window_view
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator


def evaluate(node: Any, arrays: Sequence[Array | None], opset: int) -> list[Array]:
    """The outputs of a node on arrays, floats in float64."""
    own = OWN.get(node.op_type)
    if own is not None:
        more = {item.name: helper.get_attribute_value(item) for item in node.attribute}
        return [np.asarray(own(*arrays, **more))]
    feeds = {name: x for name, x in zip(node.input, arrays, strict=True) if x is not None}
    info = helper.make_tensor_value_info
    graph = helper.make_graph(
        [node],
        "one",
        [info(name, TensorProto.DOUBLE, None) for name in feeds],
        [info(name, TensorProto.DOUBLE, None) for name in node.output],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    return [np.asarray(found) for found in ReferenceEvaluator(model).run(None, feeds)]


def _cast(x: Array, to: int) -> Array:
    """Floats of any width stay float64: their rounding is an error of the run."""
    dtype = np.dtype(helper.tensor_dtype_to_np_dtype(to))
    return x.astype(np.float64 if dtype.kind == "f" else dtype)


def _erf(x: Array) -> Array:
    return np.asarray(np.vectorize(math.erf, otypes=[np.float64])(x))


def _gelu(x: Array, approximate: bytes = b"none") -> Array:
    if approximate == b"tanh":
        return np.asarray(x / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))))
    return np.asarray(x / 2 * (1 + _erf(x / np.sqrt(2))))


def _softsign(x: Array) -> Array:
    return np.asarray(x / (1 + np.abs(x)))


def _dequantize(x: Array, scale: Array, zero: Array) -> Array:
    return np.asarray((x.astype(np.float64) - zero) * scale)


def _quantize(x: Array, scale: Array, zero: Array) -> Array:
    info = np.iinfo(zero.dtype)
    return np.clip(np.rint(x / scale) + zero, info.min, info.max).astype(zero.dtype)


def _gather_elements(x: Array, indices: Array, axis: int = 0) -> Array:
    return np.take_along_axis(x, indices.astype(np.int64) % x.shape[axis], axis)


def _hard_swish(x: Array) -> Array:
    return np.asarray(x * np.clip(x / 6 + 0.5, 0, 1))


# Norms


def _normal(x: Array, axes: tuple[int, ...], epsilon: float) -> Array:
    centred = x - x.mean(axes, keepdims=True)
    return np.asarray(centred / np.sqrt((centred**2).mean(axes, keepdims=True) + epsilon))


def _layer_norm(
    x: Array, scale: Array, bias: Array | None = None, axis: int = -1, epsilon: float = 1e-5
) -> Array:
    found = _normal(x, tuple(range(axis % x.ndim, x.ndim)), epsilon) * scale
    return np.asarray(found if bias is None else found + bias)


def _group_norm(
    x: Array, scale: Array, bias: Array, num_groups: int, epsilon: float = 1e-5
) -> Array:
    parts = x.reshape(x.shape[0], num_groups, -1)
    shape = (-1, *[1] * (x.ndim - 2))
    found = _normal(parts, (2,), epsilon).reshape(x.shape)
    return np.asarray(found * scale.reshape(shape) + bias.reshape(shape))


def _mean_variance(x: Array, axes: Sequence[int] = (0, 2, 3)) -> Array:
    centred = x - x.mean(tuple(axes), keepdims=True)
    deviation = np.sqrt((centred**2).mean(tuple(axes), keepdims=True))
    return np.asarray(centred / (deviation + 1e-9))


def _lp_norm(x: Array, axis: int = -1, p: int = 2) -> Array:
    norm = (np.abs(x) ** p).sum(axis, keepdims=True) ** (1 / p)
    return np.where(norm == 0, 0, x / norm)


def _lrn(x: Array, size: int, alpha: float = 1e-4, beta: float = 0.75, bias: float = 1.0) -> Array:
    low, high = (size - 1) // 2, size // 2
    wide = np.pad(x**2, [(0, 0), (low, high), *[(0, 0)] * (x.ndim - 2)])
    squares = sliding_window_view(wide, size, 1).sum(-1)
    return np.asarray(x / (bias + alpha / size * squares) ** beta)


# Reductions


def _reduction(compute: Callable[..., Any]) -> Callable[..., Array]:
    def reduce(
        x: Array, axes: Array | None = None, keepdims: int = 1, noop_with_empty_axes: int = 0
    ) -> Array:
        every = () if noop_with_empty_axes else range(x.ndim)
        over = tuple(every) if axes is None or not axes.size else tuple(map(int, axes))
        return np.asarray(compute(x, axis=over, keepdims=bool(keepdims)))

    return reduce


def _log_sum_exp(x: Array, axis: tuple[int, ...], keepdims: bool) -> Any:
    return np.log(np.sum(np.exp(x), axis=axis, keepdims=keepdims))


# Windows


@dataclass(frozen=True)
class _Windows:
    """Where windows lie, a number a dim: how many, and the pads asked for and needed."""

    kernel: Sequence[int]
    strides: Sequence[int]
    dilations: Sequence[int]
    counts: Sequence[int]
    asked: Sequence[tuple[int, int]]
    needed: Sequence[tuple[int, int]]

    def taken(self, wide: Array) -> Array:
        """[N, C, counts..., taps] of a padded image."""
        dims = tuple(range(2, wide.ndim))
        found = sliding_window_view(wide, self.spans, dims)
        rows = zip(self.counts, self.strides, strict=True)
        places = tuple(slice(0, count * stride, stride) for count, stride in rows)
        taps = tuple(slice(None, None, dilation) for dilation in self.dilations)
        picked = found[(slice(None), slice(None), *places, *taps)]
        return picked.reshape(*picked.shape[: wide.ndim], -1)

    @property
    def spans(self) -> tuple[int, ...]:
        """How far each window reaches."""
        return tuple((k - 1) * d + 1 for k, d in zip(self.kernel, self.dilations, strict=True))


def _windows(
    extents: Sequence[int],
    kernel_shape: Sequence[int],
    strides: Sequence[int] = (),
    pads: Sequence[int] = (),
    dilations: Sequence[int] = (),
    auto_pad: bytes = b"NOTSET",
    ceil_mode: int = 0,
) -> _Windows:
    rank = len(extents)
    strides, dilations = strides or [1] * rank, dilations or [1] * rank
    pads = pads or [0] * 2 * rank
    counts, asked, needed = [], [], []
    for dim, (n, stride) in enumerate(zip(extents, strides, strict=True)):
        span = (kernel_shape[dim] - 1) * dilations[dim] + 1
        low, high = pads[dim], pads[rank + dim]
        if auto_pad.startswith(b"SAME"):
            need = max(0, (-(-n // stride) - 1) * stride + span - n)
            low = need // 2 if auto_pad == b"SAME_UPPER" else need - need // 2
            high = need - low
        room = n + low + high - span
        count = (-(-room // stride) if ceil_mode else room // stride) + 1
        count -= int(bool(ceil_mode) and (count - 1) * stride >= n + low)
        counts.append(count)
        asked.append((low, high))
        needed.append((low, max(high, (count - 1) * stride + span - n - low)))
    return _Windows(kernel_shape, strides, dilations, counts, asked, needed)


def _wide(x: Array, pads: Sequence[tuple[int, int]], fill: float) -> Array:
    return np.pad(x, [(0, 0), (0, 0), *pads], constant_values=fill)


def _max_pool(x: Array, **more: Any) -> Array:
    where = _windows(x.shape[2:], **more)
    return np.asarray(where.taken(_wide(x, where.needed, -np.inf)).max(-1))


def _lp_pool(x: Array, p: int = 2, **more: Any) -> Array:
    where = _windows(x.shape[2:], **more)
    return np.asarray((np.abs(where.taken(_wide(x, where.needed, 0))) ** p).sum(-1) ** (1 / p))


def _average_pool(x: Array, count_include_pad: int = 0, **more: Any) -> Array:
    """What counts is the image, and where asked the pads; beyond them nothing does."""
    where = _windows(x.shape[2:], **more)
    counted = _wide(np.ones((1, 1, *x.shape[2:])), where.asked, float(count_include_pad))
    beyond = [(0, b[1] - a[1]) for a, b in zip(where.asked, where.needed, strict=True)]
    counts = where.taken(_wide(counted, beyond, 0.0)).sum(-1)
    return np.asarray(where.taken(_wide(x, where.needed, 0.0)).sum(-1) / counts)


def _conv(x: Array, w: Array, bias: Array | None = None, group: int = 1, **more: Any) -> Array:
    where = _windows(x.shape[2:], **more)
    taps = where.taken(_wide(x, where.needed, 0.0))
    parts = taps.reshape(len(x), group, -1, *taps.shape[2:])
    weights = w.reshape(group, len(w) // group, w.shape[1], -1)
    found = np.einsum("ngc...k,gock->ngo...", parts, weights)
    found = found.reshape(len(x), len(w), *where.counts)
    return found if bias is None else found + bias.reshape(-1, *[1] * (x.ndim - 2))


def _conv_transpose(
    x: Array,
    w: Array,
    kernel_shape: Sequence[int],
    strides: Sequence[int],
    pads: Sequence[int] = (),
    group: int = 1,
) -> Array:
    """Each element adds its multiple of the weights; the pads are cut off."""
    pads = pads or [0] * 2 * len(kernel_shape)
    parts = x.reshape(len(x), group, -1, *x.shape[2:])
    weights = w.reshape(group, w.shape[0] // group, *w.shape[1:])
    rows = list(zip(x.shape[2:], strides, kernel_shape, strict=True))
    whole = np.zeros((len(x), group, w.shape[1], *((n - 1) * s + k for n, s, k in rows)))
    for place in np.ndindex(*x.shape[2:]):
        window = tuple(slice(at * s, at * s + k) for at, (_, s, k) in zip(place, rows, strict=True))
        added = np.einsum("ngc,gco...->ngo...", parts[(..., *place)], weights)
        whole[(..., *window)] += added
    ends = zip(pads, pads[len(rows) :], whole.shape[3:], strict=False)
    found = whole[(..., *(slice(low, n - high) for low, high, n in ends))]
    return found.reshape(len(x), -1, *found.shape[3:])


# Resizing


def _resize(
    x: Array,
    region: Array | None,
    scales: Array | None = None,
    sizes: Array | None = None,
    mode: bytes = b"nearest",
    nearest_mode: bytes = b"round_prefer_floor",
    coordinate_transformation_mode: bytes = b"half_pixel",
) -> Array:
    """A matrix of weights for each dim, of what lies around each element's place in x."""
    for dim, extent in enumerate(x.shape):
        scale = float(scales[dim]) if scales is not None else int(sizes[dim]) / extent  # type: ignore[index]
        length = math.floor(extent * scale)
        if length == extent:
            continue
        places = np.arange(length)
        at = (places + 0.5) / scale - 0.5
        if coordinate_transformation_mode == b"asymmetric":
            at = places / scale
        elif coordinate_transformation_mode == b"align_corners":
            at = places * (extent - 1) / (extent * scale - 1) if extent * scale != 1 else at * 0
        elif coordinate_transformation_mode == b"pytorch_half_pixel" and length == 1:
            at = at * 0
        matrix = _weights(at, extent, mode, nearest_mode)
        x = np.moveaxis(np.tensordot(matrix, x, (1, dim)), 0, dim)
    return x


def _weights(at: Array, extent: int, mode: bytes, nearest_mode: bytes) -> Array:
    """[places, extent]: how much of each element a place takes; the edges are repeated."""
    first = np.floor(at)
    part = at - first
    taps = {0: 1 - part, 1: part}
    if mode == b"nearest":
        up = {b"floor": part > 1, b"ceil": part > 0, b"round_prefer_floor": part > 0.5}
        above = up.get(nearest_mode, part >= 0.5)
        taps = {0: 1.0 - above, 1: 1.0 * above}
    elif mode == b"cubic":
        taps = {n: _cubic(np.abs(part - n)) for n in (-1, 0, 1, 2)}
    found = np.zeros((len(at), extent))
    for offset, weight in taps.items():
        place = np.clip(first + offset, 0, extent - 1).astype(int)
        np.add.at(found, (np.arange(len(at)), place), weight)
    return found


def _cubic(t: Array, a: float = -0.75) -> Array:
    near = (a + 2) * t**3 - (a + 3) * t**2 + 1
    return np.where(t <= 1, near, a * t**3 - 5 * a * t**2 + 8 * a * t - 4 * a)


def _over_all(compute: Callable[[Any, Any], Any]) -> Callable[..., Array]:
    return lambda *arrays: np.asarray(functools.reduce(compute, arrays))


OWN: dict[str, Callable[..., Array]] = {
    "Cast": _cast,
    "Erf": _erf,
    "Gelu": _gelu,
    "HardSwish": _hard_swish,
    "Softsign": _softsign,
    "QuantizeLinear": _quantize,
    "DequantizeLinear": _dequantize,
    "LayerNormalization": _layer_norm,
    "GroupNormalization": _group_norm,
    "MeanVarianceNormalization": _mean_variance,
    "LpNormalization": _lp_norm,
    "LRN": _lrn,
    "ReduceSum": _reduction(np.sum),
    "ReduceMean": _reduction(np.mean),
    "ReduceMax": _reduction(np.max),
    "ReduceMin": _reduction(np.min),
    "ReduceL1": _reduction(lambda x, **how: np.sum(np.abs(x), **how)),
    "ReduceL2": _reduction(lambda x, **how: np.sqrt(np.sum(x * x, **how))),
    "ReduceSumSquare": _reduction(lambda x, **how: np.sum(x * x, **how)),
    "ReduceLogSumExp": _reduction(_log_sum_exp),
    "MaxPool": _max_pool,
    "AveragePool": _average_pool,
    "LpPool": _lp_pool,
    "GlobalMaxPool": lambda x: x.max(tuple(range(2, x.ndim)), keepdims=True),
    "GlobalAveragePool": lambda x: x.mean(tuple(range(2, x.ndim)), keepdims=True),
    "GatherElements": _gather_elements,
    "Conv": _conv,
    "ConvTranspose": _conv_transpose,
    "Resize": _resize,
    "Sum": _over_all(np.add),
    "Max": _over_all(np.maximum),
    "Min": _over_all(np.minimum),
    "Mean": lambda *arrays: np.asarray(functools.reduce(np.add, arrays) / len(arrays)),
}
