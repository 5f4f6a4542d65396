"""Where a tile is stored: a buffer in memory, or scratch memory of the kernel."""

from __future__ import annotations

from dataclasses import dataclass

from rooftile.codegen.llvm.access import Address, address
from rooftile.codegen.llvm.state import Point, State
from rooftile.core.dtype import DType, itemsize
from rooftile.ir.tile import Load


@dataclass(frozen=True)
class Memory:
    """A store's destination: a buffer at an index."""

    load: Load
    dims: tuple[str, ...]

    def stride(self, state: State, axis: str) -> int:
        """Bytes between neighbours along an axis."""
        before = state.vector_axis
        state.vector_axis = axis
        stride = state.vector_stride(self.load)
        state.vector_axis = before
        return stride or 0

    def contiguous(self, state: State, point: Point) -> bool:
        """Whether the lanes of a point are neighbours in memory."""
        return state.stride_at(self.load, point) == itemsize(self.dtype(state))

    def address(self, state: State, point: Point) -> Address:
        """Where a point is stored."""
        return address(state, state.room(self.load.buf), state.place(self.load, point))

    def dtype(self, state: State) -> DType:
        """The element type that is stored."""
        return state.bufs[self.load.buf].dtype


@dataclass(frozen=True)
class Scratch:
    """A tile kept in scratch memory."""

    name: str
    dims: tuple[str, ...]

    def stride(self, state: State, axis: str) -> int:
        """Bytes between neighbours along an axis."""
        local = state.locals[self.name]
        return dict(zip(local.dims, local.strides, strict=True)).get(axis, 0)

    def contiguous(self, state: State, point: Point) -> bool:
        """Whether the lanes of a point are neighbours in memory."""
        return self.stride(state, state.vector_axis or "") == itemsize(self.dtype(state))

    def address(self, state: State, point: Point) -> Address:
        """Where a point is stored."""
        local = state.locals[self.name]
        return address(state, local.room, state.local_place(local, point))

    def dtype(self, state: State) -> DType:
        """The element type that is stored."""
        return state.locals[self.name].dtype


Destination = Memory | Scratch
