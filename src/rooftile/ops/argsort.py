"""argsort: where the elements along one axis lie in order, the first `count` of them, as i64.

Equal elements keep their order, in both directions; -0 equals 0, NaN is larger than every number.

The kernel is a bitonic sorting network: its comparisons do not depend on the data, so they run in
vectors. An element of up to 32 bits and its place make one i64 key; wider ones are sorted beside
their places.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rooftile.core.affine import Affine, affine
from rooftile.core.dtype import itemsize, kind
from rooftile.ir.graph import Array, Node, Value
from rooftile.ir.tile import Axis, Buf, Cast, Const, For, Iota, Kernel, Load, Map, Stmt, Store, Tile
from rooftile.ir.tile.cost import cost
from rooftile.ops.base import Op, Type, register
from rooftile.ops.iota import position
from rooftile.ops.rules import Attrs, arity, attribute, axis_of, integer, need, of_kind

PLACE_BITS = 32


def _infer(attrs: Attrs, inputs: Sequence[Value]) -> tuple[Type, ...]:
    (x,) = arity("argsort", inputs, 1)
    of_kind("argsort", x, "float", "int", "uint")
    axis, count = axis_of("argsort", attrs, x.rank), integer("argsort", attrs, "count")
    extent = x.dims[axis]
    need(0 <= count <= extent < 1 << PLACE_BITS, "argsort", f"count {count} is not in 0..{extent}")
    direction = attribute("argsort", attrs, "descending")
    need(isinstance(direction, bool), "argsort", "attribute descending must be true or false")
    return ((tuple(count if d == axis else n for d, n in enumerate(x.shape)), "i64"),)


def _reference(attrs: Attrs, arrays: Sequence[Array]) -> tuple[Array, ...]:
    x = np.moveaxis(arrays[0], attrs["axis"], -1)
    if attrs["descending"]:  # a stable sort of the reversed row, read from its end
        order = x.shape[-1] - 1 - np.argsort(x[..., ::-1], axis=-1, kind="stable")[..., ::-1]
    else:
        order = np.argsort(x, axis=-1, kind="stable")
    return (np.moveaxis(order[..., : attrs["count"]], -1, attrs["axis"]),)


def _flops(attrs: Attrs, inputs: Sequence[Value], outputs: Sequence[Value]) -> int:
    if 0 in inputs[0].dims or 0 in outputs[0].dims:
        return 0
    node = Node("argsort", ("x",), tuple(outputs), tuple(sorted(attrs.items())))
    return cost(_program(node, inputs)).total_flops


def _i64(value: int) -> Const:
    return Const(value, "i64")


def _ordered(x: Tile, dtype: str) -> tuple[Tile, bool]:
    """An i64 that is ordered as the element is, and whether it fits 32 bits."""
    if dtype == "u64":
        return Map("bitxor", (Cast(x, "i64", bits=True), _i64(-(1 << 63)))), False
    if dtype == "i64":
        return x, False
    if kind(dtype) != "float":
        wide = Cast(x, "i64")
        return (Map("sub", (wide, _i64(1 << 31))) if dtype == "u32" else wide), True
    narrow = dtype != "f64"
    if itemsize(dtype) < 4:
        x, dtype = Cast(x, "f32"), "f32"
    whole, most = ("i32", (1 << 31) - 1) if narrow else ("i64", (1 << 63) - 1)
    bits = Cast(Map("add", (x, Const(0.0, dtype))), whole, bits=True)  # -0 becomes 0
    flipped = Map("bitxor", (bits, Const(most, whole)))
    key: Tile = Map("where", (Map("lt", (bits, Const(0, whole))), flipped, bits))
    key = Map("where", (Map("eq", (x, x)), key, Const(most, whole)))
    return (Cast(key, "i64") if narrow else key), narrow


@dataclass(frozen=True)
class _Network:
    """Sorts `width` elements, a power of two, in scratch: of two copies of each array, the passes
    read one and write the other."""

    width: int
    arrays: int

    def index(self, number: int, mirrored: bool) -> Affine:
        """The place of an element of pass `number`, or that of its partner, 2**number away."""
        half = 1 << number
        inner = affine(f"l{number}") if half > 1 else Affine()
        outer = affine(f"h{number}") * (2 * half) if 2 * half < self.width else Affine()
        side = affine(f"b{number}") * half
        return outer + inner + (affine(half) - side if mirrored else side)

    def axes(self, number: int) -> list[Axis]:
        half = 1 << number
        found = [Axis(f"b{number}", 2)]
        if half > 1:
            found.append(Axis(f"l{number}", half))
        if 2 * half < self.width:
            found.insert(0, Axis(f"h{number}", self.width // (2 * half)))
        return found

    def passed(self, number: int, source: int) -> list[Store]:
        """Compare and exchange at distance 2**number, where the stage has got that far."""
        here, there = self.index(number, False), self.index(number, True)
        mine = [Load(f"s{a}_{source}", (here,)) for a in range(self.arrays)]
        other = [Load(f"s{a}_{source}", (there,)) for a in range(self.arrays)]
        block = Map("shl", (_i64(2), Iota("stage")))
        upward = Map("eq", (Map("bitand", (position(here), block)), _i64(0)))
        low = Map("eq", (Iota(f"b{number}"), _i64(0)))
        keeps = Map("eq", (_less(mine, other), Map("eq", (low, upward))))
        keeps = Map("or", (keeps, Map("lt", (block, _i64(2 << number)))))
        return [
            Store(f"s{a}_{1 - source}", (here,), Map("where", (keeps, mine[a], other[a])))
            for a in range(self.arrays)
        ]

    def loop(self) -> tuple[For, list[Axis]]:
        """All stages, and the axes that their passes run over. The result is in copy 0."""
        depth = self.width.bit_length() - 1
        body: list[Stmt] = []
        axes: list[Axis] = []
        for count, number in enumerate(reversed(range(depth))):
            body += self.passed(number, count % 2)
            axes += self.axes(number)
        if depth % 2:
            axes.append(Axis("c", self.width))
            place = (affine("c"),)
            body += [Store(f"s{a}_0", place, Load(f"s{a}_1", place)) for a in range(self.arrays)]
        return For(Axis("stage", depth, "point"), tuple(body)), axes


def _less(a: Sequence[Tile], b: Sequence[Tile]) -> Tile:
    first = Map("lt", (a[0], b[0]))
    if len(a) == 1:
        return first
    tied = Map("and", (Map("eq", (a[0], b[0])), Map("lt", (a[1], b[1]))))
    return Map("or", (first, tied))


def _program(node: Node, inputs: Sequence[Value]) -> Kernel:
    (x,) = inputs
    axis, count, extent = node.attr("axis"), node.attr("count"), x.dims[node.attr("axis")]
    width = 1 << max(1, (extent - 1).bit_length())
    rows = [d for d in range(x.rank) if d != axis and x.dims[d] > 1]
    lead = [affine(f"d{d}") if d in rows else Affine() for d in range(x.rank)]

    def at(place: str) -> tuple[Affine, ...]:
        return (*lead[:axis], affine(place), *lead[axis + 1 :])

    padded = width > extent
    key, narrow = _ordered(Load("x0", at("i"), 0 if padded else None), x.dtype)
    if node.attr("descending"):
        key = Map("bitnot", (key,))
    parts: list[Tile] = [key, Iota("i")]
    if narrow:
        high = Map("shl", (key, _i64(PLACE_BITS)))
        parts = [Map("bitor", (high, Iota("i")))]
    if padded:
        inside = Map("lt", (Iota("i"), _i64(extent)))
        parts[0] = Map("where", (inside, parts[0], _i64((1 << 63) - 1)))
    network = _Network(width, len(parts))
    loop, axes = network.loop()
    place: Tile = Load(f"s{len(parts) - 1}_0", (affine("o"),))
    if narrow:
        place = Map("bitand", (place, _i64((1 << PLACE_BITS) - 1)))
    body: list[Stmt] = [Store(f"s{a}_0", (affine("i"),), part) for a, part in enumerate(parts)]
    body += [loop, Store("y0", at("o"), place)]
    bufs = [Buf("x0", x.dims, x.dtype), Buf("y0", node.output.dims, "i64")]
    for number in range(len(parts)):
        bufs += [Buf(f"s{number}_{copy}", (width,), "i64", "scratch") for copy in (0, 1)]
    return Kernel(
        "kernel",
        tuple(bufs),
        tuple(Axis(f"d{d}", x.dims[d], "point") for d in rows),
        (Axis("i", width), Axis("o", count), *axes),
        tuple(body),
    )


register(Op("argsort", "program", _infer, _reference, _flops, None, _program))
