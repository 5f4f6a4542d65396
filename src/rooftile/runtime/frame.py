"""The memory of one run: its arena, and the arrays of pointers that native code is given."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

import numpy as np

from rooftile.ir.program import Arg, Program
from rooftile.native import NEVER, Stop, aligned
from rooftile.runtime.arrays import Array, address


class Frame:
    """What one run at a time uses. Made once, pointed at new inputs and outputs for each run."""

    def __init__(self, program: Program, constants: Array) -> None:
        self.program = program
        self.arena = aligned(program.arena_bytes)
        self.constants = constants
        self.inputs: Sequence[Array] = ()
        self.outputs: Sequence[Array] = ()
        self._input_pointers = (ctypes.c_void_p * (len(program.inputs) + 2))()
        table = program.table.values()
        self._table = (ctypes.c_int64 * len(table))(*table)
        self._input_pointers[len(program.inputs)] = ctypes.addressof(self._table)
        self._output_pointers = (ctypes.c_void_p * max(1, len(program.outputs)))()
        self.entry_args = (
            ctypes.c_void_p(ctypes.addressof(self._input_pointers)),
            ctypes.c_void_p(ctypes.addressof(self._output_pointers)),
            ctypes.c_void_p(address(self.arena)),
            ctypes.c_void_p(address(constants)),
        )
        """Inputs, outputs, arena and constants, as the entry takes them."""

    def point(self, inputs: Sequence[Array], outputs: Sequence[Array], stop: Stop = NEVER) -> None:
        """Use these arrays and this flag for the next run. The frame keeps none of them alive."""
        pointers = self._input_pointers
        pointers[len(inputs) + 1] = stop.address
        for place, array in enumerate(inputs):
            pointers[place] = address(array)
        pointers = self._output_pointers
        for place, array in enumerate(outputs):
            pointers[place] = address(array)
        self.inputs, self.outputs = inputs, outputs

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
