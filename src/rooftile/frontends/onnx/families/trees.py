"""Tree ensembles: all trees are walked at once for the whole batch, one test a step.

The walk is a scan over steps whose state is the node at which each tree stands for each row; it
ends at a leaf, where it stays. So every step is one kernel over [batch, trees].
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from rooftile.core.dtype import kind, to_numpy
from rooftile.frontends.onnx.call import Call
from rooftile.frontends.onnx.families.position import position_of
from rooftile.frontends.onnx.families.scores import TRANSFORMS, label_of, labels, transformed
from rooftile.frontends.onnx.forest import Forest, Packed, by_arrays, by_node_ids, numbers, packed
from rooftile.frontends.onnx.registry import reads
from rooftile.ir.graph import Array, Value
from rooftile.ops.scan_builder import ScanBuilder

ML = "ai.onnx.ml"
_AGGREGATES = ("AVERAGE", "SUM", "MIN", "MAX")
Step = Callable[[Call], Callable[[Value, Value], Value]]
"""Puts the tables of a forest where a call emits; gives what makes one test of rows and places."""
_TESTS = {0: ("le", False), 1: ("lt", False), 2: ("le", True), 3: ("lt", True)}
"""The comparison of a mode, and whether its sides change places."""


@reads("TreeEnsemble", since=5, domain=ML)
def tree_ensemble(call: Call) -> Value:
    """Targets of a forest in arrays; one type for inputs, splits and results."""
    x, targets = rows_of(call), call.integer("n_targets", 1)
    forest = by_arrays(call, targets, to_numpy(x.dtype))
    aggregate = _AGGREGATES[call.integer("aggregate_function", 1) % len(_AGGREGATES)]
    transform = TRANSFORMS[call.integer("post_transform", 0) % len(TRANSFORMS)]
    return transformed(call, _scores(call, forest, x, aggregate), transform)


@reads("TreeEnsembleRegressor", domain=ML)
def tree_ensemble_regressor(call: Call) -> Value:
    """Targets of a forest with nodes by number; the results are f32."""
    x, targets = rows_of(call), call.integer("n_targets", 1)
    forest = by_node_ids(call, "target", targets, to_numpy(x.dtype))
    aggregate = call.text("aggregate_function", "SUM")
    if aggregate not in _AGGREGATES:
        call.invalid(f"aggregate_function must be one of {', '.join(_AGGREGATES)}")
    scores = _scores(call, forest, x, aggregate)
    base = numbers(call, "base_values")
    if base.size:
        if base.size not in (1, targets):
            call.invalid(f"base_values holds {base.size} values for {targets} targets")
        scores = call.elementwise("add", scores, call.constant(base[None], scores.dtype))
    return call.cast(transformed(call, scores, call.text("post_transform", "NONE")), "f32")


@reads("TreeEnsembleClassifier", domain=ML)
def tree_ensemble_classifier(call: Call) -> tuple[Value, ...]:
    """The label of the class with the largest score, and the scores, f32."""
    names, x = labels(call), rows_of(call)
    classes = names.dims[0]
    forest = by_node_ids(call, "class", classes, to_numpy(x.dtype))
    scores = _scores(call, forest, x, "SUM")
    base = numbers(call, "base_values")
    transform = call.text("post_transform", "NONE")
    voted = {int(target) for target in call.ints("class_ids")}
    positive = bool(np.all(numbers(call, "class_weights") >= 0))
    single = classes == 2 and len(voted) == 1 and base.size < 2
    if single:
        limit = 0.5 if positive else 0.0
        return _two_classes(call, names, scores, voted == {0}, limit, base, transform)
    if base.size:
        if base.size != classes:
            call.invalid(f"base_values holds {base.size} values for {classes} classes")
        scores = call.elementwise("add", scores, call.constant(base[None], scores.dtype))
    number = call.reshape(position_of(call, scores, 1, "max"), (x.dims[0],))
    final = call.cast(transformed(call, scores, transform), "f32")
    return label_of(call, names, number), final


def _two_classes(
    call: Call,
    names: Value,
    scores: Value,
    first: bool,
    limit: float,
    base: Array,
    transform: str,
) -> tuple[Value, ...]:
    """Two classes of which the trees vote for one: the votes are the second's score.

    Where they are said to be for the first class, its score is what is left: 1 - score where no
    weight is negative, else -score (as in onnxruntime).
    """
    batch, column = scores.dims[0], 0 if first else 1
    score = call.emit(
        "slice", scores, starts=(0, column), limits=(batch, column + 1), strides=(1, 1)
    )
    if base.size and first:
        score = call.elementwise("add", score, float(base[0]))
    number = call.cast(call.elementwise("lt", limit, score), "i64")
    label = label_of(call, names, call.reshape(number, (batch,)))
    if not first:
        return label, call.cast(transformed(call, scores, transform), "f32")
    other = call.emit("neg", score)
    if transform == "LOGISTIC":
        pair = [call.emit("logistic", other), call.emit("logistic", score)]
    else:
        pair = [call.elementwise("sub", 1, score) if limit else other, score]
        if transform == "PROBIT":
            pair = [transformed(call, value, transform) for value in pair]
    return label, call.cast(call.emit("concat", *pair, axis=1), "f32")


def rows_of(call: Call) -> Value:
    """The input as [batch, features], floats; integers become f32."""
    x = call.input(0)
    if x.rank == 1:
        x = call.reshape(x, (1, *x.dims))
    if x.rank != 2:
        call.invalid(f"X {list(x.shape)} must be [batch, features]")
    return x if kind(x.dtype) == "float" else call.cast(x, "f32")


def _scores(call: Call, forest: Forest, x: Value, aggregate: str) -> Value:
    """The targets' sums (or averages, minima, maxima) over all trees: [batch, targets]."""
    used = int(forest.feature.max(initial=-1))
    if used >= x.dims[1] or int(forest.feature.min(initial=0)) < 0:
        call.invalid(f"a test asks for feature {used}; X has {x.dims[1]}")
    targets = forest.weights.shape[1]
    if not len(forest.roots):
        return call.constant(np.zeros((x.dims[0], targets)), x.dtype)
    end, leaf = _walk(call, forest, x)
    silent = {"MIN": np.inf, "MAX": -np.inf}.get(aggregate, 0.0)
    table = np.where(np.isnan(forest.weights), silent, forest.weights)[np.maximum(leaf, 0)]
    table = table[:, 0] if targets == 1 else table
    reduction = {"MIN": "min", "MAX": "max"}.get(aggregate, "sum")
    votes = call.emit("gather", call.constant(table, x.dtype), end, axis=0)
    found = call.emit("reduce", votes, op=reduction, dims=(1,))
    found = call.reshape(found, (x.dims[0], targets))
    if aggregate == "AVERAGE":
        return call.elementwise("div", found, len(forest.roots))
    if aggregate in ("MIN", "MAX") and bool(np.isnan(forest.weights).any()):
        unknown = call.elementwise("eq", found, silent)
        return call.elementwise("where", unknown, call.constant(0, x.dtype), found)
    return found


