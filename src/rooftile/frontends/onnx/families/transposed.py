"""ConvTranspose: a convolution of stride 1 for each phase of the result, interleaved.

With strides s the results at r, r + s, r + 2s, ... read the input with every s-th tap of the
kernel: they are one phase. Nothing is multiplied by the zeros that a stuffed input would hold.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

from rooftile.core.symbolic import same
from rooftile.frontends.onnx.call import Call
from rooftile.frontends.onnx.families.index import cut
from rooftile.frontends.onnx.families.nn import channels_last, channels_second
from rooftile.frontends.onnx.registry import reads
from rooftile.ir.graph import Value

MAX_PHASES = 4096
"""Each phase of the strides is a convolution of its own where they do not divide the kernel."""


@dataclass(frozen=True)
class Along:
    """One spatial dim: `size` results, of which the first is `low` behind the uncut one's."""

    extent: int
    kernel: int
    stride: int
    dilation: int
    low: int
    size: int

    @property
    def first(self) -> int:
        """The number of the first result of each phase that is computed."""
        return self.low // self.stride

    @property
    def count(self) -> int:
        """How many results of each phase are computed."""
        return (self.low + self.size - 1) // self.stride - self.first + 1

    def taps(self, phase: int) -> range:
        """The taps that meet results of the phase; result q reads input q - tap * dilation // s."""
        step = self.stride // math.gcd(self.stride, self.dilation)
        meet = (tap for tap in range(min(step, self.kernel)) if self._meets(tap, phase))
        start = next(meet, None)
        return range(0) if start is None else range(start, self.kernel, step)

    def _meets(self, tap: int, phase: int) -> bool:
        return (tap * self.dilation - phase) % self.stride == 0

    def offset(self, tap: int, phase: int) -> int:
        """How far before result q the input lies that it reads with a tap of its phase."""
        return (tap * self.dilation - phase) // self.stride


@reads("ConvTranspose")
def conv_transpose(call: Call) -> Value:
    """n-d transposed convolution with an optional bias."""
    x, w, bias = call.input(0), call.input(1), call.optional(2)
    if x.rank != w.rank or x.rank < 3:
        call.invalid(f"input {list(x.shape)} and weights {list(w.shape)} must have one rank, >= 3")
    kernel, groups = call.ints("kernel_shape", w.dims[2:]), call.integer("group", 1)
    if kernel != w.dims[2:]:
        call.invalid(f"kernel_shape {list(kernel)} is not that of the weights {list(w.shape)}")
    if groups < 1 or not same(w.dims[0], x.dims[1]) or x.dims[1] % groups:
        call.invalid(f"weights {list(w.shape)} in {groups} groups do not fit input {list(x.shape)}")
    dims = _geometry(call, x.dims[2:], kernel)
    call.check_size((x.dims[0], w.dims[1] * groups, *(dim.size for dim in dims)), x.dtype)
    last = channels_last(call, x)
    if all(dim.count > 0 for dim in dims):
        result = _cropped(call, _phases(call, last, w, dims, groups), dims)
    else:
        features = w.dims[1] * groups
        shape = (x.dims[0], *(dim.size for dim in dims), features)
        result = call.broadcast(call.constant([0], x.dtype), shape)
    if bias is not None:
        result = call.elementwise("add", result, bias)
    return channels_second(call, result)


