"""Runs a tile kernel natively between guard pages, and compares it with the interpreter.

Each buffer lies in pages of its own, between two that may not be touched: an access outside them
ends the process, one between the buffer and its page's edge is found by its canary.
"""

from __future__ import annotations

import ctypes
import math
import mmap
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import ml_dtypes
import numpy as np
import numpy.typing as npt

from rooftile.codegen.llvm.kernel import KernelText, emit
from rooftile.core.affine import bind
from rooftile.core.dtype import itemsize, kind, to_numpy
from rooftile.ir.tile import Buf, Hints, Kernel
from rooftile.ir.tile.interpret import run as interpret
from rooftile.ir.tile.layout import pack, physical_shape, unpack
from rooftile.ir.tile.text import parse
from rooftile.ir.tile.verify import verify
from rooftile.native.assemble import assemble
from rooftile.native.bounds import checks_bounds
from rooftile.native.library import Library, link
from rooftile.native.target import Target, host_target

Array = npt.NDArray[np.generic]
PAGE = mmap.PAGESIZE
CANARY = 0xA5
FLOAT_BOUND = {"f64": 1e-12, "f32": 2e-5, "f16": 2e-3, "bf16": 1.6e-2}
_libc = ctypes.CDLL(None, use_errno=True)


class Guarded:
    """`nbytes` of memory that end at a page out of bounds; with `edge` "start" they start there."""

    def __init__(self, nbytes: int, edge: str = "end") -> None:
        room = -(-max(nbytes, 1) // PAGE) * PAGE
        self.pages = mmap.mmap(-1, room + 2 * PAGE)
        whole = np.frombuffer(self.pages, np.uint8)
        self.base = whole.ctypes.data
        self.room = whole[PAGE : PAGE + room]
        self.room[:] = CANARY
        first = 0 if edge == "start" else room - nbytes
        self.bytes = self.room[first : first + nbytes]
        self.first = first
        self._protect(0)

    def _protect(self, rights: int) -> None:
        for at in (self.base, self.base + PAGE + self.room.nbytes):
            done = _libc.mprotect(ctypes.c_void_p(at), ctypes.c_size_t(PAGE), ctypes.c_int(rights))
            assert done == 0, "mprotect failed"

    @property
    def address(self) -> int:
        """Where the bytes start."""
        return self.base + PAGE + self.first

    def intact(self) -> bool:
        """Whether nothing was written beside the bytes."""
        before, after = self.room[: self.first], self.room[self.first + self.bytes.nbytes :]
        return bool((before == CANARY).all() and (after == CANARY).all())


def made(text: str) -> Kernel:
    """The verified kernel of a text."""
    return verify(parse(text))


@dataclass(frozen=True)
class Outcome:
    """The function's result and the logical outputs by name."""

    code: int
    outputs: dict[str, Array]


@lru_cache(maxsize=512)
def _compiled(text: str, target: Target, level: int) -> Library:
    return Library(link([assemble(text, target, level)]))


def execute(
    kernel: Kernel,
    arrays: Mapping[str, Array],
    symbols: Mapping[str, int] | None = None,
    target: Target | None = None,
    hints: Hints | None = None,
    edge: str = "end",
) -> Outcome:
    """Run a kernel on logical arrays. Outputs start as `arrays` has them, else as garbage.

    AssertionError where it wrote outside a buffer, changed an input, or changed a halo.
    """
    target, symbols = target or host_target(), symbols or {}
    text = emit(kernel, target, hints)
    buffers = [b for b in kernel.bufs if b.space == "memory"]
    held = [_placed(buf, arrays.get(buf.name), symbols, edge) for buf in buffers]
    before = [memory.bytes.copy() for memory in held]
    scratch = Guarded(text.scratch_bytes, edge)
    code = _call(text, target, [m.address for m in held], symbols, scratch.address)
    assert scratch.intact(), "wrote outside the scratch memory"
    outputs = {}
    for buf, memory, old in zip(buffers, held, before, strict=True):
        assert memory.intact(), f"wrote outside {buf.name}"
        if buf.name not in kernel.outputs:
            assert (memory.bytes == old).all(), f"wrote to the input {buf.name}"
            continue
        cells = memory.bytes.view(to_numpy(buf.dtype))
        outputs[buf.name] = found = unpack(buf, cells, symbols).copy()
        _check_between(buf, cells, old, found, symbols)
    return Outcome(code, outputs)


def _placed(buf: Buf, array: Array | None, symbols: Mapping[str, int], edge: str) -> Guarded:
    shape = tuple(bind(extent, symbols) for extent in buf.shape)
    dtype = to_numpy(buf.dtype)
    if array is None:
        array = np.full(math.prod(shape) * itemsize(buf.dtype), 0x01, np.uint8).view(dtype)
        array = array.reshape(shape)
    packed = pack(buf, np.asarray(array).astype(dtype).reshape(shape), symbols)
    memory = Guarded(packed.nbytes, edge)
    memory.bytes[:] = np.ascontiguousarray(packed).reshape(-1).view(np.uint8)
    return memory


def _call(
    text: KernelText, target: Target, pointers: list[int], symbols: Mapping[str, int], scratch: int
) -> int:
    library = _compiled(text.text, target, 0 if checks_bounds() else 1)
    function = ctypes.CFUNCTYPE(ctypes.c_int32)(library.address(text.symbol))
    sizes = [ctypes.c_int64(symbols[name]) for name in text.symbols]
    return int(function(*map(ctypes.c_void_p, pointers), *sizes, ctypes.c_void_p(scratch)))


def _check_between(
    buf: Buf, cells: Array, old: Array, found: Array, symbols: Mapping[str, int]
) -> None:
    """Cells of the halo and of rounding keep their zeros."""
    mask = pack(buf, np.ones(found.shape, np.bool_), symbols).reshape(-1)
    assert mask.size == math.prod(physical_shape(buf, symbols))
    kept = old.view(cells.dtype)[~mask].tobytes() == cells[~mask].tobytes()
    assert kept, f"wrote to cells of {buf.name} that hold no element"


def agree(
    kernel: Kernel,
    arrays: Mapping[str, Array],
    symbols: Mapping[str, int] | None = None,
    target: Target | None = None,
    hints: Hints | None = None,
    edge: str = "end",
    bound: float | None = None,
) -> dict[str, Array]:
    """Run natively and in the interpreter: integers and bools must be equal, floats within
    `bound` of the output's largest finite value. Returns the native outputs.
    """
    expected = interpret(kernel, arrays, symbols)
    outcome = execute(kernel, arrays, symbols, target, hints, edge)
    assert outcome.code == 0, f"{kernel.name} returned {outcome.code}"
    for name, want in expected.items():
        close(name, outcome.outputs[name], want, kernel.buf(name).dtype, bound)
    return outcome.outputs


def close(name: str, found: Array, want: Array, dtype: str, bound: float | None = None) -> None:
    """AssertionError where an output differs from what is wanted."""
    if kind(dtype) != "float":
        np.testing.assert_array_equal(found, want, err_msg=name)
        return
    got = found.astype(np.float64)
    info = (ml_dtypes.finfo if dtype == "bf16" else np.finfo)(to_numpy(dtype))
    least = float(info.max)
    with np.errstate(over="ignore"):
        wanted = np.asarray(want).astype(to_numpy(dtype)).astype(np.float64)
    edge = np.abs(np.asarray(want, np.float64)) > least * (1 - 1e-3)  # may round to infinity
    finite = np.isfinite(wanted) & ~edge
    np.testing.assert_array_equal(got[~finite & ~edge], wanted[~finite & ~edge], err_msg=name)
    assert np.isfinite(got[finite]).all(), f"{name}: not finite where it should be"
    scale = max(float(np.abs(wanted[finite]).max(initial=0.0)), float(info.tiny))
    error = float(np.abs(got[finite] - wanted[finite]).max(initial=0.0)) / scale
    limit = FLOAT_BOUND[dtype] if bound is None else bound
    assert error <= limit, f"{name}: off by {error:.2e} of its largest value, more than {limit}"


def filled(
    kernel: Kernel, seed: int = 0, symbols: Mapping[str, int] | None = None
) -> dict[str, Array]:
    """Arrays for every memory buffer: normal floats, small integers, random bools."""
    rng = np.random.default_rng(seed)
    made: dict[str, Array] = {}
    for buf in kernel.bufs:
        if buf.space == "memory":
            shape = tuple(bind(extent, symbols) for extent in buf.shape)
            made[buf.name] = _random(rng, shape, buf.dtype)
    return made


def _random(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> Array:
    if kind(dtype) == "float":
        return rng.standard_normal(shape).astype(to_numpy(dtype))
    if kind(dtype) == "bool":
        return rng.integers(0, 2, shape).astype(np.bool_)
    low = -9 if kind(dtype) == "int" else 0
    return rng.integers(low, 10, shape).astype(to_numpy(dtype))
