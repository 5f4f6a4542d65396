"""Windows, Fourier transforms as products with constant matrices, mel weights."""

from __future__ import annotations

import math

import numpy as np

from rooftile.frontends.onnx.call import Call
from rooftile.frontends.onnx.registry import Reader, reads
from rooftile.frontends.onnx.tensors import element_type
from rooftile.ir.graph import Array, Value

MOST_WEIGHTS = 1 << 26
"""Numbers in the largest matrix of a transform, or of mel weights."""


def _window(*terms: float) -> Reader:
    """A sum of cosines: terms[0] - terms[1] cos(2 pi n / N) + terms[2] cos(4 pi n / N) ..."""

    def read(call: Call) -> Value:
        size = int(call.array(0, "size").reshape(-1)[0])
        dtype = element_type(call.integer("output_datatype", 1), call.where)
        if not 0 <= size < 1 << 24:
            call.invalid(f"size {size} is not the length of a window")
        period = size if call.integer("periodic", 1) else size - 1
        angle = 2 * math.pi * np.arange(size) / max(period, 1)
        parts = [(-1) ** n * term * np.cos(n * angle) for n, term in enumerate(terms)]
        return call.constant(sum(parts), dtype)

    return read


reads("HannWindow")(_window(0.5, 0.5))
reads("HammingWindow")(_window(25 / 46, 21 / 46))
reads("BlackmanWindow")(_window(0.42, 0.5, 0.08))


def _basis(call: Call, size: int, rows: int, places: int, inverse: bool) -> tuple[Array, Array]:
    """Cosines and sines [rows, places] of the transform of `size` points."""
    if rows * places > MOST_WEIGHTS // 4:
        call.unsupported(f"a transform of {size} points: its matrix is too large")
    turns = np.outer(np.arange(rows), np.arange(places)) % size
    angle = (1 if inverse else -1) * 2 * np.pi * turns / size
    scale = 1 / size if inverse else 1.0
    return np.cos(angle) * scale, np.sin(angle) * scale


def _transform(call: Call, x: Value, size: int, places: int, inverse: bool) -> Value:
    """The transform along the last dim but one of [..., n, 1 or 2]: [..., places, 2]."""
    *lead, length, parts = x.dims
    rows = min(length, size)
    if rows < length:
        x = call.emit(
            "slice",
            x,
            starts=(0,) * x.rank,
            limits=(*lead, rows, parts),
            strides=(1,) * x.rank,
        )
    cosine, sine = _basis(call, size, rows, places, inverse)
    real = np.stack([cosine, sine], axis=-1)
    matrix = np.stack([real, np.stack([-sine, cosine], axis=-1)], axis=1)[:, :parts]
    weights = call.constant(matrix.reshape(rows * parts, places * 2), x.dtype)
    flat = call.reshape(x, (math.prod(lead), rows * parts))
    product = call.emit(
        "dot", flat, weights, lhs_contract=(1,), rhs_contract=(0,), lhs_batch=(), rhs_batch=()
    )
    return call.reshape(product, (*lead, places, 2))


@reads("DFT")
def dft_by_attribute(call: Call) -> Value:
    """The axis as an attribute."""
    return _dft(call, call.integer("axis", 1))


@reads("DFT", since=20)
def dft(call: Call) -> Value:
    """The Fourier transform along an axis of real ([..., 1]) or complex ([..., 2]) data."""
    axis = -2 if call.optional(2) is None else int(call.array(2, "axis").reshape(-1)[0])
    return _dft(call, axis)


def _dft(call: Call, given: int) -> Value:
    x = call.input(0)
    axis = call.axis(given, x.rank)
    if x.rank < 2 or axis == x.rank - 1 or x.dims[-1] not in (1, 2):
        call.invalid(f"axis {given} of {list(x.shape)}: the last dim holds 1 or 2 parts")
    inverse, onesided = bool(call.integer("inverse", 0)), bool(call.integer("onesided", 0))
    size = x.dims[axis]
    if call.optional(1) is not None:
        size = int(call.array(1, "dft_length").reshape(-1)[0])
    if inverse and onesided:
        return _real_inverse(call, x, axis, size)
    if size < 1:
        call.invalid(f"dft_length {size} must be at least 1")
    places = size // 2 + 1 if onesided else size
    order = [dim for dim in range(x.rank - 1) if dim != axis] + [axis, x.rank - 1]
    found = _transform(call, call.transpose(x, order), size, places, inverse)
    return call.transpose(found, [order.index(dim) for dim in range(x.rank)])


