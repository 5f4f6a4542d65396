"""A region as a tile program, by pulling: the outputs ask their producers for the element at an
index, down to what the region reads from memory. No sizes are chosen here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from rooftile.core.affine import Affine, affine
from rooftile.core.errors import NotLowered
from rooftile.core.symbolic import to_dim
from rooftile.ir.graph import Array, Node, Region, Value
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
from rooftile.lower.axes import Axes, Refine
from rooftile.lower.buffers import Buffers
from rooftile.lower.opened import with_named_extents
from rooftile.lower.program import whole_program
from rooftile.lower.records import Lowered, View
from rooftile.lower.tidy import tidied
from rooftile.ops import OPS, Body, Index

ROOT_AXES = {0: (), 1: ("i",), 2: ("m", "n"), 3: ("b", "m", "n"), 4: ("b", "h", "w", "n")}
MOST_REFINEMENTS = 32


def lower(
    region: Region,
    constants: Mapping[str, Array] | None = None,
    views: Mapping[str, View] | None = None,
) -> Lowered:
    """The tile program of a region; NotLowered, with the reason, where there is none.

    `constants`: arrays by name, of which the uniform ones become numbers in the program.
    `views`: values that are parts of larger buffers.
    """
    if OPS[region.root.op].program is not None:
        return whole_program(region, views or {})
    refined: dict[str, tuple[int, ...]] = {}
    for _ in range(MOST_REFINEMENTS):
        axes = Axes(region.name, refined)
        try:
            return _Lowering(region, axes, Buffers(axes, constants or {}, views or {})).run()
        except Refine as request:
            refined[request.axis] = request.factors
        except NotLowered:
            if _is_flat_copy(region, views or {}):
                return _flat_copy(region)
            raise
    raise NotLowered(f"{region.name}: its reshapes do not agree on how to split the axes")


def _is_flat_copy(region: Region, views: Mapping[str, View]) -> bool:
    """Whether it is one reshape of what lies in memory, both in buffers of their own."""
    names = [value.name for value in (*region.inputs, *region.outputs)]
    one = [node.op for node in region.nodes] == ["reshape"]
    return one and not any(name in views for name in names)


def _flat_copy(region: Region) -> Lowered:
    """A reshape as a copy of elements in their order, whatever the dims."""
    (x,), (y,) = region.inputs, region.outputs
    count = to_dim(math.prod(x.dims))
    bufs = (Buf("x0", (count,), x.dtype), Buf("y0", (count,), y.dtype))
    index = (affine("i"),)
    body = (Store("y0", index, Load("x0", index)),)
    return Lowered(Kernel("kernel", bufs, (), (Axis("i", count),), body), (x.name, y.name))


class _Lowering:
    """One region, with axes refined as far as is known.

    `known` holds the tile of each value at each index; `demanded` the indices at which values are
    asked for, so that a reduction can share the axis of what is used beside it.
    """

    def __init__(self, region: Region, axes: Axes, buffers: Buffers) -> None:
        self.region = region
        self.axes = axes
        self.buffers = buffers
        self.lets: list[Let] = []
        self.known: dict[tuple[str, Index], Tile] = {}
        self.demanded: dict[str, list[Index]] = {}
        self.producers = {value.name: node for node in region.nodes for value in node.outputs}
        values = [*region.inputs, *region.outputs]
        values += [value for node in region.nodes for value in node.outputs]
        self.values: dict[str, Value] = {value.name: value for value in values}

    def run(self) -> Lowered:
        """The kernel, with what it reads and writes."""
        outputs = self.region.outputs
        index = self._root_index(outputs[0])
        for output in outputs:
            if output.dims != outputs[0].dims:
                raise NotLowered(f"{self.region.name}: its outputs differ in shape")
            self._note(output.name, index)
        tiles = [self.value(output.name, index) for output in outputs]
        stores = []
        for output, tile in zip(outputs, tiles, strict=True):
            buf, place = self.buffers.place(output, index, "y")
            stores.append(Store(buf.name, place, tile))
        arguments = self.buffers.by_value
        axes = tuple(Axis(name, extent) for name, extent in self.axes.extents.items())
        kernel = Kernel("kernel", tuple(arguments.values()), (), axes, (*self.lets, *stores))
        kernel, kept = tidied(with_named_extents(kernel))
        return Lowered(kernel, tuple(n for n, buf in arguments.items() if buf.name in kept))

    def _root_index(self, value: Value) -> Index:
        names = ROOT_AXES.get(value.rank) or tuple(f"d{dim}" for dim in range(value.rank))
        return tuple(
            self.axes.new(name, extent) if extent != 1 else Affine()
            for name, extent in zip(names, value.dims, strict=True)
        )

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

    def value(self, name: str, index: tuple[object, ...], pad: float | None = None) -> Tile:
        """The value at an index; outside its shape it is `pad`."""
        node = self.producers.get(name)
        if node is None:
            return self.buffers.load(self.values[name], index, pad)
        place = tuple(part for part in index if isinstance(part, Affine))
        if len(place) < len(index):
            raise NotLowered(f"%{name}: only what lies in memory can be gathered from")
        self._note(name, place)
        if pad is not None and node.op == "transpose":
            # It leaves its own shape exactly where its input does: the input is padded instead.
            return _body(node)(node, place, _Build(self, node, pad))
        key = (name, place)
        if key not in self.known:
            self.known[key] = self._compute(node, place)
        tile = self.known[key]
        return tile if pad is None else self._guarded(self.values[name], tile, place, pad)

    def _compute(self, node: Node, index: Index) -> Tile:
        tile = _body(node)(node, index, _Build(self, node))
        if isinstance(tile, (Ref, Load, Const)):
            return tile
        name = f"t{len(self.lets)}"
        self.lets.append(Let(name, tile))
        return Ref(name)

    def _guarded(self, value: Value, tile: Tile, index: Index, pad: float) -> Tile:
        """A computed value with `pad` outside its shape. What is computed there is thrown away, so
        nothing there may fail: a load becomes a padded load."""
        parts = zip(index, value.dims, strict=True)
        outside = [(part, extent) for part, extent in parts if not self.axes.within(part, extent)]
        if not outside:
            return tile
        if isinstance(tile, Load) and tile.pad is None:
            padded = self.buffers.padded(tile, outside, pad)
            if padded is not None:
                return padded
        raise NotLowered(f"%{value.name}: padding of a computed value; it is stored first")

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
                index.append(self.axes.new("k", extent) if extent != 1 else Affine())
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
                if others == rest and all(self.axes.cover(index[d], shape[d]) for d in dims):
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
                known = self.values.get(other)
                if known is not None and other not in found and known.dims == shape:
                    found.append(other)
        return found


@dataclass(frozen=True)
class _Build:
    """What the tile body of one node may ask. `pad`: the padding of inputs that it asks without."""

    lowering: _Lowering
    node: Node
    pad: float | None = None

    @property
    def inputs(self) -> tuple[Value, ...]:
        return tuple(self.lowering.values[name] for name in self.node.inputs)

    def arg(self, number: int, index: tuple[object, ...], pad: float | None = None) -> Tile:
        pad = self.pad if pad is None else pad
        return self.lowering.value(self.node.inputs[number], index, pad)

    def axis(self, hint: str, extent: int) -> Affine:
        return self.lowering.axes.new(hint, extent)

    def number(self, extent: int) -> Tile:
        return self.lowering.buffers.number(extent)

    def reduced(self, op: str, dims: Sequence[int], index: Index) -> Tile:
        return self.lowering.reduced(self.node, op, dims, index)

    def split(self, index: Affine, sizes: Sequence[int]) -> Index:
        return self.lowering.axes.split(index, sizes)


def _body(node: Node) -> Callable[[Node, Index, Body], Tile]:
    body = OPS[node.op].body
    if body is None:
        raise NotLowered(f"%{node.name}: {node.op} has no tile body")
    return body


def _broadcast(shape: Sequence[int], index: Index) -> Index:
    return tuple(
        Affine() if extent == 1 else part for extent, part in zip(shape, index, strict=True)
    )