def _walk(call: Call, forest: Forest, x: Value) -> tuple[Value, Array]:
    """The node that each row ends at in each tree, i32 [batch, trees]; leaves over nodes."""
    tight = packed(forest)
    if tight is None:
        step, leaf = _loose_step(forest, x.dtype), np.arange(len(forest.feature)) - forest.tests
    else:
        step, leaf = _tight_step(tight, x.dtype), tight.leaf
    roots = forest.roots if tight is None else tight.roots
    place = call.broadcast(call.constant(roots[None], "i32"), (x.dims[0], len(roots)))
    if forest.depth == 0:
        return place, leaf
    if forest.depth == 1:
        return step(call)(x, place), leaf
    scan = ScanBuilder(call.builder, forest.depth)
    state, seen = scan.state(place), scan.capture(x)
    after = step(call.within(scan.body))(seen, state)
    return scan.finish([after], [])[0], leaf


def _tight_step(tight: Packed, dtype: str) -> Step:
    def begun(call: Call) -> Callable[[Value, Value], Value]:
        words = call.constant(tight.words, "i32" if tight.words.dtype == np.int32 else "i64")
        splits = call.constant(tight.splits, dtype)
        how = {"bits": tight.bits, "track": tight.track, "equal": tight.equal}
        return lambda x, place: call.emit("tree_step", x, place, words, splits, **how)

    return begun


def _loose_step(forest: Forest, dtype: str) -> Step:
    """The same where nodes have several parents: branches are looked up."""

    def begun(call: Call) -> Callable[[Value, Value], Value]:
        tables = {
            "feature": call.constant(forest.feature, "i32"),
            "split": call.constant(forest.split, dtype),
            "mode": call.constant(forest.mode, "i32"),
            "track": call.constant(forest.track, "bool"),
            "children": call.constant(forest.children, "i32"),
        }
        return lambda x, place: _looked_up(call, forest, tables, x, place)

    return begun


def _looked_up(
    call: Call, forest: Forest, tables: Mapping[str, Value], x: Value, place: Value
) -> Value:
    def at(name: str, where: Value) -> Value:
        return call.emit("gather", tables[name], where, axis=0)

    value = call.emit("gather_elements", x, at("feature", place), axis=1)
    modes = sorted(set(forest.mode[: forest.tests].tolist()))
    found = {mode: _test(call, mode, value, at("split", place)) for mode in modes}
    holds = found[modes[0]]
    for number in modes[1:]:
        same = call.elementwise("eq", at("mode", place), number)
        holds = call.elementwise("where", same, found[number], holds)
    if forest.track.any():
        missing = call.elementwise("and", call.emit("isnan", value), at("track", place))
        holds = call.elementwise("or", holds, missing)
    branch = call.elementwise("mul", place, 2)
    return at("children", call.elementwise("add", branch, call.cast(holds, "i32")))


def _test(call: Call, mode: int, value: Value, split: Value) -> Value:
    if mode in _TESTS:
        op, swapped = _TESTS[mode]
        return call.elementwise(op, *((split, value) if swapped else (value, split)))
    same = call.elementwise("eq", value, split)
    return same if mode == 4 else call.emit("not", same)