def _real_inverse(call: Call, x: Value, axis: int, size: int) -> Value:
    """Half a spectrum back to a real signal: the other half is its mirror image."""
    if call.optional(1) is None:
        size = 2 * (x.dims[axis] - 1)
    if size < 1 or x.dims[-1] != 2:
        call.invalid(f"the spectrum {list(x.shape)} and dft_length {size} do not fit")
    order = [dim for dim in range(x.rank - 1) if dim != axis] + [axis, x.rank - 1]
    moved = call.transpose(x, order)
    *lead, length, _ = moved.dims
    rows = min(length, size // 2 + 1)
    moved = call.emit(
        "slice",
        moved,
        starts=(0,) * x.rank,
        limits=(*lead, rows, 2),
        strides=(1,) * x.rank,
    )
    cosine, sine = _basis(call, size, rows, size, True)
    twice = np.array([1.0 if k in (0, size / 2) else 2.0 for k in range(rows)])[:, None]
    weights = np.stack([cosine * twice, -sine * twice], axis=1).reshape(rows * 2, size)
    flat = call.reshape(moved, (math.prod(lead), rows * 2))
    product = call.emit(
        "dot",
        flat,
        call.constant(weights, x.dtype),
        lhs_contract=(1,),
        rhs_contract=(0,),
        lhs_batch=(),
        rhs_batch=(),
    )
    found = call.reshape(product, (*lead, size, 1))
    return call.transpose(found, [order.index(dim) for dim in range(x.rank)])


@reads("STFT")
def stft(call: Call) -> Value:
    """Transforms of overlapping frames: [batch, frames, places, 2]."""
    signal, window = call.input(0), call.optional(2)
    if signal.rank == 2:
        signal = call.reshape(signal, (*signal.dims, 1))
    if signal.rank != 3 or signal.dims[2] not in (1, 2):
        call.invalid(f"a signal of [batch, length, 1 or 2] is needed, not {list(signal.shape)}")
    step = int(call.array(1, "frame_step").reshape(-1)[0])
    if call.optional(3) is not None:
        length = int(call.array(3, "frame_length").reshape(-1)[0])
    elif window is not None:
        length = window.dims[0]
    else:
        length = signal.dims[1]
    if step < 1 or not 1 <= length <= signal.dims[1]:
        call.invalid(f"frame_step {step} or frame_length {length} does not fit the signal")
    count = (signal.dims[1] - length) // step + 1
    if count * length > MOST_WEIGHTS:
        call.unsupported(f"{count} frames of {length} points")
    places = np.arange(count)[:, None] * step + np.arange(length)
    frames = call.emit("gather", signal, call.constant(places, "i64"), axis=1)
    if window is not None:
        frames = call.elementwise("mul", frames, call.reshape(window, (1, 1, length, 1)))
    onesided = bool(call.integer("onesided", 1))
    return _transform(call, frames, length, length // 2 + 1 if onesided else length, False)


@reads("MelWeightMatrix")
def mel_weight_matrix(call: Call) -> Value:
    """Triangular weights that turn a spectrum into mel bins; all inputs known before the run."""
    bins, length, rate, low, high = (
        call.array(number, name).reshape(-1)[0].item()
        for number, name in enumerate(
            ("num_mel_bins", "dft_length", "sample_rate", "lower_edge_hertz", "upper_edge_hertz")
        )
    )
    dtype = element_type(call.integer("output_datatype", 1), call.where)
    fits = bins > 0 and length > 0 and bins * length <= MOST_WEIGHTS
    if not fits or rate <= 0 or not 0 <= low <= high:
        call.invalid(f"{bins} bins from {low} to {high} Hz of {length} points make no matrix")
    edges = 2595 * np.log10(1 + np.array([low, high], np.float64) / 700)
    mel = edges[0] + np.arange(bins + 2) * (edges[1] - edges[0]) / (bins + 2)
    places = ((length + 1) * (700 * (10 ** (mel / 2595) - 1)) // rate).astype(np.int64)
    matrix = np.zeros((length // 2 + 1, bins))
    for column in range(bins):
        start, middle, end = (int(place) for place in places[column : column + 3])
        if start == middle:
            matrix[middle : middle + 1, column] = 1
        rows = np.arange(start, min(middle + 1, len(matrix)))
        if start != middle:
            matrix[rows, column] = (rows - start) / (middle - start)
        rows = np.arange(middle, min(end, len(matrix)))
        if middle != end:
            matrix[rows, column] = (end - rows) / (end - middle)
    return call.constant(matrix, dtype)
