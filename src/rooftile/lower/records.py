"""What lowering takes and gives: where values live, and kernels with their arguments."""

from __future__ import annotations

from dataclasses import dataclass

from rooftile.ir.graph import Graph
from rooftile.ir.tile import Kernel


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
