"""A row of results: the race, values against a rival and float64, the roof, memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rooftile.bench.engines import Feeds
from rooftile.bench.race import Raced, race
from rooftile.core.compare import difference
from rooftile.core.errors import RooftileError
from rooftile.frontends.onnx import read
from rooftile.frontends.onnx.load import load
from rooftile.ops.evaluate import evaluate

Row = dict[str, Any]
OURS = "rooftile"
_UNKNOWN: Row = {
    "kernels": None,
    "host_ops": {},
    "compiled_share": None,
    "roof": {"flops": None, "bytes": None, "limit_ms": None},
    "memory": {"arena_bytes": None, "lower_bound_bytes": None, "no_reuse_bytes": None},
}
"""What a row tells of a model that rooftile could not run."""


def row(
    model: str,
    feeds: Feeds,
    rivals: Sequence[str],
    threads: int,
    seconds: float,
    float64: bool = True,
) -> Row:
    """Race rooftile and its rivals on a model. RooftileError where it is no model."""
    nodes = len(load(model).proto.graph.node)
    raced = race((OURS, *rivals), model, feeds, threads, seconds)
    shapes = {name: tuple(np.shape(value)) for name, value in feeds.items()}
    best = {name: figures.get("best_ms") for name, figures in raced.engines.items()}
    ours = best[OURS]
    found = {**_UNKNOWN, **raced.facts.get(OURS, {})}
    least = found["roof"]["limit_ms"]
    return {
        "model": model,
        "shapes": {name: list(shape) for name, shape in shapes.items()},
        "nodes": nodes,
        **found,
        "engines": dict(raced.engines),
        "speedup": {
            name: time / ours for name, time in best.items() if name != OURS and time and ours
        },
        "error": _error(raced, rivals) | _against_float64(model, shapes, feeds, raced, float64),
        "roof": {**found["roof"], "share": least / ours if least is not None and ours else None},
    }


def _error(raced: Raced, rivals: Sequence[str]) -> Row:
    """Against the first rival that ran."""
    other = next((name for name in rivals if name in raced.values), None)
    if other is None or OURS not in raced.values:
        return {"max_rel": None, "vs": other}
    found, why = difference(raced.values[OURS], raced.values[other])
    return {"max_rel": found, "vs": other, **({"why": why} if why else {})}


def _against_float64(
    model: str,
    shapes: Mapping[str, tuple[int, ...]],
    feeds: Feeds,
    raced: Raced,
    wanted: bool,
) -> Row:
    if not wanted or OURS not in raced.values:
        return {"vs_float64": None}
    try:
        truth = evaluate(read(model, shapes), feeds)
    except RooftileError as error:
        return {"vs_float64": None, "why_no_float64": str(error)}
    found, why = difference(raced.values[OURS], list(truth.values()))
    return {"vs_float64": found, **({"why_float64": why} if why else {})}
