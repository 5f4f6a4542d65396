"""The way into a program from Python: arrays are checked and read by native code.

What Python does for an array (type, shape, strides, address) takes longer than a small program.
The layout of array, tuple and list objects that the code relies on is fixed by the C interfaces of
Python and numpy, and probed once: where it is another one, there is no gate, and `Frame.point` does
the same in Python.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from rooftile.native import Library, host_target
from rooftile.native.cache import build
from rooftile.runtime.arrays import Array, Taker, address

Gate = Callable[[Any, Any, int], int]
"""Takes inputs and outputs, tuples or lists of arrays, and the address of a plan."""

UNFIT = -1
"""What the gate returns where an input does not fit: its place, counted down from here."""
MOST_PORTS = 1 << 16

_HEADER = object.__basicsize__
_TUPLE_ITEMS, _LIST_ITEMS = tuple.__basicsize__, _HEADER + 8
_DATA, _RANK, _DIMS, _DTYPE, _FLAGS = (_HEADER + 8 * place for place in (0, 1, 2, 5, 6))
_CONTIGUOUS_ALIGNED = 0x101
"""Flags of a C-contiguous array whose elements lie at multiples of their alignment."""
_ENTRY, _INPUTS, _OUTPUTS, _ARENA, _CONSTANTS, _COUNT, _ARRAY, _TUPLE, _PORTS = range(0, 72, 8)
_PORT_WORDS = 3

_TEXT = f"""
; Where the items of a tuple or list begin.
define internal ptr @items(ptr %object, ptr %plan) alwaysinline {{
  %type_at = getelementptr i8, ptr %object, i64 {_HEADER - 8}
  %type = load ptr, ptr %type_at
  %tuple_at = getelementptr i8, ptr %plan, i64 {_TUPLE}
  %tuple = load ptr, ptr %tuple_at
  %is_tuple = icmp eq ptr %type, %tuple
  %inside = getelementptr i8, ptr %object, i64 {_TUPLE_ITEMS}
  %list_at = getelementptr i8, ptr %object, i64 {_LIST_ITEMS}
  %from = select i1 %is_tuple, ptr %object, ptr %list_at
  %outside = load ptr, ptr %from
  %found = select i1 %is_tuple, ptr %inside, ptr %outside
  ret ptr %found
}}

