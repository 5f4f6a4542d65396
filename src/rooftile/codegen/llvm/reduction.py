"""A Dot or Reduce taken apart: operands, axes, identity, and how an accumulator is updated."""

from __future__ import annotations

import math

from rooftile.codegen.llvm.arith import fma, select
from rooftile.codegen.llvm.convert import cast
from rooftile.codegen.llvm.evaluate import Evaluator
from rooftile.codegen.llvm.scalar import apply
from rooftile.codegen.llvm.state import Point, State
from rooftile.codegen.llvm.values import Val, constant, lane_mask, splat
from rooftile.core.dtype import DType, itemsize, kind
from rooftile.ir.tile import Cast, Dot, Load, Map, Reduce, Ref, Rename, Tile, children

COMBINE = {"sum": "add", "prod": "mul", "max": "max", "min": "min"}


class Reduction:
    """A Dot, or nested Reduces of one kind, taken apart."""

    def __init__(self, tile: Dot | Reduce, state: State) -> None:
        self.state = state
        self.dtype: DType = state.scope.dtype(tile)
        self.acc: Tile | None = None
        self.varies = (state.vector_axis or "") in state.free(tile)
        if isinstance(tile, Dot):
            self.op = "sum"
            self.operands: tuple[Tile, ...] = (tile.a, tile.b)
            self.axes = list(tile.over)
            self.acc = tile.acc
        else:
            self.op = tile.op
            self.axes = [tile.axis]
            inner = tile.x
            while isinstance(inner, Reduce) and inner.op == tile.op:
                self.axes.append(inner.axis)
                inner = inner.x
            self.operands = (inner,)
        self._reads = [read for operand in self.operands for read in _reads(operand, state)]
        self.padded = [r for r in self._reads if isinstance(r, Load) and r.pad is not None]

    @property
    def identity(self) -> float:
        """What changes nothing when combined."""
        return identity(self.op, self.dtype)

    @property
    def skips(self) -> bool:
        """Whether an element adds nothing when any of its padded loads lies outside.

        A product with a padding of 0 counts as nothing whatever its other factor is, as it does
        in convolutions.
        """
        nothing = {id(load) for tile in self.operands for load in self._vanishing(tile)}
        return all(id(load) in nothing for load in self.padded)

    def _vanishing(self, tile: Tile) -> list[Load]:
        """Padded loads that make an operand the identity when they lie outside."""
        state = self.state
        if isinstance(tile, Load):
            return [tile] if tile.pad == self.identity else []
        if isinstance(tile, Ref):
            return self._vanishing(state.lets[tile.name]) if tile.name in state.lets else []
        product = isinstance(tile, Map) and tile.op == "mul" and self.op == "sum"
        same = isinstance(tile, Cast) and (self.op == "sum" or _float_to_float(tile, state))
        if product or same or isinstance(tile, Rename):
            return [load for child in children(tile) for load in self._vanishing(child)]
        return []

    def memory_reads(self) -> list[Load | Ref]:
        """Everything that is read from memory for one element."""
        return self._reads

    def read_sizes(self) -> list[int]:
        """Bytes of one element of each read."""
        state = self.state
        return [
            itemsize(state.bufs[r.buf].dtype if isinstance(r, Load) else state.locals[r.name].dtype)
            for r in self._reads
        ]

    def combine(self, state: State, a: Val, b: Val) -> Val:
        """Two partial results as one."""
        return apply(state.writer, COMBINE[self.op], [a, b])

    def update(self, evaluator: Evaluator, total: Val, point: Point) -> Val:
        """The accumulator with the element at a point added."""
        writer = self.state.writer
        values = [
            cast(writer, evaluator.value(operand, point), self.dtype) for operand in self.operands
        ]
        if not self.varies and point.lanes < total.width:
            values = [
                self._counted(operand, value, point)
                for operand, value in zip(self.operands, values, strict=True)
            ]
        if len(values) == 2:
            return fma(writer, values[0], values[1], total)
        return self.combine(self.state, total, splat(writer, values[0], total.width))

    def _counted(self, operand: Tile, value: Val, point: Point) -> Val:
        """The identity in the lanes behind those that count: a sum over lanes takes them all."""
        if len(self.operands) == 2 and _reads_zero(operand, self.state):
            return value
        writer, width = self.state.writer, point.width
        mask = Val(lane_mask(width, point.lanes), "bool", width)
        nothing = constant(self.identity, self.dtype, width)
        return select(writer, mask, splat(writer, value, width), nothing)


def _float_to_float(tile: Cast, state: State) -> bool:
    return {kind(tile.dtype), kind(state.scope.dtype(tile.x))} == {"float"}


def _reads_zero(tile: Tile, state: State) -> bool:
    """Whether a tile is read from memory along the lanes: behind those that count it is 0."""
    axis = state.vector_axis
    if isinstance(tile, Load):
        return tile.pad is None and axis in state.free(tile)
    return isinstance(tile, Ref) and tile.name in state.locals and axis in state.free(tile)


def identity(op: str, dtype: DType) -> float:
    """The neutral element of a reduction in a dtype."""
    if op in ("sum", "prod"):
        return 0.0 if op == "sum" else 1.0
    sign = -1 if op == "max" else 1
    if kind(dtype) == "float":
        return sign * math.inf
    half = 1 << (8 * itemsize(dtype) - 1)
    if kind(dtype) == "int":
        return -half if op == "max" else half - 1
    return 0 if op == "max" else 2 * half - 1


def _reads(tile: Tile, state: State) -> list[Load | Ref]:
    """Loads, and refs to tiles in scratch memory, through the Lets that are not."""
    if isinstance(tile, Ref):
        if tile.name in state.locals:
            return [tile]
        return _reads(state.lets[tile.name], state)
    own: list[Load | Ref] = [tile] if isinstance(tile, Load) else []
    return own + [read for child in children(tile) for read in _reads(child, state)]
