"""Ops over windows, against loops in numpy: Conv, ConvTranspose, pools and Resize.

Strides, dilations, pads of both ends, groups and auto_pad are drawn; so are batches of 0, and
images of 0 whose pads alone make a window.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st
from index_ops import Array, Const, computed, examples, same, small

AUTO = ("NOTSET", "NOTSET", "NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID")
FEW = st.integers(1, 3)


@dataclass
class Geometry:
    """Windows over an image, a number a dim, and the attributes that say so."""

    extents: list[int]
    kernel: list[int]
    strides: list[int]
    dilations: list[int]
    low: list[int]
    high: list[int]
    attributes: dict[str, Any]

    @property
    def spans(self) -> list[int]:
        """How far a window reaches."""
        pairs = zip(self.kernel, self.dilations, strict=True)
        return [(size - 1) * dilation + 1 for size, dilation in pairs]

    def counts(self, ceil: bool = False) -> list[int]:
        """How many windows there are; the last one may reach out for `ceil`, not begin outside."""
        found = []
        for dim, span in enumerate(self.spans):
            stride, before = self.strides[dim], self.extents[dim] + self.low[dim]
            room = before + self.high[dim] - span
            count = (-(-room // stride) if ceil else room // stride) + 1
            found.append(count - 1 if ceil and (count - 1) * stride >= before else count)
        return found

    def taps(self, place: tuple[int, ...]) -> list[list[int]]:
        """What the window at a place reads along each dim, padding included."""
        rows = zip(place, self.strides, self.low, self.kernel, self.dilations, strict=True)
        return [[at * s - low + d * n for n in range(size)] for at, s, low, size, d in rows]


@st.composite
def geometries(draw: st.DrawFn, deep: bool = False) -> Geometry:
    """Windows that fit; with `deep` the pads may be larger than the window."""
    rank = draw(st.sampled_from((2, 1, 2, 3)))
    kernel, strides, dilations = ([draw(FEW) for _ in range(rank)] for _ in range(3))
    auto = draw(st.sampled_from(AUTO))
    spans = [(size - 1) * d + 1 for size, d in zip(kernel, dilations, strict=True)]
    low, high, extents = [0] * rank, [0] * rank, [0] * rank
    for dim, span in enumerate(spans):
        if auto == "NOTSET":
            most = 4 if deep else kernel[dim] - 1
            low[dim], high[dim] = draw(st.integers(0, most)), draw(st.integers(0, most))
        room = span - low[dim] - high[dim]
        least = 0 if span == 1 else max(0 if deep else 1, room)
        least = 1 if auto.startswith("SAME") else least
        extents[dim] = least + draw(st.integers(0, 5))
        if auto.startswith("SAME"):
            need = max(
                0, (-(-extents[dim] // strides[dim]) - 1) * strides[dim] + span - extents[dim]
            )
            low[dim] = need // 2 if auto == "SAME_UPPER" else need - need // 2
            high[dim] = need - low[dim]
    attributes: dict[str, Any] = {"strides": strides, "dilations": dilations}
    attributes |= {"pads": [*low, *high]} if auto == "NOTSET" else {"auto_pad": auto}
    return Geometry(extents, kernel, strides, dilations, low, high, attributes)


def convolved(x: Array, w: Array, where: Geometry, groups: int) -> Array:
    """[N, O, counts...]: each window of x against the weights [O, C / groups, kernel...]."""
    widths = [(0, 0), (0, 0), *zip(where.low, where.high, strict=True)]
    wide, counts = np.pad(x, widths), where.counts()
    result = np.zeros((len(x), len(w), *counts), x.dtype)
    weights = w.reshape(groups, len(w) // groups, math.prod(w.shape[1:]))
    for place in np.ndindex(*counts):
        rows = zip(place, where.strides, where.spans, where.dilations, strict=True)
        window = tuple(slice(at * s, at * s + span, d) for at, s, span, d in rows)
        patch = wide[(slice(None), slice(None), *window)].reshape(len(x), groups, weights.shape[-1])
        found = np.einsum("ngk,gok->ngo", patch, weights)
        result[(slice(None), slice(None), *place)] = found.reshape(len(x), len(w))
    return result


@given(st.data())
@examples(60)
def test_conv(data: st.DataObject) -> None:
    where = data.draw(geometries(deep=True))
    batch, groups = data.draw(st.sampled_from((1, 2, 0))), data.draw(FEW)
    inner, outer = data.draw(FEW), groups * data.draw(FEW)
    dtype = data.draw(st.sampled_from((np.float32, np.float32, np.float64)))
    x = small(batch, groups * inner, *where.extents, dtype=dtype)
    w = small(outer, inner, *where.kernel, dtype=dtype, seed=1)
    b = small(outer, dtype=dtype, seed=2) if data.draw(st.booleans()) else None
    weights = Const(w) if data.draw(st.booleans()) else w
    found = computed("Conv", x, weights, b, group=groups, **where.attributes)
    wanted = convolved(x, w, where, groups)
    same(found[0], wanted if b is None else wanted + b.reshape(-1, *[1] * len(where.kernel)))


@given(st.data())
@examples(60)
def test_conv_transpose(data: st.DataObject) -> None:
    """Each element of x adds its multiple of the weights [C, O / groups, kernel...]."""
    where = data.draw(geometries(deep=True))
    rank, more = len(where.kernel), dict(where.attributes)
    auto = more.get("auto_pad", "NOTSET")
    extents = [data.draw(st.integers(1, 4)) for _ in range(rank)]
    batch, groups = data.draw(st.sampled_from((1, 2, 0))), data.draw(FEW)
    inner, outer = data.draw(FEW), data.draw(FEW)
    extra = [0] * rank
    low, high = list(where.low), list(where.high)
    for dim in range(rank):
        longest = max(where.strides[dim], where.dilations[dim]) - 1
        extra[dim] = data.draw(st.integers(0, longest)) if auto == "NOTSET" else 0
        whole = (extents[dim] - 1) * where.strides[dim] + where.spans[dim] + extra[dim]
        if auto.startswith("SAME"):
            need = whole - extents[dim] * where.strides[dim]
            assume(need >= 0)
            low[dim] = need // 2 if auto == "SAME_UPPER" else need - need // 2
            high[dim] = need - low[dim]
        assume(whole - low[dim] - high[dim] >= 1)
    if any(extra):
        more["output_padding"] = extra
    x = small(batch, groups * inner, *extents)
    w = small(groups * inner, outer, *where.kernel, seed=1)
    whole = [
        (n - 1) * s + span + more_of
        for n, s, span, more_of in zip(extents, where.strides, where.spans, extra, strict=True)
    ]
    wide = np.zeros((batch, groups, outer, *whole), np.float32)
    weights = w.reshape(groups, inner, outer, *where.kernel)
    for place in np.ndindex(*extents):
        column = x[(slice(None), slice(None), *place)].reshape(batch, groups, inner)
        rows = zip(place, where.strides, where.spans, where.dilations, strict=True)
        window = tuple(slice(at * s, at * s + span, d) for at, s, span, d in rows)
        wide[(..., *window)] += np.einsum("ngi,gio...->ngo...", column, weights)
    parts = tuple(slice(a, n - b) for a, b, n in zip(low, high, whole, strict=True))
    wanted = wide[(..., *parts)].reshape(batch, groups * outer, *(p.stop - p.start for p in parts))
    found = computed("ConvTranspose", x, Const(w), group=groups, **more)
    same(found[0], wanted)


def windows(x: Array, where: Geometry, counts: list[int]) -> Any:
    """(place, [N, C, taps] of what lies inside, the taps inside along each dim) of each window."""
    for place in np.ndindex(*counts):
        taps = where.taps(place)
        inside = [
            [at for at in row if 0 <= at < n] for row, n in zip(taps, where.extents, strict=True)
        ]
        patch = x[(slice(None), slice(None), *np.ix_(*inside))]
        yield place, patch.reshape(*x.shape[:2], math.prod(map(len, inside))), inside


@given(st.data())
@examples(60)
def test_max_pool(data: st.DataObject) -> None:
    """The maximum, and the place of it in the whole tensor, by rows or by columns."""
    where = data.draw(geometries())
    ceil = data.draw(st.booleans()) and "pads" in where.attributes
    shape = (data.draw(st.sampled_from((1, 2, 0))), data.draw(FEW), *where.extents)
    dtype = data.draw(st.sampled_from((np.float32, np.float64, np.int8, np.uint8)))
    x = np.random.default_rng(0).permutation(math.prod(shape)).astype(dtype).reshape(shape)
    assume(dtype not in (np.int8, np.uint8) or x.size < 100)
    counts = where.counts(ceil)
    by_columns = data.draw(st.booleans())
    order = "F" if by_columns else "C"
    numbers = np.arange(math.prod(where.extents)).reshape(where.extents, order=order)
    offsets = (np.arange(math.prod(shape[:2])) * numbers.size).reshape(shape[:2])
    places = windows(np.broadcast_to(numbers, shape), where, counts)
    wanted = np.zeros((*shape[:2], *counts), dtype)
    indices = np.zeros(wanted.shape, np.int64)
    for (place, patch, inside), (_, numbered, _) in zip(
        windows(x, where, counts), places, strict=True
    ):
        assume(all(inside))
        best = patch.argmax(-1)[..., None]
        here = (slice(None), slice(None), *place)
        wanted[here] = np.take_along_axis(patch, best, -1)[..., 0]
        indices[here] = np.take_along_axis(numbered, best, -1)[..., 0] + offsets
    more = where.attributes | {"kernel_shape": where.kernel, "ceil_mode": int(ceil)}
    outputs = data.draw(st.sampled_from((1, 2)))
    found = computed("MaxPool", x, outputs=outputs, storage_order=int(by_columns), **more)
    same(found[0], wanted)
    if outputs == 2:
        same(found[1], indices)


@given(st.data())
@examples(60)
def test_average_pool(data: st.DataObject) -> None:
    """Pads that are asked for may count; what lies beyond them, in a last window, never does."""
    where = data.draw(geometries())
    ceil = data.draw(st.booleans()) and "pads" in where.attributes
    with_pads, norm = data.draw(st.booleans()), data.draw(st.booleans())
    x = small(data.draw(st.sampled_from((1, 2, 0))), data.draw(FEW), *where.extents)
    counts = where.counts(ceil)
    wanted = np.zeros((*x.shape[:2], *counts), np.float32)
    for place, patch, inside in windows(x, where, counts):
        assume(all(inside))
        bounds = zip(where.taps(place), where.extents, where.low, where.high, strict=True)
        padded = [[at for at in row if -a <= at < n + b] for row, n, a, b in bounds]
        count = math.prod(map(len, padded if with_pads else inside))
        here = (slice(None), slice(None), *place)
        wanted[here] = np.sqrt((patch**2).sum(-1)) if norm else patch.sum(-1) / count
    more = where.attributes | {"kernel_shape": where.kernel, "ceil_mode": int(ceil)}
    if norm:
        same(computed("LpPool", x, p=2, **more)[0], wanted, 1e-6)
    else:
        found = computed("AveragePool", x, count_include_pad=int(with_pads), **more)
        same(found[0], wanted, 1e-6)


COORDINATES = ("half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel")
ROUNDING = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")


def coordinate(mode: str, place: int, extent: int, length: int, scale: float) -> float:
    """Where an element of the result lies in the input; corners are those of extent * scale."""
    if mode == "align_corners":
        last = extent * scale - 1
        return place * (extent - 1) / last if last else 0.0
    if mode == "asymmetric":
        return place / scale
    if mode == "pytorch_half_pixel" and length == 1:
        return 0.0
    return (place + 0.5) / scale - 0.5


def nearest(at: float, rounding: str) -> int:
    """The element that is nearest to a coordinate; halves go down or up."""
    down = {"round_prefer_floor": math.ceil(at - 0.5), "round_prefer_ceil": math.floor(at + 0.5)}
    return down.get(rounding, math.floor(at) if rounding == "floor" else math.ceil(at))


def weights_of(mode: str, rounding: str, at: float, extent: int) -> Array:
    """How much of each element of an axis a coordinate takes; outside, the edge is repeated."""
    found = np.zeros(extent)
    if mode == "nearest":
        found[min(max(nearest(at, rounding), 0), extent - 1)] = 1
        return found
    first = math.floor(at)
    for place, part in ((first, 1 - (at - first)), (first + 1, at - first)):
        found[min(max(place, 0), extent - 1)] += part
    return found


@given(st.data())
@examples(60)
def test_resize(data: st.DataObject) -> None:
    """To sizes, or by scales; each dim is a matrix of weights."""
    shape = tuple(data.draw(st.integers(0, 5)) for _ in range(data.draw(st.integers(1, 4))))
    mode, by = data.draw(st.sampled_from(("nearest", "linear"))), data.draw(st.booleans())
    coordinates = data.draw(st.sampled_from(COORDINATES))
    rounding = data.draw(st.sampled_from(ROUNDING))
    x = wanted = small(*shape)
    scales, lengths = [], []
    for dim, extent in enumerate(shape):
        moved = extent > 0 and data.draw(st.integers(0, 2)) > 0
        if by:
            scale = data.draw(st.sampled_from((0.5, 2.0, 3.0, 1.5, 0.75, 4.0))) if moved else 1.0
            length = math.floor(extent * scale)
        else:
            length = data.draw(st.integers(1, 8)) if moved else extent
            scale = length / extent if extent else 1.0
        assume(length >= 1 or not extent)
        spots = [coordinate(coordinates, n, extent, length, scale) for n in range(length)]
        if scale == 1.0:
            spots = [float(n) for n in range(length)]
        if mode == "nearest":  # how a tie is rounded depends on how the coordinate is
            assume(not any(near_tie(at, rounding) for at in spots))
        rows = [weights_of(mode, rounding, at, extent) for at in spots]
        matrix = np.array(rows).reshape(length, extent)
        wanted = np.moveaxis(np.tensordot(matrix, wanted, (1, dim)), 0, dim)
        scales.append(scale)
        lengths.append(length)
    size = Const(np.array(lengths, np.int64))
    inputs = (None, Const(np.array(scales, np.float32))) if by else (None, None, size)
    more = {"coordinate_transformation_mode": coordinates, "nearest_mode": rounding}
    found = computed("Resize", x, *inputs, mode=mode, **more)
    same(found[0], wanted.astype(np.float32), 0.0 if mode == "nearest" else 1e-5)


def near_tie(at: float, rounding: str) -> bool:
    """Whether a coordinate lies so near to where rounding changes that float32 may differ."""
    from_tie = (at - (0.5 if rounding.startswith("round") else 0.0)) % 1
    return from_tie != 0.0 and min(from_tie, 1 - from_tie) < 1e-4
