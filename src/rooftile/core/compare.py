"""How far results are from what they should be."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


def difference(got: Sequence[Any], want: Sequence[Any]) -> tuple[float | None, str]:
    """The largest difference relative to the largest wanted value of its output.

    None, with the reason, where numbers, shapes or special values of outputs differ.
    """
    if len(got) != len(want):
        return None, f"{len(got)} outputs for {len(want)}"
    worst = 0.0
    for place, (mine, theirs) in enumerate(zip(got, want, strict=True)):
        found, why = _one(np.asarray(mine), np.asarray(theirs))
        if found is None:
            return None, f"output {place}: {why}"
        worst = max(worst, found)
    return worst, ""


def _one(got: Array, want: Array) -> tuple[float | None, str]:
    if got.shape != want.shape:
        return None, f"shape {list(got.shape)} for {list(want.shape)}"
    if not _is_float(want):
        return (0.0, "") if np.array_equal(got, want) else (None, "values differ")
    mine, theirs = got.astype(np.float64), want.astype(np.float64)
    special = ~np.isfinite(theirs)
    if not np.array_equal(mine[special], theirs[special], equal_nan=True):
        return None, "nan or infinite elsewhere"
    if not np.isfinite(mine[~special]).all():
        return None, "nan or infinite elsewhere"
    scale = np.abs(theirs[~special]).max(initial=0.0)
    apart = np.abs(mine[~special] - theirs[~special]).max(initial=0.0)
    return float(apart / scale) if scale else float(apart), ""


def _is_float(array: Array) -> bool:
    return array.dtype.kind == "f" or array.dtype.name == "bfloat16"
