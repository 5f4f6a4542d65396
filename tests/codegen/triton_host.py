"""Runs Triton kernels on numpy arrays through Triton's interpreter, without a GPU or torch.

As a program it prints, for each case, the largest distance from the tile interpreter. It is a
program of its own because Triton reads TRITON_INTERPRET when it is imported.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ["TRITON_INTERPRET"] = "1"
os.environ.setdefault("TRITON_DEFAULT_FP_FUSION", "1")
sys.path.insert(0, str(Path(__file__).parent.parent))

import kernels
import numpy as np
import triton_texts as texts

from rooftile.codegen.triton import emit, load
from rooftile.core.dtype import to_numpy
from rooftile.ir.tile.interpret import run
from rooftile.ir.tile.layout import pack, unpack
from rooftile.ir.tile.query import symbols
from rooftile.ir.tile.records import Kernel
from rooftile.ir.tile.text import parse
from rooftile.ir.tile.verify import verify

_TORCH_NAMES = {"f32": "float32", "f64": "float64", "bf16": "bfloat16", "f16": "float16"}
_TORCH_NAMES |= {"i64": "int64", "i32": "int32", "i8": "int8", "u8": "uint8", "bool": "bool"}


class HostTensor:
    """As much of a torch tensor as Triton's interpreter asks for, over a numpy array."""

    def __init__(self, array: np.ndarray, dtype: str) -> None:
        self.array = array
        self.dtype = f"torch.{_TORCH_NAMES[dtype]}"

    def data_ptr(self) -> int:
        return self.array.view(np.uint8).ctypes.data

    def untyped_storage(self) -> HostTensor:
        return self

    def new_empty(self, *_: Any, **__: Any) -> HostTensor:
        return self

    def cpu(self) -> HostTensor:
        return self

    def set_(self, *_: Any) -> None: ...

    def copy_(self, *_: Any) -> None: ...

    def storage_offset(self) -> int:
        return 0

    size = stride = storage_offset


def launch(
    kernel: Kernel, arrays: dict[str, np.ndarray], bound: dict[str, int]
) -> tuple[dict[str, np.ndarray], bool]:
    """Outputs, poisoned before the run, and whether an index from data was out of range."""
    source = emit(kernel)
    tensors = []
    for buf in kernel.bufs:
        shape = tuple(n if isinstance(n, int) else n.value(bound) for n in buf.shape)
        given = arrays.get(buf.name, np.full(shape, 77)).astype(to_numpy(buf.dtype))
        packed = np.ascontiguousarray(pack(buf, given, bound)).reshape(-1)
        tensors.append(HostTensor(packed, buf.dtype))
    fault = np.zeros(1, np.int32)
    args: list[Any] = [*tensors, *([HostTensor(fault, "i32")] if source.checks else [])]
    load(source)[source.grid(bound)](*args, *(bound[name] for name in symbols(kernel)))
    found = {
        buf.name: unpack(buf, tensor.array, bound)
        for buf, tensor in zip(kernel.bufs, tensors, strict=True)
        if buf.name in kernel.outputs
    }
    return found, bool(fault[0])


def distance(
    kernel: Kernel, arrays: dict[str, np.ndarray], bound: dict[str, int] | None = None
) -> float:
    """The largest distance between Triton's values and the oracle's, NaN equal to NaN."""
    found, fault = launch(kernel, arrays, bound or {})
    assert not fault
    worst = 0.0
    for name, expected in run(kernel, arrays, bound).items():
        value = found[name].astype(np.float64)
        assert (np.isnan(value) == np.isnan(expected)).all(), name
        gap = np.abs(np.where(value == expected, 0, value - expected))
        worst = max(worst, float(np.nanmax(gap)))
    return worst


def _normal(*shape: int, dtype: str = "f32") -> np.ndarray:
    values = np.random.default_rng(len(shape)).standard_normal(shape)
    return values.astype(to_numpy(dtype)).astype(np.float64)


