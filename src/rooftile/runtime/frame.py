"""The memory of one run: its arena, and the arrays of pointers that native code is given."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

import numpy as np

from rooftile.ir.program import Arg, Program
from rooftile.ir.program.records import POOL_SLOT, SLOTS, STOP_SLOT, TABLE_SLOT
from rooftile.native import NEVER, Stop, aligned
from rooftile.runtime.arrays import Array, Taker, address
from rooftile.runtime.gate import Plan


class Frame:
    """What one run at a time uses. Made once, pointed at new inputs and outputs for each run."""

    def __init__(
        self,
        program: Program,
        constants: Array,
        entry: int,
        takers: Sequence[Taker],
        pool: int | None = None,
    ) -> None:
        """`entry`: the address of the program's function, `takers` what its inputs must be like.
        `pool`: the address of the pool of threads; without one, launches stay whole."""
        self.program = program
        self.arena = aligned(program.arena_bytes)
        self.constants = constants
        self.inputs: Sequence[Array] = ()
        self.outputs: Sequence[Array] = ()
        self._input_pointers = (ctypes.c_void_p * (len(program.inputs) + SLOTS))()
        table = program.table.values()
        self._table = (ctypes.c_int64 * len(table))(*table)
        self._input_pointers[len(program.inputs) + TABLE_SLOT] = ctypes.addressof(self._table)
        self._input_pointers[len(program.inputs) + POOL_SLOT] = pool
        self._output_pointers = (ctypes.c_void_p * max(1, len(program.outputs)))()
        memory = (
            ctypes.addressof(self._input_pointers),
            ctypes.addressof(self._output_pointers),
            address(self.arena),
            address(constants),
        )
        self.entry_args = tuple(map(ctypes.c_void_p, memory))
        """Inputs, outputs, arena and constants, as the entry takes them."""
        self._plan = Plan(entry, memory, takers, len(program.outputs))
        self.plan = self._plan.address
        """What the gate takes."""
        self.watch(NEVER)

    def point(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        """Use these arrays, which fit the ports, for the next run. None is kept alive."""
        for pointers, arrays in (
            (self._input_pointers, inputs),
            (self._output_pointers, outputs),
        ):
            for place, array in enumerate(arrays):
                pointers[place] = address(array)
        self.inputs, self.outputs = inputs, outputs

    def watch(self, stop: Stop) -> None:
        """Let loops end where this flag is set."""
        self._input_pointers[len(self.program.inputs) + STOP_SLOT] = stop.address
        self.stop = stop

    def memory(self, name: str) -> Array:
        """The bytes of a buffer, a view."""
        buffer = self.program.by_name[name]
        if buffer.in_arena:
            return self.arena[buffer.offset : buffer.end]
        if buffer.space == "constant":
            return self.constants[buffer.offset : buffer.end]
        if buffer.space == "table":
            return np.asarray(self._table).view(np.uint8)
        if buffer.space == "output":
            array = self.outputs[self.program.output_place[name]]
        else:
            places = {port.buffer: i for i, port in enumerate(self.program.inputs)}
            array = self.inputs[places[name]]
        return array.reshape(-1).view(np.uint8)

    def pointer(self, arg: Arg) -> int:
        """The address that an argument stands for in this run."""
        return address(self.memory(arg.buffer)) + arg.offset
