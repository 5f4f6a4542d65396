"""What the Triton generator makes: source text, and how to launch it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from rooftile.codegen.triton.address import WIDE
from rooftile.codegen.triton.scalar import SIGNATURE
from rooftile.core.errors import InvalidInput
from rooftile.ir.tile.layout import physical_shape
from rooftile.ir.tile.query import symbols, trips
from rooftile.ir.tile.records import Hints, Kernel


@dataclass(frozen=True)
class TritonSource:
    """A module's text. `args` are the parameters of the function `name`: the memory buffers in
    order, then an i32 flag that is set where an index from data lies outside its dim (only if
    `checks`), then the symbols.
    """

    text: str
    name: str
    args: tuple[str, ...]
    kernel: Kernel
    hints: Hints
    checks: bool = False

    def grid(self, symbol_values: Mapping[str, int] | None = None) -> tuple[int]:
        """Programs to launch. InvalidInput: the symbols make a buffer too large for the 32-bit
        offsets of a kernel with symbolic shapes.
        """
        axes = self.kernel.axes
        for buf in self.kernel.bufs:
            size = math.prod(physical_shape(buf, symbol_values))
            if size >= WIDE and any(not isinstance(extent, int) for extent in buf.shape):
                raise InvalidInput(
                    f"kernel {self.name}: buffer {buf.name} has {size} elements; compile it for "
                    "this shape to have 64-bit offsets"
                )
        return (math.prod(trips(axis, axes, symbol_values) for axis in self.kernel.grid),)

    @property
    def options(self) -> dict[str, int]:
        """Launch options: warps of a program, stages of pipelined loops."""
        return {"num_warps": self.hints.warps, "num_stages": self.hints.stages}

    @property
    def signature(self) -> dict[str, str]:
        """Triton's type of each parameter."""
        types = [f"*{SIGNATURE[buf.dtype]}" for buf in self.kernel.bufs]
        types += ["*i32"] if self.checks else []
        types += ["i32"] * len(symbols(self.kernel))
        return dict(zip(self.args, types, strict=True))