def _matmul() -> float:
    kernel = kernels.matmul_gelu("M", 40, 48, 16, 32, 16, layout="layout 1/16 0 1%16")
    arrays = {"A": _normal(37, 40), "B": _normal(40, 48), "bias": _normal(48)}
    return distance(kernel, arrays, {"M": 37})


def _softmax() -> float:
    return distance(kernels.softmax(5, 33, 2), {"X": _normal(5, 33)})


def _softmax_nan() -> float:
    x = _normal(5, 33)
    x[3, 7] = np.nan
    return distance(kernels.softmax(5, 33, 2), {"X": x})


def _depthwise(halo: str = "") -> float:
    kernel = kernels.depthwise(7, 9, 6, 2, 4, 3, halo=halo)
    return distance(kernel, {"X": _normal(7, 9, 6), "W": _normal(3, 3, 6), "bias": _normal(6)})


def _depthwise_halo() -> float:
    return _depthwise("halo 1:1 1:1 0:0")


def _attention(dtype: str = "f32") -> float:
    q, k, v = _normal(3, 2, 20, 8, dtype=dtype)
    return distance(kernels.attention(2, 20, 8, 6, dtype), {"Q": q, "K": k, "V": v})


def _attention_f16() -> float:
    return _attention("f16")


def _softmax_bf16() -> float:
    return distance(kernels.softmax(5, 33, 2, "bf16"), {"X": _normal(5, 33, dtype="bf16")})


def _online() -> float:
    q, k, v = _normal(3, 2, 21, 8) - 9
    kernel = kernels.attention_online(2, 8, 6, 16)
    return distance(kernel, {"Q": q, "K": k, "V": v}, {"S": 21})


def _text(text: str, **arrays: np.ndarray) -> Callable[[], float]:
    return lambda: distance(verify(parse(text)), arrays)


def _small(*shape: int) -> np.ndarray:
    return np.random.default_rng(1).integers(-4, 5, shape)


def _gather_faults() -> float:
    kernel = verify(parse(texts.GATHER))
    ids = np.array([0, 4, 1, 2, 3, 5])
    found, fault = launch(kernel, {"T": _normal(5, 3), "ids": ids}, {})
    assert fault and not found["Y"][5].any()
    return 0.0


CASES: dict[str, Callable[[], float]] = {
    "matmul": _matmul,
    "softmax": _softmax,
    "softmax_nan": _softmax_nan,
    "depthwise": _depthwise,
    "depthwise_halo": _depthwise_halo,
    "attention": _attention,
    "attention_f16": _attention_f16,
    "softmax_bf16": _softmax_bf16,
    "attention_online": _online,
    "conv_pixels": _text(texts.CONV, X=_normal(6, 7, 5), W=_normal(3, 3, 5, 4)),
    "recurrence": _text(texts.RECURRENCE, X=_normal(3, 4, 5), W=_normal(5, 5)),
    "integers": _text(texts.INTEGERS, A=_small(13), B=_small(13) % 3, F=_normal(13) * 9),
    "swap": _text(texts.SWAP, X=_normal(9)),
    "within": _text(texts.WITHIN, X=_normal(11, 6)),
    "bytes": _text(texts.MATRIX_I8, A=_small(5, 7), B=_small(7, 6)),
    "gather": _text(texts.GATHER, T=_normal(5, 3), ids=np.array([4, 0, 1, 1, 2, 3])),
    "batch": _text(texts.BATCH, X=_normal(4, 3, 5), W=_normal(4, 5, 3)),
    "half": _text(texts.HALF, X=_normal(9, 5, dtype="f16"), W=_normal(5, 6, dtype="f16")),
    "plain": _text(texts.PLAIN, X=_normal(2, 3)),
    "gather_faults": _gather_faults,
}

if __name__ == "__main__":
    results = {}
    for case, measure in CASES.items():
        if sys.argv[1:] and case not in sys.argv[1:]:
            continue
        try:
            results[case] = measure()
        except Exception as error:
            results[case] = f"{type(error).__name__}: {error}"
    print(json.dumps(results))
