"""Random whole ONNX models, run by rooftile and held against float64 and onnxruntime.

    python tests/fuzz/random_models.py --start 0 --count 2000 [--json FILE]

Models are made by number, so that a failure is a number. What differs is cut down to few nodes.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import astuple, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
from model_layers import LAYERS
from model_maker import Made, Maker
from model_moves import MOVES
from model_steps import ARITHMETIC
from model_values import Array, Value
from onnx import helper

import rooftile

LEAST_NODES, MOST_NODES = 10, 30
STEPS = (*ARITHMETIC, *MOVES, *LAYERS)
MARK = "@verdict "


@dataclass(frozen=True)
class Verdict:
    """`word`: right, wrong, refused or broken; `onnxruntime`: right, wrong or refused.

    `hosted` are the ops that ran on the host, `ops` those of the model.
    """

    word: str
    detail: str
    onnxruntime: str
    hosted: tuple[str, ...]
    ops: tuple[str, ...]


def made(seed: int) -> Made:
    """The model of a number."""
    make = Maker(seed)
    for _ in range(2 + make.random.randrange(3)):
        make.input()
    wanted = make.random.randrange(LEAST_NODES, MOST_NODES + 1)
    for _ in range(20 * wanted):
        if len(make.nodes) >= wanted:
            break
        make.pick(STEPS)(make)
    found = make.finish()
    onnx.checker.check_model(found.model, full_check=True)
    return found


def judge(found: Made) -> Verdict:
    """Run a model and compare."""
    session, hosted = None, ()
    ops = tuple(sorted({node.op_type for node in found.model.graph.node}))
    theirs = onnxruntime_says(found)
    try:
        session = rooftile.InferenceSession(found.model.SerializeToString())
        problem = difference(found.outputs, session.run(None, found.feeds))
        word = "wrong" if problem else "right"
        hosted = tuple(sorted({d.facts["op"] for d in session.decisions if d.stage == "host"}))
    except rooftile.RooftileError as error:
        word, problem = "refused", f"{type(error).__name__}: {error}"
    except Exception as error:
        word, problem = "broken", f"{type(error).__name__}: {error}"
    return Verdict(word, problem, theirs, hosted, ops)


def onnxruntime_says(found: Made) -> str:
    """What onnxruntime makes of a model, without its own optimizations."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    try:
        session = onnxruntime.InferenceSession(found.model.SerializeToString(), options)
        outputs = session.run(None, found.feeds)
    except Exception as error:
        return f"refused: {' '.join(str(error).split())[:300]}"
    problem = difference(found.outputs, outputs)
    return f"wrong: {problem}" if problem else "right"


def difference(wanted: Sequence[Value], outputs: Sequence[Array]) -> str:
    """How outputs differ from what they should be by more than rounding explains; "" if not."""
    for value, got in zip(wanted, outputs, strict=True):
        if (got.dtype, got.shape) != (value.dtype, value.shape):
            return f"{value.name} is {got.dtype}{got.shape}, not {value.dtype}{value.shape}"
        if not value.is_float:
            if not np.array_equal(got, value.runs[0]):
                count = int(np.sum(got != value.runs[0]))
                return f"{value.name} differs in {count} of {got.size} integers"
            continue
        error, bound = np.abs(got.astype(np.float64) - value.runs[0]), value.tolerance()
        if not np.all(error <= bound):
            worst = float(np.max(np.nan_to_num(error, nan=np.inf) / np.maximum(bound, 1e-300)))
            count = int(np.sum(~(error <= bound)))
            how = f"differs in {count} of {got.size}, {worst:.3g} times the bound"
            return f"{value.name} ({value.dtype}) {how}"
    return ""


def reduced(found: Made) -> Made:
    """The model cut to one output that differs, and to as few of its nodes as still differ."""
    for value in found.outputs:
        one = _with_outputs(found, [value])
        if judge(one).word != "right":
            found = one
            break
    for node in reversed(list(found.model.graph.node)):
        known = {value.name: value for value in found.values}
        smaller = _cut(found, [known[name] for name in node.output if name in known])
        if judge(smaller).word != "right":
            found = smaller
    return found


