"""Shapes: reading them, and giving the same elements another one."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from rooftile.core.symbolic import same
from rooftile.frontends.onnx.call import Call
from rooftile.frontends.onnx.registry import reads
from rooftile.ir.graph import Value
from rooftile.ops.builder import MAX_RANK


@reads("Shape")
def shape(call: Call) -> Value:
    """The dims from `start` to `end` as i64."""
    x = call.input(0)
    start = call.integer("start", 0)
    end = call.integer("end", x.rank)
    return call.builder.shape(x.dims[start:end])


@reads("Size")
def size(call: Call) -> Value:
    """The number of elements as i64."""
    return call.builder.shape(np.array(math.prod(call.input(0).dims), object))


@reads("Identity")
def identity(call: Call) -> Value:
    """The input itself."""
    return call.input(0)


@reads("Dropout")
def dropout(call: Call) -> tuple[Value, ...]:
    """Inference: the input itself, and a mask that keeps everything."""
    call.ignore("ratio", "is_test", "seed", "consumed_inputs")
    x, ratio, training = call.input(0), call.optional(1), call.optional(2)
    if training is not None and bool(call.content(training, "training_mode").any()):
        rate = 0.5 if ratio is None else float(call.content(ratio, "ratio").reshape(-1)[0])
        if rate:
            call.unsupported("training mode with a ratio other than 0")
    if call.outputs < 2:
        return (x,)
    # Before opset 10 the mask is of the input's type.
    mask = call.constant([1], "bool" if call.opset >= 10 else x.dtype)
    return x, call.broadcast(call.reshape(mask, (1,) * x.rank), x.dims)


@reads("Reshape")
def reshape_by_attribute(call: Call) -> Value:
    """Before opset 5 the shape is an attribute."""
    call.ignore("consumed_inputs")
    return _reshaped(call, call.ints("shape"))


@reads("Reshape", since=5)
def reshape(call: Call) -> Value:
    """0 takes the input's dim over (unless allowzero), -1 is what remains."""
    return _reshaped(call, call.input_ints(1, "shape"), bool(call.integer("allowzero", 0)))


def _reshaped(call: Call, wanted: Sequence[int], allow_zero: bool = False) -> Value:
    x = call.input(0)
    dims: list[int] = []
    for number, extent in enumerate(wanted):
        if extent == 0 and not allow_zero:
            if number >= x.rank:
                call.invalid(f"shape {list(wanted)} has a 0 where the input has no dim")
            extent = x.dims[number]
        dims.append(extent)
    count, known = math.prod(x.dims), math.prod(extent for extent in dims if extent != -1)
    if dims.count(-1) > 1 or any(extent < -1 for extent in dims):
        call.invalid(f"shape {list(wanted)} may have one -1 and no other negative dim")
    if -1 in dims:
        dims[dims.index(-1)] = count // known if known else 0
    if not same(math.prod(dims), count):
        call.invalid(f"{list(x.shape)} cannot be reshaped to {list(wanted)}")
    return call.reshape(x, dims)


@reads("Flatten")
def flatten(call: Call) -> Value:
    """A matrix: the dims before `axis`, and the rest."""
    x = call.input(0)
    axis = call.integer("axis", 1)
    if not -x.rank <= axis <= x.rank:
        call.invalid(f"axis {axis} is outside a tensor of rank {x.rank}")
    axis += x.rank if axis < 0 else 0
    return call.reshape(x, (math.prod(x.dims[:axis]), math.prod(x.dims[axis:])))


@reads("Squeeze")
def squeeze_by_attribute(call: Call) -> Value:
    """Axes as an attribute."""
    return _squeezed(call, call.ints("axes") if call.has("axes") else None)


@reads("Squeeze", since=13)
def squeeze(call: Call) -> Value:
    """Axes as an input; every dim of 1 where not given."""
    return _squeezed(call, call.input_ints(1, "axes") if call.optional(1) else None)


def _squeezed(call: Call, given: Sequence[int] | None) -> Value:
    x = call.input(0)
    ones = [dim for dim, extent in enumerate(x.dims) if extent == 1]
    axes = ones if given is None else call.axes(given, x.rank)
    if not set(axes) <= set(ones):
        call.invalid(f"axes {list(axes)} of {list(x.shape)} are not all of size 1")
    return call.reshape(x, [extent for dim, extent in enumerate(x.dims) if dim not in axes])


