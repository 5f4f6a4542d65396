"""Small graphs of canonical ops put together at random, every choice made by a `Choose`."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from random import Random
from typing import Any, Protocol

import numpy as np
from hypothesis import strategies as st
from sketch import Sketch, normal

from rooftile.ir.graph import Graph, Value

EXTENTS = (1, 2, 3, 4, 5, 6, 8, 12, 16, 17, 20)
MOST_ELEMENTS = 4000


class Choose(Protocol):
    """Where choices come from: `choose(n)` is a number below n."""

    def __call__(self, count: int) -> int: ...


def by_seed(seed: int) -> Choose:
    """Choices of a random generator."""
    return Random(seed).randrange


def drawn(data: st.DataObject) -> Choose:
    """Choices of hypothesis, which makes failures small."""
    return lambda count: data.draw(st.integers(0, count - 1))


class Maker:
    """A graph under construction."""

    def __init__(self, choose: Choose) -> None:
        self.choose = choose
        self.sketch = Sketch()
        self.values: list[Value] = []

    def pick(self, items: Sequence[Any]) -> Any:
        return items[self.choose(len(items))]

    def graph(self, steps: int) -> Graph:
        """`steps` nodes over one to three inputs; what nothing reads is an output, and a few
        others are."""
        for _ in range(1 + self.choose(3)):
            rank = self.choose(5)
            self.values.append(self.sketch.input(*self.shape(rank)))
        inputs = len(self.values)
        for _ in range(steps):
            step = self.pick(STEPS)
            made = step(self, self.pick(self.values[-6:]))
            if made is not None and 0 < math.prod(made.dims) <= MOST_ELEMENTS:
                self.values.append(made)
        read = {name for node in self.sketch.builder.nodes for name in node.inputs}
        computed = self.values[inputs:] or self.values
        outputs = [v for v in computed if v.name not in read or not self.choose(6)]
        return self.sketch.graph(*dict.fromkeys(outputs or computed[-1:]))

    def shape(self, rank: int) -> tuple[int, ...]:
        shape: list[int] = []
        for _ in range(rank):
            room = [n for n in EXTENTS if n * math.prod(shape) <= MOST_ELEMENTS]
            shape.append(self.pick(room))
        return tuple(shape)

    def constant(self, *shape: int) -> Value:
        return self.sketch.constant(normal(*shape, seed=self.choose(1000)))


def unary(make: Maker, x: Value) -> Value:
    op = make.pick(("neg", "abs", "tanh", "logistic", "erf"))
    return make.sketch(op, x)


def root(make: Maker, x: Value) -> Value:
    return make.sketch("sqrt", make.sketch("add", make.sketch("mul", x, x), 0.5))


def binary(make: Maker, x: Value) -> Value:
    op = make.pick(("add", "sub", "mul", "max", "min"))
    fits = [v for v in make.values if v.rank == x.rank and _broadcast(v, x)]
    shape = tuple(make.pick((1, n)) for n in x.dims)
    other = make.pick([*fits, make.constant(*shape), make.constant(*(1,) * x.rank)])
    made: Value = make.sketch(op, *make.pick(((x, other), (other, x))))
    return make.sketch("tanh", made) if op == "mul" else made


def choice(make: Maker, x: Value) -> Value:
    other = make.constant(*(make.pick((1, n)) for n in x.dims))
    return make.sketch("where", make.sketch("lt", x, other), x, other)


def through_integers(make: Maker, x: Value) -> Value:
    positions = (
        make.sketch.builder.emit("iota", shape=x.dims, axis=make.choose(x.rank), dtype="i64")
        if x.rank
        else make.sketch.constant(2, "i64")
    )
    return make.sketch("add", x, make.sketch("cast", positions, dtype="f32"))


def reduction(make: Maker, x: Value) -> Value:
    dims = tuple(dim for dim in range(x.rank) if make.choose(2))
    op = make.pick(("sum", "max", "min", "sum"))
    made: Value = make.sketch("reduce", x, op=op, dims=dims)
    count = math.prod(x.dims[dim] for dim in dims)
    return make.sketch("mul", made, 1 / count) if op == "sum" else made


def softmax(make: Maker, x: Value) -> Value:
    dims = (make.choose(x.rank),) if x.rank else ()
    top = make.sketch("reduce", x, op="max", dims=dims)
    raised = make.sketch("exp", make.sketch("sub", x, top))
    return make.sketch("div", raised, make.sketch("reduce", raised, op="sum", dims=dims))


def normalised(make: Maker, x: Value) -> Value:
    dims = tuple(range(make.choose(x.rank + 1), x.rank))
    count = math.prod(x.dims[dim] for dim in dims)
    mean = make.sketch("mul", make.sketch("reduce", x, op="sum", dims=dims), 1 / count)
    centred = make.sketch("sub", x, mean)
    square = make.sketch("mul", centred, centred)
    total = make.sketch("mul", make.sketch("reduce", square, op="sum", dims=dims), 1 / count)
    return make.sketch("div", centred, make.sketch("sqrt", make.sketch("add", total, 0.1)))


def reshape(make: Maker, x: Value) -> Value:
    """Neighbouring dims joined, and dims split."""
    shape: list[int] = []
    for extent in x.dims:
        if shape and not make.choose(3):
            shape[-1] *= extent
        else:
            shape.append(extent)
    split: list[int] = []
    for extent in shape:
        factors = [f for f in range(1, extent + 1) if extent % f == 0]
        first = make.pick(factors) if not make.choose(2) else extent
        split += [extent // first, first] if first != extent else [extent]
    return make.sketch("reshape", x, shape=tuple(split[:5]) if len(split) <= 5 else x.dims)


def transpose(make: Maker, x: Value) -> Value:
    left, perm = list(range(x.rank)), []
    while left:
        perm.append(left.pop(make.choose(len(left))))
    return make.sketch("transpose", x, perm=tuple(perm))


def part(make: Maker, x: Value) -> Value:
    starts, limits, strides = [], [], []
    for extent in x.dims:
        low = make.choose(extent)
        high = low + 1 + make.choose(extent - low)
        step = make.pick((1, 1, 1, 2, -1))
        if step < 0:
            low, high = high - 1, low - 1
        starts.append(low)
        limits.append(high)
        strides.append(step)
    return make.sketch(
        "slice", x, starts=tuple(starts), limits=tuple(limits), strides=tuple(strides)
    )


def padded(make: Maker, x: Value) -> Value:
    low = tuple(make.choose(3) for _ in x.dims)
    high = tuple(make.choose(2) for _ in x.dims)
    return make.sketch("pad", x, low=low, high=high, value=make.pick((0.0, 1.5)))


def broadcast(make: Maker, x: Value) -> Value:
    shape = tuple(make.pick((1, 4)) if n == 1 else n for n in x.dims)
    return make.sketch("broadcast", x, shape=shape)


def concat(make: Maker, x: Value) -> Value | None:
    if not x.rank:
        return None
    axis = make.choose(x.rank)

    def beside(v: Value) -> tuple[int, ...]:
        return (*v.dims[:axis], *v.dims[axis + 1 :])

    fits = [v for v in make.values if v.rank == x.rank and beside(v) == beside(x)]
    parts = [make.pick(fits) for _ in range(1 + make.choose(2))]
    return make.sketch("concat", *parts, x, axis=axis)


def gather(make: Maker, x: Value) -> Value | None:
    if not x.rank:
        return None
    axis = make.choose(x.rank)
    shape = make.shape(make.choose(2))
    rng = np.random.default_rng(make.choose(1000))
    indices = make.sketch.constant(rng.integers(-x.dims[axis], x.dims[axis], shape), "i64")
    return make.sketch("gather", x, indices, axis=axis)


def dot(make: Maker, x: Value) -> Value | None:
    if not x.rank:
        return None
    contract = make.choose(x.rank)
    batch = tuple(d for d in range(x.rank) if d != contract and not make.choose(4))
    shape = (*(x.dims[d] for d in batch), make.pick((1, 3, 16, 20)), x.dims[contract])
    fits = [v for v in make.values if v.dims == shape]
    other = make.pick([*fits, make.constant(*shape)])
    made: Value = make.sketch(
        "dot",
        x,
        other,
        lhs_batch=batch,
        rhs_batch=tuple(range(len(batch))),
        lhs_contract=(contract,),
        rhs_contract=(len(shape) - 1,),
    )
    return make.sketch("mul", made, 1 / x.dims[contract])


def conv(make: Maker, x: Value) -> Value | None:
    if x.rank < 3:
        return None
    space = x.rank - 2
    window = tuple(min(make.pick((1, 2, 3)), n) for n in x.dims[1:-1])
    groups = make.pick([g for g in (1, 1, 2, x.dims[-1]) if x.dims[-1] % g == 0])
    pads = {name: tuple(make.choose(2) for _ in range(space)) for name in ("pads_low", "pads_high")}
    strides = tuple(make.pick((1, 1, 2)) for _ in range(space))
    features = groups * make.pick((1, 2, 8))
    made = make.sketch.conv(x, *window, features, groups=groups, strides=strides, **pads)
    return make.sketch("mul", made, 0.25)


def pool(make: Maker, x: Value) -> Value:
    op = make.pick(("max", "sum"))
    window = tuple(min(make.pick((1, 2, 3)), n) for n in x.dims)
    low = tuple(make.choose(2) if size > 1 else 0 for size in window)
    high = tuple(make.choose(2) if size > 1 else 0 for size in window)
    strides = tuple(make.pick((1, 2, size)) for size in window)
    made: Value = make.sketch(
        "reduce_window",
        x,
        op=op,
        window=window,
        strides=strides,
        dilations=(1,) * x.rank,
        pads_low=low,
        pads_high=high,
    )
    return make.sketch("mul", made, 1 / math.prod(window)) if op == "sum" else made


Step = Callable[[Maker, Value], "Value | None"]
STEPS: tuple[Step, ...] = (
    unary,
    unary,
    root,
    binary,
    binary,
    binary,
    choice,
    through_integers,
    reduction,
    reduction,
    softmax,
    normalised,
    reshape,
    reshape,
    transpose,
    part,
    padded,
    broadcast,
    concat,
    gather,
    dot,
    dot,
    conv,
    conv,
    pool,
)


def _broadcast(v: Value, x: Value) -> bool:
    return all(a == b or 1 in (a, b) for a, b in zip(v.dims, x.dims, strict=True))
