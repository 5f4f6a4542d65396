"""The node tests that ONNX ships, each run through the public API and judged.

A case is right, refused with a clear error, wrong, or broken (any other exception).
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
from onnx import numpy_helper

import rooftile
from rooftile.frontends.onnx.bodies import bodies

EXPECTED = Path(__file__).with_name("node_cases.txt")
"""A case a line: name, word, ops, and those on the host; `survey.py --write` makes it."""


@dataclass(frozen=True)
class Verdict:
    """`word`: right, refused, wrong or broken; `detail` says how. `hosted`: ops run on the host."""

    word: str
    detail: str = ""
    hosted: tuple[str, ...] = ()


@dataclass(frozen=True)
class Case:
    """A model with inputs, expected outputs, and how far they may differ."""

    name: str
    model: onnx.ModelProto
    feeds: Mapping[str, Any]
    wanted: Sequence[Any]
    rtol: float
    atol: float


@lru_cache(maxsize=1)
def cases() -> Mapping[str, Case]:
    """Every node test case by name.

    The tests feed axes, shapes and the like at run time, where models hold them as constants: a
    case that has such inputs comes a second time, called `NAME:known`, with these as initializers.
    """
    from onnx.backend.test.case.node import collect_testcases

    found: dict[str, Case] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        shipped = collect_testcases(None)
    for test in shipped:
        for number, (inputs, wanted) in enumerate(test.data_sets):
            name = f"{test.name}:{number}" if number else test.name
            names = [item.name for item in test.model.graph.input]
            feeds = dict(zip(names, map(_array, inputs), strict=True))
            case = Case(name, test.model, feeds, [_array(x) for x in wanted], test.rtol, test.atol)
            found[name] = case
            known = _known(case)
            if known:
                found[f"{name}:known"] = _with_known(case, known)
    return found


def ops_of(graph: Any) -> list[str]:
    """The ops of a graph and of the bodies in it, each once; DOMAIN.OP where it is not ai.onnx."""
    found = set()
    for node in graph.node:
        found.add(f"{node.domain}.{node.op_type}" if node.domain else node.op_type)
        for body in bodies(node):
            found.update(ops_of(body))
    return sorted(found)


def _array(content: Any) -> Any:
    return numpy_helper.to_array(content) if isinstance(content, onnx.TensorProto) else content


def _known(case: Case) -> list[str]:
    """Inputs behind the first that look like axes, shapes, counts or switches."""
    found = []
    for name in list(case.feeds)[1:]:
        array = case.feeds[name]
        if isinstance(array, np.ndarray) and array.ndim < 2 and array.dtype in (np.int64, np.bool_):
            found.append(name)
    return found


def _with_known(case: Case, known: Sequence[str]) -> Case:
    model = onnx.ModelProto()
    model.CopyFrom(case.model)
    kept = [item for item in model.graph.input if item.name not in known]
    del model.graph.input[:]
    model.graph.input.extend(kept)
    for name in known:
        model.graph.initializer.append(numpy_helper.from_array(case.feeds[name], name))
    feeds = {name: array for name, array in case.feeds.items() if name not in known}
    return replace(case, name=f"{case.name}:known", model=model, feeds=feeds)


def judge(case: Case) -> Verdict:
    """Compile and run a case."""
    try:
        session = rooftile.InferenceSession(case.model.SerializeToString())
        problem = difference(case, session.run(None, case.feeds), case.wanted)
        hosted = tuple(sorted({d.facts["op"] for d in session.decisions if d.stage == "host"}))
    except rooftile.RooftileError as error:
        return Verdict("refused", f"{type(error).__name__}: {error}")
    except Exception as error:
        return Verdict("broken", f"{type(error).__name__}: {error}")
    return Verdict("wrong", problem) if problem else Verdict("right", hosted=hosted)


def difference(case: Case, outputs: Sequence[Any], wanted: Sequence[Any]) -> str:
    """How the outputs differ from what the case expects; empty where they do not."""
    if len(outputs) != len(wanted):
        return f"{len(outputs)} outputs, not {len(wanted)}"
    for number, (got, want) in enumerate(zip(outputs, wanted, strict=True)):
        problem = _difference(case, got, want)
        if problem:
            return f"output {number} {problem}"
    return ""


def _difference(case: Case, got: Any, want: Any) -> str:
    """How one value differs: a tensor, a sequence of values, or None for an empty optional.

    The expected values were rounded on their way: nothing is asked to be closer to them than two
    units in the last place, or one of the largest value.
    """
    if want is None or got is None:
        return "" if want is got else f"is {type(got).__name__}, not {type(want).__name__}"
    if isinstance(want, list):
        if not isinstance(got, list) or len(got) != len(want):
            return f"is {got}, not {want}"
        problems = (_difference(case, mine, theirs) for mine, theirs in zip(got, want, strict=True))
        return next(filter(None, problems), "")
    want = np.asarray(want)
    if want.dtype.kind == "U":
        want = want.astype(object)
    if got.dtype != want.dtype:
        return f"is {got.dtype}, not {want.dtype}"
    if got.shape != want.shape:
        return f"has shape {got.shape}, not {want.shape}"
    if _is_random(case):
        return ""
    if got.dtype.kind in "iubO":
        same = np.asarray(got == want)
    else:
        wide = got.astype(np.float64), want.astype(np.float64)
        # Types of a byte come of casts alone, which are exact.
        unit = float(ml_dtypes.finfo(want.dtype).eps) if want.itemsize > 1 else 0.0
        largest = np.max(np.abs(wide[1]), initial=0.0, where=np.isfinite(wide[1]))
        rtol, atol = max(case.rtol, 2 * unit), max(case.atol, unit * largest)
        same = np.isclose(*wide, rtol=rtol, atol=atol, equal_nan=True)
    if same.all():
        return ""
    first = tuple(int(index) for index in np.argwhere(~same)[0])
    count = np.count_nonzero(~same)
    shown = f"{got[first]}, not {want[first]}"
    return f"differs in {count} of {same.size} values, first at {first}: {shown}"


def _is_random(case: Case) -> bool:
    """ONNX says of its own tests of Bernoulli that the values are for information only."""
    return any(node.op_type in ("Bernoulli", "RandomUniformLike") for node in case.model.graph.node)
