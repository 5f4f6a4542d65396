"""The ONNX node tests with the dims of their inputs left open, at their own and at other sizes.

    python tests/conformance/open_dims.py [PART OF A NAME ...] [--json FILE]

Each case is compiled once at its own shapes and judged; then the same program is bound to other
shapes, where a session compiled for them alone says what is right.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
from node_cases import Case, Verdict, cases, difference

import rooftile
from rooftile.core.symbolic import Sym
from rooftile.runtime import Executable, Template

TRIES = 4
"""Sets of other sizes that each case is bound to."""


def opened(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with a name for each dim of an input that is larger than 1, and no other shapes."""
    found = onnx.ModelProto()
    found.CopyFrom(model)
    del found.graph.value_info[:]
    for item in found.graph.input:
        for number, dim in enumerate(item.type.tensor_type.shape.dim):
            if dim.dim_value > 1:
                dim.dim_param = f"{item.name}_{number}"
    for item in found.graph.output:
        item.type.tensor_type.ClearField("shape")
    return found


def judge_open(case: Case, seed: int = 0) -> Verdict:
    """`static`: no dim stayed open; `refused`: with the reason; else right or wrong."""
    model = opened(case.model)
    shapes = {name: np.shape(array) for name, array in case.feeds.items()}
    try:
        compiled = rooftile.compile(model, shapes=shapes, open_dims=True)
    except rooftile.RooftileError as error:
        return Verdict("refused", f"{type(error).__name__}: {error}")
    problem = difference(case, compiled(dict(case.feeds)), case.wanted)
    if problem:
        return Verdict("wrong", problem)
    if compiled.template is None:
        return Verdict("static")
    rng = np.random.default_rng(seed)
    bound = 0
    for _ in range(TRIES):
        feeds = _resized(compiled.template, case.feeds, rng)
        executable = compiled.template.bind([np.shape(array) for array in feeds.values()])
        if executable is None:
            continue
        problem = _against_own(case, model, feeds, executable)
        if problem:
            sizes = [list(np.shape(array)) for array in feeds.values()]
            return Verdict("wrong", f"at {sizes}: {problem}")
        bound += 1
    return Verdict("right", f"{bound} of {TRIES} other sizes")


def _resized(
    template: Template, feeds: Mapping[str, Any], rng: np.random.Generator
) -> dict[str, Any]:
    """The inputs with their elements repeated or cut to other sizes of the open dims."""
    sizes = {
        name: int(rng.integers(max(2, value - 3), value + 6))
        for name, value in template.symbols.values.items()
    }
    found: dict[str, Any] = {}
    for port in template.program.inputs:
        array = np.asarray(feeds[port.name])
        for axis, extent in enumerate(port.shape):
            if isinstance(extent, Sym):
                places = np.arange(extent.poly.value(sizes)) % array.shape[axis]
                array = np.take(array, places, axis=axis)
        found[port.name] = array
    return found


def _against_own(
    case: Case, model: onnx.ModelProto, feeds: Mapping[str, Any], executable: Executable
) -> str:
    """How a bound program differs from one that was compiled for the shapes."""
    shapes = {name: np.shape(array) for name, array in feeds.items()}
    try:
        wanted = rooftile.compile(model, shapes=shapes)(dict(feeds))
    except rooftile.RooftileError as error:
        wanted, refusal = [], error
    try:
        got = executable.run(list(feeds.values()))
    except rooftile.RooftileError:
        return "" if not wanted else "refused at run time"
    if not wanted:
        return f"runs where alone it is refused: {refusal}"
    return difference(case, got, wanted)


def _is_plain(value: object) -> bool:
    """Whether a value is a tensor of a type that numpy has itself."""
    return (
        isinstance(value, np.ndarray) and value.dtype.kind in "fiub" and value.dtype.isbuiltin == 1
    )


def main() -> None:
    """Judge, print what is not right, and count."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", help="only cases whose name holds one of these")
    parser.add_argument("--json", help="write all verdicts to this file")
    options = parser.parse_args()
    found: dict[str, Verdict] = {}
    for name, case in cases().items():
        if options.parts and not any(part in name for part in options.parts):
            continue
        if not all(map(_is_plain, (*case.feeds.values(), *case.wanted))):
            continue
        found[name] = judge_open(case)
        if found[name].word in ("wrong", "refused"):
            print(f"{name}: {found[name].word}: {found[name].detail[:200]}", flush=True)
    print(dict(Counter(verdict.word for verdict in found.values())))
    if options.json:
        with open(options.json, "w") as file:
            json.dump({name: [v.word, v.detail] for name, v in found.items()}, file, indent=0)
    sys.exit(any(verdict.word == "wrong" for verdict in found.values()))


if __name__ == "__main__":
    main()
