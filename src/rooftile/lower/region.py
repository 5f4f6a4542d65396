"""A region as a tile program, by pulling: the outputs ask their producers for the element at an
index, down to what the region reads from memory. No sizes are chosen here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rooftile.core.affine import Affine, Dim, affine
from rooftile.core.errors import NotLowered
from rooftile.ir.graph import Array, Graph, Node, Region, Value
from rooftile.ir.tile import (
    Axis,
    Buf,
    Const,
    Kernel,
    Let,
    Load,
    Reduce,
    Ref,
    Store,
    Tile,
)
from rooftile.lower.tidy import tidied
from rooftile.ops import OPS, Body, Index

ROOT_AXES = {0: (), 1: ("i",), 2: ("m", "n"), 3: ("b", "m", "n"), 4: ("b", "h", "w", "n")}


@dataclass(frozen=True)
class View:
    """Where a value lives: inside `buffer`, of `shape`, from `start` on. Most fill theirs."""

    buffer: str
    shape: tuple[int, ...]
    start: tuple[int, ...]


@dataclass(frozen=True)
class Lowered:
    """A kernel, and the buffer (a value's name) that each of its memory buffers stands for."""

    kernel: Kernel
    arguments: tuple[str, ...]

    def constants(self, graph: Graph) -> frozenset[str]:
        """The kernel's buffers whose contents are known before the run."""
        memory = [buf.name for buf in self.kernel.bufs if buf.space == "memory"]
        pairs = zip(memory, self.arguments, strict=True)
        return frozenset(buf for buf, value in pairs if value in graph.constants)


class _Refine(Exception):
    """An axis must be made of several, of these extents, outermost first."""

    def __init__(self, axis: str, factors: tuple[int, ...]) -> None:
        super().__init__(axis, factors)
        self.axis = axis
        self.factors = factors


def lower(
    region: Region,
    constants: Mapping[str, Array] | None = None,
    views: Mapping[str, View] | None = None,
) -> Lowered:
    """The tile program of a region; NotLowered, with the reason, where there is none.

    `constants`: arrays by name, of which the uniform ones become numbers in the program.
    `views`: values that are parts of larger buffers.
    """
    refined: dict[str, tuple[int, ...]] = {}
    for _ in range(32):
        try:
            return _Lowering(region, constants or {}, views or {}, refined).run()
        except _Refine as request:
            refined[request.axis] = request.factors
    raise NotLowered(f"{region.name}: its reshapes do not agree on how to split the axes")


@dataclass
class _Lowering:
    region: Region
    constants: Mapping[str, Array]
    views: Mapping[str, View]
    refined: Mapping[str, tuple[int, ...]]
    extents: dict[str, int] = field(default_factory=dict)
    lets: list[Let] = field(default_factory=list)
    known: dict[tuple[str, object], Tile] = field(default_factory=dict)
    demanded: dict[str, list[Index]] = field(default_factory=dict)
    arguments: dict[str, Buf] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.producers = {value.name: node for node in self.region.nodes for value in node.outputs}
        values = [*self.region.inputs, *self.region.outputs]
        values += [value for node in self.region.nodes for value in node.outputs]
        self.values: dict[str, Value] = {value.name: value for value in values}

    def run(self) -> Lowered:
        first = self.region.outputs[0]
        index = self._root_index(first)
        for output in self.region.outputs:
            if output.dims != first.dims:
                raise NotLowered(f"{self.region.name}: its outputs differ in shape")
            self._note(output.name, index)
        tiles = [self.value(output.name, index) for output in self.region.outputs]
        stores = []
        for output, tile in zip(self.region.outputs, tiles, strict=True):
            buf, place = self._memory(output, index, "y")
            stores.append(Store(buf.name, place, tile))
        axes = tuple(Axis(name, extent) for name, extent in self.extents.items())
        kernel = Kernel("kernel", tuple(self.arguments.values()), (), axes, (*self.lets, *stores))
        kernel, kept = tidied(kernel)
        names = [name for name, buf in self.arguments.items() if buf.name in kept]
        return Lowered(kernel, tuple(names))

    def _root_index(self, value: Value) -> Index:
        names = ROOT_AXES.get(value.rank) or tuple(f"d{dim}" for dim in range(value.rank))
        return tuple(
            self.new_axis(name, extent) if extent != 1 else Affine()
            for name, extent in zip(names, value.dims, strict=True)
        )

    # -- axes

    def new_axis(self, hint: str, extent: Dim) -> Affine:
        """An axis, or the sum of those it was refined into, as an index."""
        if not isinstance(extent, int):
            raise NotLowered(f"{self.region.name}: extent {extent} is symbolic")
        name = hint
        number = 0
        taken = {axis.split(".")[0] for axis in self.extents}
        while name in taken:
            number += 1
            name = f"{hint}{number}"
        return self._parts(name, extent)

    def _parts(self, name: str, extent: int) -> Affine:
        factors = self.refined.get(name)
        if factors is None:
            self.extents[name] = extent
            return affine(name)
        total = Affine()
        stride = extent
        for number, factor in enumerate(factors):
            stride //= factor
            total = total + self._parts(f"{name}.{number}", factor) * stride
        return total

    def split(self, index: Affine, sizes: Sequence[int]) -> Index:
        """A position in a flat dim as positions in dims of `sizes`; refines axes as needed."""
        strides = [1]
        for size in reversed(sizes[1:]):
            strides.insert(0, strides[0] * size)
        parts = [Affine() for _ in sizes]
        for name, coef in index.terms:
            if coef < 0:
                raise NotLowered(f"{self.region.name}: a reversed axis meets a reshape")
            extent = self.extents[name]
            home = next((d for d, s in enumerate(strides) if coef % s == 0), None)
            if home is None:
                raise NotLowered(f"{self.region.name}: axis {name} crosses a reshape unevenly")
            if coef // strides[home] * (extent - 1) >= sizes[home]:
                self._refine(name, coef, extent, strides)
            parts[home] = parts[home] + Affine(((name, coef // strides[home]),))
        rest = index.const
        for dim, stride in enumerate(strides):
            step, rest = divmod(rest, stride)
            parts[dim] = parts[dim] + step
        for dim, part in enumerate(parts):
            low, high = part.range(self.extents)
            if low < 0 or high >= sizes[dim]:
                raise NotLowered(f"{self.region.name}: index {part} leaves a reshaped dim")
        return tuple(parts)

    def _refine(self, name: str, coef: int, extent: int, strides: Sequence[int]) -> None:
        cuts = [s // coef for s in strides if s > coef and s % coef == 0 and s // coef < extent]
        factors: list[int] = []
        left = extent
        for cut in sorted(set(cuts), reverse=True):
            if left % cut:
                raise NotLowered(f"{self.region.name}: axis {name} of {extent} does not split")
            factors.append(left // cut)
            left = cut
        factors.append(left)
        if len(factors) < 2:
            raise NotLowered(f"{self.region.name}: axis {name} of {extent} does not split")
        raise _Refine(name, tuple(factors))

    # -- values

    def _note(self, name: str, index: Index) -> None:
        """Remember where a value is asked for, through elementwise nodes, before it is computed:
        a reduction of the same value then shares the axis."""
        if index in self.demanded.setdefault(name, []):
            return
        self.demanded[name].append(index)
        node = self.producers.get(name)
        if node is None or OPS[node.op].kind != "elementwise":
            return
        for operand in node.inputs:
            shape = self.values[operand].dims if operand in self.values else ()
            if len(shape) == len(index):
                self._note(operand, _broadcast(shape, index))

    def value(self, name: str, index: Index | tuple[object, ...], pad: float | None = None) -> Tile:
        """The value at an index; outside its shape it is `pad`."""
        node = self.producers.get(name)
        if node is None:
            return self._load(name, index, pad)
        checked: list[Affine] = []
        for part in index:
            if not isinstance(part, Affine):
                raise NotLowered(f"%{name}: only what lies in memory can be gathered from")
            checked.append(part)
        place = tuple(checked)
        self._note(name, place)
        if pad is not None and node.op == "transpose":
            # It leaves its own shape exactly where its input does: the input is padded instead.
            return _body(node)(node, place, _Build(self, node, pad))
        key = (name, place)
        if key not in self.known:
            self.known[key] = self._compute(node, place)
        tile = self.known[key]
        return tile if pad is None else self._guarded(name, tile, place, pad)

    def _compute(self, node: Node, index: Index) -> Tile:
        tile = _body(node)(node, index, _Build(self, node))
        if isinstance(tile, (Ref, Load, Const)):
            return tile
        name = f"t{len(self.lets)}"
        self.lets.append(Let(name, tile))
        return Ref(name)

    def _guarded(self, name: str, tile: Tile, index: Index, pad: float) -> Tile:
        """A computed value with `pad` outside its shape. What is computed there is thrown away, so
        nothing there may fail: a load becomes a padded load."""
        value = self.values[name]
        outside = [
            (part, extent)
            for part, extent in zip(index, value.dims, strict=True)
            if not _within(part, extent, self.extents)
        ]
        if not outside:
            return tile
        if isinstance(tile, Load) and tile.pad is None:
            inside_of = self.arguments_by_buf()[tile.buf]
            if all(self._same_dim(tile, part, extent, inside_of) for part, extent in outside):
                return Load(tile.buf, tile.index, pad)
        raise NotLowered(f"%{name}: padding of a computed value; it is stored first")

    def arguments_by_buf(self) -> dict[str, Buf]:
        """The memory buffers so far by their name in the kernel."""
        return {buf.name: buf for buf in self.arguments.values()}

    def _same_dim(self, load: Load, part: Affine, extent: int, buf: Buf) -> bool:
        """Whether a load leaves its buffer exactly where `part` leaves `0..extent`."""
        return any(p == part and buf.shape[d] == extent for d, p in enumerate(load.index))

    def _load(self, name: str, index: tuple[object, ...], pad: float | None) -> Tile:
        value = self.values[name]
        uniform = self._uniform(name)
        if uniform is not None and pad is None:
            return Const(uniform, value.dtype)
        buf, place = self._memory(value, index, "x")
        reaches = any(
            isinstance(part, Affine) and not _within(part, extent, self.extents)
            for part, extent in zip(index, value.dims, strict=True)
        )
        if reaches and pad is None:
            raise NotLowered(f"%{name}: index {index} leaves shape {value.dims}")
        return Load(buf.name, place, pad if reaches else None)

    def _uniform(self, name: str) -> float | None:
        array = self.constants.get(name)
        if array is None or array.size == 0 or array.size > 1 << 16:
            return None
        first = array.flat[0]
        same = array.size == 1 or bool(
            np.all(
                array.view(np.uint8).reshape(array.size, -1)
                == np.frombuffer(first.tobytes(), np.uint8)
            )
        )
        return first.item() if same else None

    def _memory(
        self, value: Value, index: tuple[Any, ...], letter: str
    ) -> tuple[Buf, tuple[Any, ...]]:
        view = self.views.get(value.name) or View(value.name, value.dims, (0,) * value.rank)
        buf = self.arguments.get(view.buffer)
        if buf is None:
            count = sum(b.name.startswith(letter) for b in self.arguments.values())
            buf = Buf(f"{letter}{count}", view.shape, value.dtype)
            self.arguments[view.buffer] = buf
        place = tuple(
            part + start if start else part for part, start in zip(index, view.start, strict=True)
        )
        return buf, place

    # -- reductions

    def reduced(self, node: Node, op: str, dims: Sequence[int], rest: Index) -> Tile:
        """Input 0 of `node` reduced over `dims`, at the position `rest` of the other dims."""
        name = node.inputs[0]
        shape = self.values[name].dims
        shared = self._shared_index(name, dims, rest)
        others = iter(rest)
        index: list[Affine] = []
        for dim, extent in enumerate(shape):
            if dim not in dims:
                index.append(next(others))
            elif shared is not None:
                index.append(shared[dim])
            else:
                index.append(self.new_axis("k", extent) if extent != 1 else Affine())
        tile = self.value(name, tuple(index))
        over = [axis for dim in dims for axis in index[dim].names]
        for axis in reversed(over):
            tile = Reduce(op, tile, axis)
        return tile

    def _shared_index(self, name: str, dims: Sequence[int], rest: Index) -> Index | None:
        """An index at which the reduced value (or what it is elementwise made of) is asked for
        beside its reduction, and which covers the reduced dims completely."""
        shape = self.values[name].dims
        for candidate in self._alike(name):
            for index in self.demanded.get(candidate, ()):
                others = tuple(part for dim, part in enumerate(index) if dim not in dims)
                if others == rest and all(
                    _covers(index[dim], shape[dim], self.extents) for dim in dims
                ):
                    return index
        return None

    def _alike(self, name: str) -> list[str]:
        """The value and the values of the same shape around it that elementwise nodes join."""
        shape = self.values[name].dims
        found = [name]
        for current in found:
            node = self.producers.get(current)
            near = list(node.inputs) if node and OPS[node.op].kind == "elementwise" else []
            for user in self.region.nodes:
                if current in user.inputs and OPS[user.op].kind == "elementwise":
                    near.append(user.name)
            for other in near:
                if (
                    other not in found
                    and other in self.values
                    and (self.values[other].dims == shape)
                ):
                    found.append(other)
        return found


@dataclass(frozen=True)
class _Build:
    """What the tile body of one node may ask."""

    lowering: _Lowering
    node: Node
    pad: float | None = None

    @property
    def inputs(self) -> tuple[Value, ...]:
        return tuple(self.lowering.values[name] for name in self.node.inputs)

    def arg(self, number: int, index: tuple[object, ...], pad: float | None = None) -> Tile:
        return self.lowering.value(
            self.node.inputs[number], index, self.pad if pad is None else pad
        )

    def axis(self, hint: str, extent: Dim) -> Affine:
        return self.lowering.new_axis(hint, extent)

    def reduced(self, op: str, dims: Sequence[int], index: Index) -> Tile:
        return self.lowering.reduced(self.node, op, dims, index)

    def split(self, index: Affine, sizes: Sequence[int]) -> Index:
        return self.lowering.split(index, sizes)


def _body(node: Node) -> Callable[[Node, Index, Body], Tile]:
    body = OPS[node.op].body
    if body is None:
        raise NotLowered(f"%{node.name}: {node.op} has no tile body")
    return body


def _broadcast(shape: Sequence[int], index: Index) -> Index:
    return tuple(
        Affine() if extent == 1 else part for extent, part in zip(shape, index, strict=True)
    )


def _within(part: Affine, extent: int, extents: Mapping[str, int]) -> bool:
    low, high = part.range(extents)
    return low >= 0 and high < extent


def _covers(part: Affine, extent: int, extents: Mapping[str, int]) -> bool:
    """Whether an index takes each value of 0..extent-1 exactly once."""
    if part.const:
        return False
    stride = 1
    for name, coef in sorted(part.terms, key=lambda term: term[1]):
        if coef != stride:
            return False
        stride *= extents[name]
    return stride == extent