define i32 @gate(ptr %inputs, ptr %outputs, ptr %plan) {{
entry:
  %slots_at = getelementptr i8, ptr %plan, i64 {_INPUTS}
  %slots = load ptr, ptr %slots_at
  %count_at = getelementptr i8, ptr %plan, i64 {_COUNT}
  %counts = load i64, ptr %count_at
  %count = and i64 %counts, {MOST_PORTS - 1}
  %results = lshr i64 %counts, 16
  %array_at = getelementptr i8, ptr %plan, i64 {_ARRAY}
  %array = load ptr, ptr %array_at
  %given = call ptr @items(ptr %inputs, ptr %plan)
  br label %next
next:
  %i = phi i64 [0, %entry], [%i1, %fits]
  %more = icmp ult i64 %i, %count
  br i1 %more, label %look, label %taken
look:
  %item_at = getelementptr ptr, ptr %given, i64 %i
  %item = load ptr, ptr %item_at
  %word = mul i64 %i, {8 * _PORT_WORDS}
  %port_offset = add i64 %word, {_PORTS}
  %port = getelementptr i8, ptr %plan, i64 %port_offset
  %type_at = getelementptr i8, ptr %item, i64 {_HEADER - 8}
  %type = load ptr, ptr %type_at
  %is_array = icmp eq ptr %type, %array
  br i1 %is_array, label %typed, label %unfit
typed:
  %dtype_at = getelementptr i8, ptr %item, i64 {_DTYPE}
  %dtype = load ptr, ptr %dtype_at
  %wanted = load ptr, ptr %port
  %same_dtype = icmp eq ptr %dtype, %wanted
  %rank_at = getelementptr i8, ptr %item, i64 {_RANK}
  %rank32 = load i32, ptr %rank_at
  %rank = sext i32 %rank32 to i64
  %wanted_rank_at = getelementptr i8, ptr %port, i64 8
  %wanted_rank = load i64, ptr %wanted_rank_at
  %same_rank = icmp eq i64 %rank, %wanted_rank
  %flags_at = getelementptr i8, ptr %item, i64 {_FLAGS}
  %flags = load i32, ptr %flags_at
  %set = and i32 %flags, {_CONTIGUOUS_ALIGNED}
  %plain = icmp eq i32 %set, {_CONTIGUOUS_ALIGNED}
  %kind = and i1 %same_dtype, %same_rank
  %good = and i1 %kind, %plain
  %dims_at = getelementptr i8, ptr %item, i64 {_DIMS}
  %dims = load ptr, ptr %dims_at
  %wanted_dims_at = getelementptr i8, ptr %port, i64 16
  %wanted_dims = load ptr, ptr %wanted_dims_at
  br i1 %good, label %dim, label %unfit
dim:
  %d = phi i64 [0, %typed], [%d1, %same]
  %inner = icmp slt i64 %d, %rank
  br i1 %inner, label %compare, label %fits
compare:
  %dim_at = getelementptr i64, ptr %dims, i64 %d
  %extent = load i64, ptr %dim_at
  %wanted_at = getelementptr i64, ptr %wanted_dims, i64 %d
  %wanted_extent = load i64, ptr %wanted_at
  %equal = icmp eq i64 %extent, %wanted_extent
  br i1 %equal, label %same, label %unfit
same:
  %d1 = add i64 %d, 1
  br label %dim
fits:
  %data_at = getelementptr i8, ptr %item, i64 {_DATA}
  %data = load ptr, ptr %data_at
  %slot = getelementptr ptr, ptr %slots, i64 %i
  store ptr %data, ptr %slot
  %i1 = add i64 %i, 1
  br label %next
unfit:
  %place = trunc i64 %i to i32
  %code = sub i32 {UNFIT}, %place
  ret i32 %code
taken:
  %targets_at = getelementptr i8, ptr %plan, i64 {_OUTPUTS}
  %targets = load ptr, ptr %targets_at
  %made = call ptr @items(ptr %outputs, ptr %plan)
  br label %output
output:
  %o = phi i64 [0, %taken], [%o1, %point]
  %some = icmp ult i64 %o, %results
  br i1 %some, label %point, label %run
point:
  %result_at = getelementptr ptr, ptr %made, i64 %o
  %result = load ptr, ptr %result_at
  %memory_at = getelementptr i8, ptr %result, i64 {_DATA}
  %memory = load ptr, ptr %memory_at
  %target = getelementptr ptr, ptr %targets, i64 %o
  store ptr %memory, ptr %target
  %o1 = add i64 %o, 1
  br label %output
run:
  %function = load ptr, ptr %plan
  %arena_at = getelementptr i8, ptr %plan, i64 {_ARENA}
  %arena = load ptr, ptr %arena_at
  %constants_at = getelementptr i8, ptr %plan, i64 {_CONSTANTS}
  %constants = load ptr, ptr %constants_at
  %done = call i32 %function(ptr %slots, ptr %targets, ptr %arena, ptr %constants)
  ret i32 %done
}}
"""


class Plan:
    """What the gate is told of a program and of the memory of a run; `address` is where it lies."""

    def __init__(
        self, entry: int, memory: Sequence[int], takers: Sequence[Taker], outputs: int
    ) -> None:
        """`memory`: the addresses of the pointers to inputs and outputs, of arena and constants.
        `outputs` counts them."""
        self._dims = [np.array(taker.shape, np.int64) for taker in takers]
        words = [entry, *memory, outputs << 16 | len(takers), id(np.ndarray), id(tuple)]
        for taker, dims in zip(takers, self._dims, strict=True):
            words += [id(taker.dtype), len(dims), address(dims)]
        self._takers = tuple(takers)  # whose dtypes must live
        self._words = np.array(words, np.int64)
        self.address = address(self._words)


@lru_cache(maxsize=1)
def gate() -> Gate | None:
    """The gate of this process; None where objects are laid out in another way."""
    if not _is_usual():
        return None
    library = Library(build([_TEXT], host_target()))
    kind = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.py_object, ctypes.py_object, ctypes.c_void_p)
    found: Any = kind(library.address("gate"))
    found.library = library  # the code lives as long as its function
    return found  # type: ignore[no-any-return]


def _is_usual() -> bool:
    """Whether arrays, tuples and lists lie in memory as the text expects it."""
    if sys.implementation.name != "cpython" or ctypes.sizeof(ctypes.c_void_p) != 8:
        return False
    if not getattr(sys, "_is_gil_enabled", lambda: True)():
        return False

    def word(item: Any, offset: int) -> int:
        return ctypes.c_size_t.from_address(id(item) + offset).value

    probes: list[Array] = [np.zeros((3, 5), np.float32), np.zeros((4, 6), np.int8)[1:, ::2]]
    for probe in probes:
        dims = (ctypes.c_int64 * probe.ndim).from_address(word(probe, _DIMS))
        flags = word(probe, _FLAGS) & 0xFFFFFFFF
        fits = (
            word(probe, _HEADER - 8) == id(np.ndarray)
            and word(probe, _DATA) == probe.ctypes.data
            and word(probe, _RANK) & 0xFFFFFFFF == probe.ndim
            and tuple(dims) == probe.shape
            and word(probe, _DTYPE) == id(probe.dtype)
            and bool(flags & 0x1) == probe.flags.c_contiguous
            and bool(flags & 0x100) == probe.flags.aligned
        )
        if not fits:
            return False
    both, listed = (probes[0], probes[1]), [probes[1], probes[0]]
    items = (ctypes.c_size_t * 2).from_address(word(listed, _LIST_ITEMS))
    return list(items) == list(map(id, listed)) and word(both, _TUPLE_ITEMS + 8) == id(both[1])
