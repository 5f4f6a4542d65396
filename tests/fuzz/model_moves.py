"""Steps of random models: ops that move, pick and place elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from model_maker import EXTENTS, Maker
from model_steps import Step
from model_values import Value


def reshape(make: Maker) -> Any:
    x = make.value()
    if x is None:
        return None
    shape: list[int] = []
    for extent in x.shape:
        if shape and make.chance(2):
            shape[-1] *= extent
        else:
            shape.append(extent)
    parts: list[int] = []
    for extent in shape:
        factors = [f for f in range(1, extent + 1) if extent % f == 0]
        first = make.pick(factors) if make.chance(2) else extent
        parts += [first, extent // first] if make.chance(2) or first != extent else [extent]
    if parts and make.chance(3):
        parts[make.random.randrange(len(parts))] = -1
    return make.add("Reshape", x, make.constant(parts), exact=True)


def dims_of_one(make: Maker) -> Any:
    x = make.value()
    if x is None:
        return None
    ones = [dim for dim, extent in enumerate(x.shape) if extent == 1]
    if ones and make.chance(2):
        return make.add("Squeeze", x, make.constant(make.random.sample(ones, 1)), exact=True)
    axes = make.random.sample(range(x.rank + 1), 1)
    return make.add(
        "Unsqueeze", x, make.constant([axes[0] - make.pick((0, x.rank + 1))]), exact=True
    )


def transpose(make: Maker) -> Any:
    x = make.value(lambda v: v.rank > 1)
    return x and make.add(
        "Transpose", x, exact=True, perm=make.random.sample(range(x.rank), x.rank)
    )


def grown(make: Maker) -> Any:
    x = make.value(lambda v: v.rank < 5)
    if x is None:
        return None
    if make.chance(2):
        repeats = [make.pick((1, 1, 2, 3)) for _ in x.shape]
        return make.add("Tile", x, make.constant(repeats), exact=True)
    shape = [make.pick((2, 3, 5)) if n == 1 else make.pick((n, 1)) for n in x.shape]
    shape = [make.pick((1, 2, 3)), *shape] if make.chance(3) else shape
    return make.add("Expand", x, make.constant(shape), exact=True)


def joined(make: Maker) -> Any:
    x = make.value(lambda v: v.rank > 0)
    if x is None:
        return None
    axis = make.random.randrange(x.rank)

    def beside(shape: Sequence[int]) -> tuple[int, ...]:
        return (*shape[:axis], *shape[axis + 1 :])

    def fits(v: Value) -> bool:
        return v.dtype == x.dtype and v.rank == x.rank and beside(v.shape) == beside(x.shape)

    parts = [x]
    for _ in range(1 + make.random.randrange(3)):
        own = make.weights((*x.shape[:axis], make.pick(EXTENTS[:4]), *x.shape[axis + 1 :]), x.dtype)
        parts.append(own if make.chance(3) else make.value(fits) or own)
    make.random.shuffle(parts)
    return make.add("Concat", *parts, exact=True, axis=axis - make.pick((0, x.rank)))


def split(make: Maker) -> Any:
    x = make.value(lambda v: max(v.shape, default=0) > 1)
    if x is None:
        return None
    axis = make.pick([dim for dim, extent in enumerate(x.shape) if extent > 1])
    parts = make.random.randrange(2, min(4, x.shape[axis]) + 1)
    cuts = sorted(make.random.sample(range(1, x.shape[axis]), parts - 1))
    sizes = np.diff([0, *cuts, x.shape[axis]])
    return make.add(
        "Split", x, make.constant(sizes), dtypes=[x.dtype] * parts, exact=True, axis=axis
    )


def sliced(make: Maker) -> Any:
    x = make.value(lambda v: v.rank > 0)
    if x is None:
        return None
    axes = make.random.sample(range(x.rank), make.random.randrange(1, x.rank + 1))
    rows = []
    for axis in axes:
        extent, step = x.shape[axis], make.pick((1, 1, 2, 3, -1, -2))
        low = make.random.randrange(extent)
        high = make.random.randrange(low + 1, extent + 1)
        start, end = (low, high) if step > 0 else (high - 1, low - 1)
        end = -(2**31) if end < 0 else end - make.pick((0, extent if end < extent else 0))
        rows.append((start - make.pick((0, extent)), end, axis, step))
    return make.add("Slice", x, *map(make.constant, zip(*rows, strict=True)), exact=True)


def padded(make: Maker) -> Any:
    x = make.value(lambda v: v.rank > 0 and v.dtype.kind != "b")
    if x is None:
        return None
    mode = make.pick(("constant", "constant", "edge", "reflect", "wrap"))
    mode = "edge" if mode == "wrap" and make.opset < 19 else mode
    most = [min(3, n - 1) if mode == "reflect" else 2 for n in x.shape]
    pads = [make.random.randrange(n + 1) for n in (*most, *most)]
    value = make.constant(3, x.dtype) if mode == "constant" and make.chance(2) else None
    return make.add("Pad", x, make.constant(pads), value, exact=True, mode=mode)


def indices(make: Maker, shape: Sequence[int], extent: int) -> Value:
    """Constant indices into an axis, from either end."""
    found = make.generator.integers(-extent, extent, shape)
    return make.constant(found, make.pick(("int64", "int32")))


def gathered(make: Maker) -> Any:
    x = make.value(lambda v: v.rank > 0)
    if x is None:
        return None
    axis = make.random.randrange(x.rank)
    op = make.pick(("Gather", "Gather", "GatherElements", "GatherND"))
    if op == "GatherND":
        depth = make.random.randrange(1, x.rank + 1)
        rows = make.extents(make.random.randrange(3))
        parts = [make.generator.integers(-n, n, rows) for n in x.shape[:depth]]
        return make.add(op, x, make.constant(np.stack(parts, -1)), exact=True)
    shape = make.extents(make.random.randrange(3))
    if op == "GatherElements":
        shape = (*x.shape[:axis], make.pick(EXTENTS[:5]), *x.shape[axis + 1 :])
    return make.add(op, x, indices(make, shape, x.shape[axis]), exact=True, axis=axis)


def scattered(make: Maker) -> Any:
    """Into places that differ where the last update wins; sums may meet."""
    x = make.value(lambda v: v.rank > 0 and v.dtype.name in ("float32", "int64", "float64"))
    if x is None:
        return None
    reduction, axis = make.pick(("none", "add", "max")), make.random.randrange(x.rank)
    count = make.random.randrange(1, x.shape[axis] + 1)
    if make.chance(2):
        shape = (*x.shape[:axis], count, *x.shape[axis + 1 :])
        order = np.argsort(
            make.generator.random((*shape[:axis], x.shape[axis], *shape[axis + 1 :])), axis
        )
        place = make.constant(order.take(range(count), axis))
        parts = (x, place, make.weights(shape, x.dtype))
        return make.add("ScatterElements", *parts, axis=axis, reduction=reduction)
    rows = make.random.sample(range(x.shape[0]), min(count, x.shape[0]))
    updates = make.weights((len(rows), *x.shape[1:]), x.dtype)
    place = make.constant(np.array(rows).reshape(-1, 1))
    return make.add("ScatterND", x, place, updates, reduction=reduction)


def blocks(make: Maker) -> Any:
    x = make.value(lambda v: v.rank == 4)
    if x is None:
        return None
    if x.shape[1] % 4 == 0:
        mode = make.pick(("DCR", "CRD"))
        return make.add("DepthToSpace", x, exact=True, blocksize=2, mode=mode)
    if x.shape[2] % 2 == 0 and x.shape[3] % 2 == 0:
        return make.add("SpaceToDepth", x, exact=True, blocksize=2)
    return make.add("Flatten", x, exact=True, axis=make.random.randrange(-4, 5))


def triangle(make: Maker) -> Any:
    x = make.value(lambda v: v.rank > 1)
    shift = make.constant(make.random.randrange(-2, 3))
    return x and make.add("Trilu", x, shift, exact=True, upper=make.pick((0, 1)))


def turned(make: Maker) -> Any:
    x = make.value(lambda v: v.rank > 1)
    if x is None:
        return None
    batch = make.pick((0, 1))
    lengths = make.generator.integers(1, x.shape[1 - batch] + 1, x.shape[batch])
    more = {"batch_axis": batch, "time_axis": 1 - batch}
    return make.add("ReverseSequence", x, make.constant(lengths), exact=True, **more)


def hot(make: Maker) -> Any:
    """OneHot of integers, also of those outside the depth."""
    x = make.value(lambda v: v.dtype.name in ("int64", "int32") and 0 < v.rank < 4)
    values = make.weights((2,), "float32")
    depth = make.constant(make.pick((3, 5, 8)))
    return x and make.add("OneHot", x, depth, values, dtypes=["float32"], exact=True, axis=-1)


def shape_of(make: Maker) -> Any:
    x = make.value()
    return x and make.add(make.pick(("Shape", "Size")), x, dtypes=["int64"], exact=True)


MOVES: tuple[Step, ...] = (
    *(reshape, dims_of_one, transpose, grown, joined, joined, split, sliced, padded, gathered),
    *(scattered, blocks, triangle, turned, hot, shape_of),
)
