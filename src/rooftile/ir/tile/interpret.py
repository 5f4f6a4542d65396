"""The numpy interpreter of the tile IR: the oracle that every code generator is held against.

Buffers are logical arrays: layout and halo are invisible here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from rooftile.core.affine import Affine, affine, bind
from rooftile.core.dtype import kind, to_numpy
from rooftile.core.errors import InvalidInput
from rooftile.ir.tile.query import symbols as symbols_of
from rooftile.ir.tile.query import tile_size
from rooftile.ir.tile.records import (
    Axis,
    Buf,
    Cast,
    Const,
    Dot,
    Iota,
    Iterate,
    Kernel,
    Last,
    Let,
    Load,
    Map,
    Reduce,
    Ref,
    Rename,
    Scope,
    Stmt,
    Store,
    Tile,
    union,
)
from rooftile.ir.tile.scalar import SCALARS

Array = npt.NDArray[Any]
_REDUCE: dict[str, Any] = {"sum": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum}

_COMBINE: dict[str, Any] = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}


class Value(NamedTuple):
    """A tile's elements and the axis of each of their dims."""

    dims: tuple[str, ...]
    array: Array


def run(
    kernel: Kernel,
    arrays: Mapping[str, Array],
    symbols: Mapping[str, int] | None = None,
    native: bool = False,
) -> dict[str, Array]:
    """The output arrays of a verified kernel, by buffer name.

    `arrays` holds the memory buffers in their logical shapes; an output may be left out. Floats
    are float64 throughout unless `native`, which computes in each tile's own type. `symbols` are
    taken from the shapes where they can be. InvalidInput: a missing array, a shape that does not
    fit, an index from data outside its dim.
    """
    bound = _symbols(kernel, arrays, symbols or {})
    machine = _Interpreter(kernel, bound, native)
    machine.bind(arrays)
    with np.errstate(all="ignore"):
        machine.programs(0)
    return {name: machine.memory[name] for name in kernel.outputs}


def _symbols(
    kernel: Kernel, arrays: Mapping[str, Array], given: Mapping[str, int]
) -> dict[str, int]:
    bound = dict(given)
    for buf in kernel.bufs:
        shape = np.shape(arrays[buf.name]) if buf.name in arrays else ()
        for extent, size in zip(buf.shape, shape, strict=False):
            terms = affine(extent).terms
            if len(terms) == 1 and terms[0][1] == 1:
                bound.setdefault(terms[0][0], size - affine(extent).const)
    for name in symbols_of(kernel):
        if name not in bound:
            raise InvalidInput(f"kernel {kernel.name}: symbol {name} has no value; pass symbols")
    return bound