def _geometry(call: Call, extents: Sequence[int], kernel: Sequence[int]) -> list[Along]:
    rank = len(extents)
    strides, dilations = call.ints("strides", [1] * rank), call.ints("dilations", [1] * rank)
    extra, pads = call.ints("output_padding", [0] * rank), call.ints("pads", [0] * 2 * rank)
    wanted = call.ints("output_shape", ())[-rank:]
    auto = call.text("auto_pad", "NOTSET")
    for name, values, count, least in (
        ("strides", strides, rank, 1),
        ("dilations", dilations, rank, 1),
        ("kernel_shape", kernel, rank, 1),
        ("output_padding", extra, rank, 0),
        ("pads", pads, 2 * rank, 0),
    ):
        if len(values) != count or any(value < least for value in values):
            call.invalid(f"{name} {list(values)} must be {count} numbers of at least {least}")
    if auto not in ("NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"):
        call.invalid(f"auto_pad {auto!r} must be NOTSET, VALID, SAME_UPPER or SAME_LOWER")
    if wanted and (len(wanted) != rank or any(size < 0 for size in wanted)):
        call.invalid(f"output_shape {list(wanted)} must be {rank} numbers, none negative")
    found = []
    for dim, extent in enumerate(extents):
        reach = (kernel[dim] - 1) * dilations[dim] + 1
        whole = strides[dim] * (extent - 1) + reach + extra[dim]
        if wanted or auto.startswith("SAME"):
            size = wanted[dim] if wanted else extent * strides[dim]
            total = max(0, whole - size)  # results that nothing reaches are zeros at the end
            low = total // 2 if auto == "SAME_UPPER" else total - total // 2
        else:
            low = pads[dim] if auto == "NOTSET" else 0
            size = whole - low - (pads[rank + dim] if auto == "NOTSET" else 0)
        if size < 0:
            call.invalid(f"pads {list(pads)} cut off more than the {whole} results of dim {dim}")
        found.append(Along(extent, kernel[dim], strides[dim], dilations[dim], low, size))
    return found


def _phases(call: Call, x: Value, w: Value, dims: Sequence[Along], groups: int) -> Value:
    """[N, counts..., strides..., O]: every result of every phase."""
    strides, counts = [dim.stride for dim in dims], [dim.count for dim in dims]
    features = w.dims[1] * groups
    if all(dim.dilation == 1 and dim.kernel % dim.stride == 0 for dim in dims):
        return _alike(call, x, w, dims, groups)
    if math.prod(strides) > MAX_PHASES:
        call.unsupported(f"strides {strides} with this kernel: {math.prod(strides)} phases")
    parts = []
    for phase in product(*map(range, strides)):
        part = _one_phase(call, x, w, dims, phase, groups)
        parts.append(call.reshape(part, (x.dims[0], *counts, 1, features)))
    joined = parts[0] if len(parts) == 1 else call.emit("concat", *parts, axis=x.rank - 1)
    return call.reshape(joined, (x.dims[0], *counts, *strides, features))