@reads("Unsqueeze")
def unsqueeze_by_attribute(call: Call) -> Value:
    """Axes as an attribute."""
    return _unsqueezed(call, call.ints("axes"))


@reads("Unsqueeze", since=13)
def unsqueeze(call: Call) -> Value:
    """Axes as an input."""
    return _unsqueezed(call, call.input_ints(1, "axes"))


def _unsqueezed(call: Call, given: Sequence[int]) -> Value:
    x = call.input(0)
    rank = x.rank + len(given)
    if rank > MAX_RANK:
        call.invalid(f"{rank} dims are more than {MAX_RANK}")
    axes = call.axes(given, rank)
    rest = iter(x.dims)
    return call.reshape(x, [1 if dim in axes else next(rest) for dim in range(rank)])


@reads("Transpose")
def transpose(call: Call) -> Value:
    """Dims permuted; reversed where no order is given."""
    x = call.input(0)
    perm = call.ints("perm", range(x.rank)[::-1])
    if sorted(perm) != list(range(x.rank)):
        call.invalid(f"perm {list(perm)} does not order the {x.rank} dims of the input")
    return call.transpose(x, perm)


@reads("Expand")
def expand(call: Call) -> Value:
    """Dims of 1 grown to a shape; dims of the input that are larger stay."""
    x, wanted = call.input(0), call.input_ints(1, "shape")
    rank = max(x.rank, len(wanted))
    x = call.ranked(x, rank)
    target = (1,) * (rank - len(wanted)) + tuple(wanted)
    pairs = list(zip(x.dims, target, strict=True))
    unfit = any(1 not in (have, want) and not same(have, want) for have, want in pairs)
    if unfit or any(want < 0 for want in target):
        call.invalid(f"{list(x.shape)} does not expand to {list(wanted)}")
    return call.broadcast(x, [want if have == 1 else have for have, want in pairs])


@reads("Tile", since=6)
def tile(call: Call) -> Value:
    """Each dim repeated: a dim of 1 before it is grown, then both are joined."""
    x, repeats = call.input(0), call.input_ints(1, "repeats")
    if len(repeats) != x.rank or any(count < 0 for count in repeats):
        call.invalid(f"repeats {list(repeats)} must give a number for each of {x.rank} dims")
    if all(count == 1 for count in repeats):
        return x
    apart = [part for extent in x.dims for part in (1, extent)]
    grown = [part for pair in zip(repeats, x.dims, strict=True) for part in pair]
    together = [count * extent for count, extent in zip(repeats, x.dims, strict=True)]
    return call.reshape(call.broadcast(call.reshape(x, apart), grown), together)


@reads("DepthToSpace")
def depth_to_space(call: Call) -> Value:
    """Blocks of channels become blocks of pixels."""
    x, block, mode = call.input(0), call.integer("blocksize"), call.text("mode", "DCR")
    if x.rank != 4 or block < 1 or x.dims[1] % (block * block) or mode not in ("DCR", "CRD"):
        call.invalid(f"blocksize {block} or mode {mode!r} does not fit {list(x.shape)}")
    n, c, h, w = x.dims
    depth = c // (block * block)
    if mode == "DCR":
        parts = call.reshape(x, (n, block, block, depth, h, w))
        moved = call.transpose(parts, (0, 3, 4, 1, 5, 2))
    else:
        parts = call.reshape(x, (n, depth, block, block, h, w))
        moved = call.transpose(parts, (0, 1, 4, 2, 5, 3))
    return call.reshape(moved, (n, depth, h * block, w * block))


@reads("SpaceToDepth")
def space_to_depth(call: Call) -> Value:
    """Blocks of pixels become channels: before those of the input (DCR), or within each (CRD)."""
    x, block, mode = call.input(0), call.integer("blocksize"), call.text("mode", "DCR")
    if x.rank != 4 or block < 1 or x.dims[2] % block or x.dims[3] % block:
        call.invalid(f"blocksize {block} does not fit {list(x.shape)}")
    if mode not in ("DCR", "CRD"):
        call.invalid(f"mode {mode!r} must be DCR or CRD")
    n, c, h, w = x.dims
    parts = call.reshape(x, (n, c, h // block, block, w // block, block))
    moved = call.transpose(parts, (0, 3, 5, 1, 2, 4) if mode == "DCR" else (0, 1, 3, 5, 2, 4))
    return call.reshape(moved, (n, c * block * block, h // block, w // block))