class _Interpreter:
    def __init__(self, kernel: Kernel, bound: Mapping[str, int], native: bool) -> None:
        self.kernel = kernel
        self.bound = bound
        self.native = native
        self.axes = kernel.axes
        self.scope = Scope(kernel)
        self.memory: dict[str, Array] = {}
        self.tiles: dict[str, Value] = {}
        self.position: dict[str, Array] = {}
        """The absolute values that an axis takes in its current tile; 0-d for a point."""
        self.last = Value((), np.asarray(0))

    # Memory

    def numpy_type(self, dtype: str) -> np.dtype[Any]:
        wide = kind(dtype) == "float" and not self.native
        return np.dtype(np.float64) if wide else to_numpy(dtype)

    def bind(self, arrays: Mapping[str, Array]) -> None:
        for buf in self.kernel.bufs:
            shape = tuple(bind(extent, self.bound) for extent in buf.shape)
            given = arrays.get(buf.name) if buf.space == "memory" else None
            self.memory[buf.name] = self.contents(buf, shape, given)

    def contents(self, buf: Buf, shape: tuple[int, ...], given: Array | None) -> Array:
        dtype = self.numpy_type(buf.dtype)
        name = f"kernel {self.kernel.name}: buffer {buf.name}"
        if given is not None:
            if np.shape(given) != shape:
                raise InvalidInput(f"{name} has shape {np.shape(given)}, not {shape}")
            return np.array(given, dtype)
        if buf.space == "memory" and buf.name not in self.kernel.outputs:
            raise InvalidInput(f"{name} has no array")
        return np.full(shape, np.nan if kind(buf.dtype) == "float" else 0, dtype)

    # Control

    def tiles_of(self, axis: Axis) -> Iterator[None]:
        low, high = 0, bind(axis.extent, self.bound)
        if axis.within is not None:
            outer = self.position[axis.within]
            low, high = (int(outer[0]), int(outer[-1]) + 1) if outer.size else (0, 0)
        if axis.tile == "whole":
            self.position[axis.name] = np.arange(low, high)
            yield
            return
        step = tile_size(axis, self.axes, self.bound)
        for base in range(low, high, step):
            values = np.arange(base, min(base + step, high))
            self.position[axis.name] = values if axis.is_dim else np.asarray(base)
            yield

    def programs(self, depth: int) -> None:
        spaces = self.kernel.grid + self.kernel.whole
        if depth == len(spaces):
            self.block(self.kernel.body)
            return
        for _ in self.tiles_of(spaces[depth]):
            self.programs(depth + 1)

    def block(self, body: Sequence[Stmt]) -> None:
        for stmt in body:
            if isinstance(stmt, Let):
                self.tiles[stmt.name] = self.value(stmt.expr)
                self.scope.define(stmt.name, stmt.expr)
            elif isinstance(stmt, Store):
                self.store(stmt)
            else:
                start = {carry.name: self.value(carry.init) for carry in stmt.carry}
                for carry in stmt.carry:
                    self.scope.define(carry.name, carry.init)
                self.tiles.update(start)
                for _ in self.tiles_of(stmt.axis):
                    self.block(stmt.body)
                    following = {carry.name: self.value(carry.next) for carry in stmt.carry}
                    self.tiles.update(following)

    def store(self, store: Store) -> None:
        order = union(self.scope.dims(Load(store.buf, store.index)))
        value = _align(self.value(store.expr), order)
        shape = tuple(self.position[name].size for name in order)
        extents = self.memory[store.buf].shape
        where = tuple(
            np.broadcast_to(
                self.affine(part, order)
                if isinstance(part, Affine)
                else self.gathered(store.buf, part, extent, order),
                shape,
            )
            for part, extent in zip(store.index, extents, strict=True)
        )
        target, value = self.memory[store.buf], np.broadcast_to(value, shape)
        if store.combine is None:
            target[where] = value
        else:
            _COMBINE[store.combine].at(target, where, value)

    # Expressions

    def value(self, tile: Tile) -> Value:
        if isinstance(tile, Ref):
            return self.tiles[tile.name]
        if isinstance(tile, Load):
            return self.load(tile)
        if isinstance(tile, Const):
            shape = tuple(self.position[name].size for name in tile.dims)
            return Value(tile.dims, np.full(shape, tile.value, self.numpy_type(tile.dtype)))
        if isinstance(tile, Iota):
            return Value(self.scope.dims(tile), self.position[tile.axis].astype(np.int64))
        if isinstance(tile, Map):
            values = [self.value(arg) for arg in tile.args]
            dims = self.scope.dims(tile)
            result = SCALARS[tile.op].meaning(*(_align(value, dims) for value in values))
            return Value(dims, np.asarray(result))
        if isinstance(tile, Cast):
            dims, array = self.value(tile.x)
            if tile.bits:
                held = array.astype(to_numpy(self.scope.dtype(tile.x)))
                exact = held.view(to_numpy(tile.dtype))
                return Value(dims, exact.astype(self.numpy_type(tile.dtype)))
            return Value(dims, self.cast(array, tile.dtype))
        if isinstance(tile, Reduce):
            dims, array = self.value(tile.x)
            which = dims.index(tile.axis)
            reduced = _REDUCE[tile.op].reduce(array, axis=which, dtype=array.dtype)
            return Value(dims[:which] + dims[which + 1 :], np.asarray(reduced))
        if isinstance(tile, Rename):
            dims, array = self.value(tile.x)
            return Value(tuple(tile.new if n == tile.old else n for n in dims), array)
        if isinstance(tile, Last):
            return self.last
        if isinstance(tile, Iterate):
            return self.iterate(tile)
        return self.dot(tile)

    def iterate(self, tile: Iterate) -> Value:
        """Each element by itself, as the dims of its step are those of its init too."""
        dims = self.scope.dims(tile)
        before = {name: self.position[name] for name in dims}
        start = np.broadcast_to(
            _align(self.value(tile.init), dims), tuple(before[name].size for name in dims)
        )
        found = start.copy()
        for place in np.ndindex(start.shape):
            for name, at in zip(dims, place, strict=True):
                self.position[name] = before[name][at : at + 1]
            for _ in range(tile.most):
                self.last = Value((), found[place])
                if not self.value(tile.more).array.any():
                    break
                found[place] = self.value(tile.next).array.reshape(())
        self.position.update(before)
        return Value(dims, found)

    def cast(self, array: Array, dtype: str) -> Array:
        if kind(dtype) == "bool":
            return np.asarray(array != 0)
        if kind(dtype) in ("int", "uint") and array.dtype.kind not in "iub":
            array = np.trunc(array.astype(np.float64))
        return array.astype(self.numpy_type(dtype))

    def dot(self, tile: Dot) -> Value:
        a, b = self.value(tile.a), self.value(tile.b)
        letters = {name: chr(97 + i) for i, name in enumerate(union(a.dims, b.dims))}
        dims = tuple(name for name in letters if name not in tile.over)
        spell = ["".join(letters[name] for name in some) for some in (a.dims, b.dims, dims)]
        dtype = self.numpy_type(tile.dtype)
        held = np.dtype(np.float32) if tile.dtype in ("f16", "bf16") and self.native else dtype
        x, y = a.array.astype(held), b.array.astype(held)
        sums = np.einsum(f"{spell[0]},{spell[1]}->{spell[2]}", x, y, optimize=True)
        product: Array = sums.astype(dtype)
        if tile.acc is not None:
            product = _align(self.value(tile.acc), dims) + product
        return Value(dims, product)

    def load(self, tile: Load) -> Value:
        dims = self.scope.dims(tile)
        source = self.memory[tile.buf]
        valid: Array = np.ones((), np.bool_)
        where = []
        for part, extent in zip(tile.index, source.shape, strict=True):
            if isinstance(part, Affine):
                index = self.affine(part, dims)
                valid = valid & (index >= 0) & (index < extent)
                index = np.clip(index, 0, max(0, extent - 1))
            else:
                index = self.gathered(tile.buf, part, extent, dims)
            where.append(index)
        shape = tuple(self.position[name].size for name in dims)
        found = source[tuple(np.broadcast_arrays(*where))] if where else source
        if not valid.all():
            found = np.where(valid, found, np.asarray(tile.pad or 0, source.dtype))
        return Value(dims, np.broadcast_to(found, shape))

    def gathered(self, buf: str, part: Tile, extent: int, dims: tuple[str, ...]) -> Array:
        index = _align(self.value(part), dims)
        wrong = index[(index < 0) | (index >= extent)]
        if wrong.size:
            raise InvalidInput(
                f"kernel {self.kernel.name}: index {int(wrong.flat[0])} into {buf} is outside "
                f"0..{extent - 1}"
            )
        return index

    def affine(self, index: Affine, order: tuple[str, ...]) -> Array:
        """The index's values, broadcastable over `order`."""
        total: Array = np.full((1,) * len(order), index.const, np.int64)
        for name, coef in index.terms:
            dims = (name,) if self.axes[name].is_dim else ()
            total = total + coef * _align(Value(dims, self.position[name]), order)
        return total


def _align(value: Value, order: tuple[str, ...]) -> Array:
    """The elements with their dims in `order`, 1 where the tile lacks one."""
    present = [name for name in order if name in value.dims]
    array = np.transpose(value.array, [value.dims.index(name) for name in present])
    sizes = dict(zip(present, array.shape, strict=True))
    return array.reshape([sizes.get(name, 1) for name in order])