def _with_outputs(found: Made, outputs: Sequence[Value]) -> Made:
    """The model with other outputs, and only what they need."""
    model = onnx.ModelProto()
    model.CopyFrom(found.model)
    left, kept = {value.name for value in outputs}, []
    for node in reversed(found.model.graph.node):
        if left & set(node.output):
            kept.append(node)
            left |= set(node.input)
    graph = model.graph
    inputs = [item for item in found.model.graph.input if item.name in left]
    weights = [item for item in found.model.graph.initializer if item.name in left]
    del graph.node[:], graph.input[:], graph.output[:], graph.initializer[:]
    graph.node.extend(kept[::-1])
    graph.input.extend(inputs)
    graph.initializer.extend(weights)
    graph.output.extend(_info(value) for value in outputs)
    feeds = {item.name: found.feeds[item.name] for item in inputs}
    return replace(found, model=model, feeds=feeds, outputs=tuple(outputs))


def _cut(found: Made, values: Sequence[Value]) -> Made:
    """The model with these values fed instead of computed."""
    names = {value.name for value in values}
    if names & {value.name for value in found.outputs}:
        return found
    model = onnx.ModelProto()
    model.CopyFrom(found.model)
    kept = [node for node in model.graph.node if not names & set(node.output)]
    del model.graph.node[:]
    model.graph.node.extend(kept)
    model.graph.input.extend(_info(value) for value in values)
    feeds = found.feeds | {v.name: v.runs[0].astype(v.dtype) for v in values}
    return _with_outputs(replace(found, model=model, feeds=feeds), found.outputs)


def _info(value: Value) -> Any:
    code = helper.np_dtype_to_tensor_dtype(value.dtype)
    return helper.make_tensor_value_info(value.name, code, value.shape)


def work(seeds: Sequence[int]) -> None:
    """Judge models in turn; each verdict is printed as soon as it is known."""
    for seed in seeds:
        found = made(seed)
        verdict = judge(found)
        if verdict.word != "right":
            small = reduced(found)
            text = onnx.printer.to_text(small.model.graph)
            verdict = replace(verdict, detail=f"{verdict.detail}\n{text}")
        print(f"\n{MARK}{json.dumps([seed, *astuple(verdict)])}", flush=True)


def survey(start: int, count: int) -> dict[int, Verdict]:
    """The verdict on each model; a new worker goes on behind the one that ended the last."""
    found: dict[int, Verdict] = {}
    while left := [seed for seed in range(start, start + count) if seed not in found][:200]:
        command = [sys.executable, __file__, "--worker", *map(str, left)]
        worker = subprocess.run(command, capture_output=True, text=True, errors="replace")
        for line in worker.stdout.splitlines():
            if line.startswith(MARK):
                seed, word, detail, theirs, hosted, ops = json.loads(line.removeprefix(MARK))
                found[seed] = Verdict(word, detail, theirs, tuple(hosted), tuple(ops))
                if word != "right":
                    print(f"{seed}: {word}, onnxruntime {theirs}\n{detail}", flush=True)
        ended = [seed for seed in left if seed not in found]
        if ended:
            found[ended[0]] = Verdict("crashed", worker.stderr[-3000:], "", (), ())
            print(f"{ended[0]}: crashed\n{worker.stderr[-3000:]}", flush=True)
    return found


def main() -> None:
    """Judge models and count."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--start", type=int, default=0, help="the number of the first model")
    parser.add_argument("--count", type=int, default=100, help="how many models")
    parser.add_argument("--json", type=Path, help="write all verdicts there")
    parser.add_argument("--worker", nargs="*", type=int, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker is not None:
        work(args.worker)
        return
    found = survey(args.start, args.count)
    print("rooftile:", dict(Counter(v.word for v in found.values())))
    print("onnxruntime:", dict(Counter(v.onnxruntime.split(":")[0] for v in found.values())))
    print("ops on the host:", dict(Counter(op for v in found.values() for op in v.hosted)))
    print("models with each op:", dict(Counter(op for v in found.values() for op in v.ops)))
    if args.json:
        args.json.write_text(json.dumps({seed: astuple(v) for seed, v in found.items()}))


if __name__ == "__main__":
    main()
