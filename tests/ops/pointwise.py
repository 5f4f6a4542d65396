"""Computes tile bodies one element at a time: slow, plain, and independent of any lowering."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rooftile.core.affine import Affine, affine
from rooftile.core.dtype import kind, to_numpy
from rooftile.ir.graph import Array, Node, Value, attrs
from rooftile.ir.tile import Cast, Const, Dot, Iota, Load, Map, Reduce, Tile
from rooftile.ir.tile.scalar import SCALARS
from rooftile.ops import OPS
from rooftile.ops.base import Index, Op
from rooftile.ops.cast import convert
from rooftile.ops.reduce import UFUNCS


@dataclass
class Pointwise:
    """A Body whose axes get values from `point`, and whose splits become derived names."""

    inputs: tuple[Value, ...]
    extents: dict[str, int] = field(default_factory=dict)
    derived: dict[str, tuple[Affine, int, int]] = field(default_factory=dict)
    steps: int = 0

    def arg(self, number: int, index: tuple[Any, ...], pad: float | None = None) -> Tile:
        assert len(index) == self.inputs[number].rank
        return Load(str(number), tuple(index), pad)

    def axis(self, hint: str, extent: Any) -> Affine:
        name = f"{hint}_{len(self.extents)}"
        self.extents[name] = extent
        return affine(name)

    def reduced(self, op: str, dims: Sequence[int], index: Index) -> Tile:
        rest = iter(index)
        shape = self.inputs[0].dims
        axes = {dim: self.axis("r", shape[dim]) for dim in dims}
        at = tuple(axes[dim] if dim in axes else next(rest) for dim in range(len(shape)))
        tile = self.arg(0, at)
        for axis in axes.values():
            tile = Reduce(op, tile, axis.names[0])
        return tile

    def number(self, extent: int) -> Tile:
        return Const(extent, "i64")

    def split(self, index: Affine, sizes: Sequence[int]) -> Index:
        parts = []
        inner = int(np.prod(sizes))
        for size in sizes:
            inner //= size
            name = f"split_{len(self.derived)}"
            self.derived[name] = (index, inner, size)
            parts.append(affine(name))
        return tuple(parts)

    def place(self, index: Affine, point: Mapping[str, int]) -> int:
        values = dict(point)
        for name, (whole, inner, size) in self.derived.items():
            if set(whole.names) <= set(values):
                values[name] = whole.value(values) // inner % size
        return index.value(values)

    def value(self, tile: Tile, arrays: Sequence[Array], point: Mapping[str, int]) -> Any:
        def again(part: Tile, at: Mapping[str, int] = point) -> Any:
            return self.value(part, arrays, at)

        if isinstance(tile, Load):
            return self.load(tile, arrays[int(tile.buf)], arrays, point)
        if isinstance(tile, Const):
            wide = np.float64 if kind(tile.dtype) == "float" else to_numpy(tile.dtype)
            return np.asarray(tile.value).astype(wide)
        if isinstance(tile, Iota):
            return np.asarray(self.place(affine(tile.axis), point), np.int64)
        if isinstance(tile, Map):
            self.steps += 1
            return np.asarray(SCALARS[tile.op].meaning(*map(again, tile.args)))
        if isinstance(tile, Cast):
            wide = "f64" if kind(tile.dtype) == "float" else tile.dtype
            return convert(again(tile.x), to_numpy(wide))
        if isinstance(tile, Reduce):
            parts = [again(tile.x, {**point, tile.axis: k}) for k in range(self.extents[tile.axis])]
            return UFUNCS[tile.op].reduce(np.asarray(parts))
        assert isinstance(tile, Dot)
        total: Any = 0.0
        for place in itertools.product(*(range(self.extents[name]) for name in tile.over)):
            at = {**point, **dict(zip(tile.over, place, strict=True))}
            total = total + again(tile.a, at) * again(tile.b, at)
            self.steps += 2
        return np.asarray(total)

    def load(
        self, tile: Load, array: Array, arrays: Sequence[Array], point: Mapping[str, int]
    ) -> Any:
        at = tuple(
            self.place(part, point)
            if isinstance(part, Affine)
            else int(self.value(part, arrays, point))
            for part in tile.index
        )
        inside = all(0 <= k < extent for k, extent in zip(at, array.shape, strict=True))
        assert inside or tile.pad is not None, f"{at} is outside {array.shape}"
        return array[at] if inside else np.asarray(tile.pad).astype(array.dtype)


def values(arrays: Sequence[Array], dtypes: Sequence[str]) -> tuple[Value, ...]:
    """The arrays' descriptions, called in0, in1, ..."""
    return tuple(
        Value(f"in{number}", array.shape, dtype)
        for number, (array, dtype) in enumerate(zip(arrays, dtypes, strict=True))
    )


def check_body(
    name: str, arrays: Sequence[Array], dtypes: Sequence[str], **attributes: Any
) -> tuple[Op, int, int]:
    """Assert that the body gives what the reference gives; the op, operations done, and flops."""
    op, held, inputs = OPS[name], attrs(**attributes), values(arrays, dtypes)
    ((shape, dtype),) = op.infer(dict(held), inputs)
    with np.errstate(all="ignore"):
        (wanted,) = op.reference(dict(held), arrays)
        assert wanted.shape == shape
        node = Node(name, tuple(v.name for v in inputs), (Value("out", shape, dtype),), held)
        build = Pointwise(inputs)
        index = tuple(build.axis("i", extent) for extent in node.output.dims)
        assert op.body is not None
        tile = op.body(node, index, build)
        got = np.empty(shape, wanted.dtype)
        for place in np.ndindex(*node.output.dims):
            point = {axis.names[0]: k for axis, k in zip(index, place, strict=True)}
            got[place] = build.value(tile, arrays, point)
    np.testing.assert_allclose(got, wanted, rtol=1e-12, atol=1e-12)
    return op, build.steps, op.flops(dict(held), inputs, node.outputs)