def _one_phase(
    call: Call, x: Value, w: Value, dims: Sequence[Along], phase: Sequence[int], groups: int
) -> Value:
    """[N, counts..., O]: the results of one phase, computed with its taps alone."""
    taps = [dim.taps(part) for dim, part in zip(dims, phase, strict=True)]
    reaches = []
    for dim, part, used in zip(dims, phase, taps, strict=True):
        offsets = [dim.offset(tap, part) for tap in used]
        step = offsets[1] - offsets[0] if len(offsets) > 1 else 1
        reaches.append(_Reach(offsets[0], offsets[-1], step) if offsets else None)
    weights = _reversed(call, w, range(2, w.rank), taps)
    sizes = [len(used) for used in taps]
    apart = call.reshape(weights, (groups, w.dims[0] // groups, w.dims[1], *sizes))
    window = range(3, apart.rank)
    turned = call.transpose(apart, (*window, 1, 0, 2))
    kernel = call.reshape(turned, (*sizes, w.dims[0] // groups, groups * w.dims[1]))
    return _convolved(call, x, kernel, dims, reaches, groups)


def _alike(call: Call, x: Value, w: Value, dims: Sequence[Along], groups: int) -> Value:
    """All phases by one convolution: each has equally many taps, at the same places."""
    rank = len(dims)
    strides = [dim.stride for dim in dims]
    sizes = [dim.kernel // dim.stride for dim in dims]
    split = [part for pair in zip(sizes, strides, strict=True) for part in pair]
    apart = call.reshape(w, (groups, w.dims[0] // groups, w.dims[1], *split))
    window, phases = range(3, apart.rank, 2), range(4, apart.rank, 2)
    apart = _reversed(call, apart, window, [range(size) for size in sizes])
    turned = call.transpose(apart, (*window, 1, 0, *phases, 2))
    features = w.dims[1] * groups * math.prod(strides)
    kernel = call.reshape(turned, (*sizes, w.dims[0] // groups, features))
    reaches = [_Reach(0, size - 1, 1) for size in sizes]
    result = _convolved(call, x, kernel, dims, reaches, groups)
    counts = result.dims[1:-1]
    apart = call.reshape(result, (x.dims[0], *counts, groups, *strides, w.dims[1]))
    group = 1 + rank
    order = (*range(group), *range(group + 1, group + 1 + rank), group, apart.rank - 1)
    together = call.transpose(apart, order)
    return call.reshape(together, (x.dims[0], *counts, *strides, w.dims[1] * groups))


@dataclass(frozen=True)
class _Reach:
    """Result q reads inputs q - first, q - first - step, ... q - last."""

    first: int
    last: int
    step: int


def _reversed(call: Call, w: Value, dims: Sequence[int], taps: Sequence[range]) -> Value:
    """The taps of each of the dims, the last one first."""
    starts, limits, strides = [0] * w.rank, list(w.dims), [1] * w.rank
    for dim, used in zip(dims, taps, strict=True):
        if not used:
            starts[dim], limits[dim] = 0, 0
        else:
            starts[dim], limits[dim], strides[dim] = used[-1], used[0] - 1, -used.step
            limits[dim] = max(limits[dim], -1)
    return cut(call, w, starts, limits, strides)


def _convolved(
    call: Call,
    x: Value,
    kernel: Value,
    dims: Sequence[Along],
    reaches: Sequence[_Reach | None],
    groups: int,
) -> Value:
    """The convolution that gives `count` results a dim; x is cut or padded to what they read."""
    starts, limits = [0] * x.rank, list(x.dims)
    low, high, steps = [], [], []
    for number, (dim, reach) in enumerate(zip(dims, reaches, strict=True)):
        start = 0 if reach is None else dim.first - reach.last
        end = -1 if reach is None else dim.first + dim.count - 1 - reach.first
        if start >= dim.extent or end < 0:  # nothing is read, or zeros alone
            shape = (x.dims[0], *(each.count for each in dims), kernel.dims[-1])
            return call.broadcast(call.reshape(call.constant(0, x.dtype), (1,) * x.rank), shape)
        starts[1 + number], limits[1 + number] = max(0, start), min(dim.extent, end + 1)
        low.append(max(0, -start))
        high.append(max(0, end + 1 - dim.extent))
        steps.append(1 if reach is None else reach.step)
    return call.emit(
        "conv",
        cut(call, x, starts, limits),
        kernel,
        strides=(1,) * len(dims),
        pads_low=tuple(low),
        pads_high=tuple(high),
        dilations=tuple(steps),
        groups=groups,
    )


def _cropped(call: Call, phases: Value, dims: Sequence[Along]) -> Value:
    """The phases interleaved along each dim, and cut to the results that are wanted."""
    rank = len(dims)
    pairs = [part for dim in range(rank) for part in (1 + dim, 1 + rank + dim)]
    woven = call.transpose(phases, (0, *pairs, 1 + 2 * rank))
    whole = [dim.count * dim.stride for dim in dims]
    result = call.reshape(woven, (phases.dims[0], *whole, phases.dims[-1]))
    starts = [dim.low - dim.first * dim.stride for dim in dims]
    limits = [start + dim.size for start, dim in zip(starts, dims, strict=True)]
    return cut(call, result, [0, *starts, 0], [result.dims[0], *limits, result.dims[-1]])
