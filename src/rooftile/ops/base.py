"""What an op is: one record with its shape rule, cost rule, float64 reference and tile body."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from rooftile.core.affine import Affine, Dim
from rooftile.core.dtype import DType
from rooftile.ir.graph import Array, Node, Value
from rooftile.ir.tile import Kernel, Tile

Index = tuple[Affine, ...]
"""A position in a tensor: one affine expression in the kernel's axes for each dim."""
Type = tuple[tuple[Dim, ...], DType]
"""Shape and dtype of a value that has no name yet."""


class Body(Protocol):
    """What a tile body may ask of the lowering that calls it."""

    def arg(self, number: int, index: Index | tuple[Any, ...], pad: float | None = None) -> Tile:
        """Input `number` of the node at `index`; `pad` is its value outside its shape.

        An index component may be an integer Tile instead of an Affine: a checked gather.
        """
        ...

    def axis(self, hint: str, extent: int) -> Affine:
        """A new axis over `extent`, for a reduction, as an index."""
        ...

    def reduced(self, op: str, dims: Sequence[int], index: Index) -> Tile:
        """Reduce input 0 over its `dims`; `index` holds the positions of the other dims in order.

        The lowering chooses the axes: where the same input is used beside its reduction, as in
        softmax, both share one axis.
        """
        ...

    def split(self, index: Affine, sizes: Sequence[int]) -> Index:
        """A position in a dim of `prod(sizes)` as positions in dims of `sizes`, row-major.

        The lowering refines the kernel's axes where that is needed; NotLowered if it cannot.
        """
        ...

    def number(self, extent: int) -> Tile:
        """An extent as an i64 scalar, whether or not it is known before the run."""
        ...

    @property
    def inputs(self) -> tuple[Value, ...]:
        """The node's inputs."""
        ...


Attrs = Mapping[str, Any]


@dataclass(frozen=True)
class Op:
    """A canonical op.

    `infer(attrs, inputs)` gives the outputs' types and raises InvalidModel in words of the op.
    `reference(attrs, arrays)` computes the outputs; float inputs come as float64.
    `flops(attrs, inputs, outputs)` counts operations.
    `body(node, index, build)` is the output's tile at `index`; None where a kernel cannot compute
    it. `kind` groups ops for the planner: elementwise, view, reduce, window, dot, conv, gather,
    program, host. An op that goes step by step has no body but `program(node, inputs)`: the whole
    kernel, whose memory buffers are the inputs in order, then the output.
    """

    name: str
    kind: str
    infer: Callable[[Attrs, Sequence[Value]], tuple[Type, ...]]
    reference: Callable[[Attrs, Sequence[Array]], tuple[Array, ...]]
    flops: Callable[[Attrs, Sequence[Value], Sequence[Value]], int]
    body: Callable[[Node, Index, Body], Tile] | None
    program: Callable[[Node, Sequence[Value]], Kernel] | None = None


OPS: dict[str, Op] = {}
"""Every canonical op by name; each module of this package registers its own."""


def register(op: Op) -> Op:
    """Add an op to `OPS`; a name is registered once."""
    if op.name in OPS:
        raise AssertionError(f"op {op.name} is registered twice")
    OPS[op.name] = op
    return op
