"""Tree ensembles: `tree_walk` goes down all trees for the whole batch, then leaves are looked up.

Where a node has several parents, or a test has no packed form, the walk is a scan over steps whose
state is the node at which each tree stands for each row; it ends at a leaf, where it stays.
"""

from __future__ import annotations

import numpy as np

from rooftile.core.dtype import kind, to_numpy
from rooftile.frontends.onnx.call import Call
from rooftile.frontends.onnx.families.position import position_of
from rooftile.frontends.onnx.families.scores import TRANSFORMS, label_of, labels, transformed
from rooftile.frontends.onnx.forest import Forest, by_arrays, by_node_ids, numbers
from rooftile.frontends.onnx.packed import Packed, packed
from rooftile.frontends.onnx.registry import reads
from rooftile.ir.graph import Array, Value
from rooftile.ops.scan_builder import ScanBuilder

ML = "ai.onnx.ml"
_AGGREGATES = ("AVERAGE", "SUM", "MIN", "MAX")
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
    tight = packed(forest, x.dims[1])
    if tight is not None:
        return _tight(call, tight, forest.depth, x), tight.leaf
    leaf = np.arange(len(forest.feature)) - forest.tests
    count = len(forest.roots)
    place = call.broadcast(call.constant(forest.roots[None], "i32"), (x.dims[0], count))
    if not forest.depth:
        return place, leaf
    scan = ScanBuilder(call.builder, forest.depth)
    state, seen = scan.state(place), scan.capture(x)
    after = _looked_up(call.within(scan.body), forest, seen, state)
    return scan.finish([after], [])[0], leaf


def _tight(call: Call, tight: Packed, depth: int, x: Value) -> Value:
    data = x
    if tight.copied:
        data = call.elementwise("where", call.emit("isnan", x), -np.inf, x)
        if tight.plain:
            data = call.emit("concat", x, data, axis=1)
    roots = call.constant(tight.roots, "u32")
    words = call.constant(tight.words, "u32" if tight.words.dtype == np.uint32 else "u64")
    splits = call.constant(tight.splits, x.dtype)
    how = {"bits": tight.bits, "depth": depth, "equal": tight.equal}
    return call.emit("tree_walk", data, roots, words, splits, **how)


def _looked_up(call: Call, forest: Forest, x: Value, place: Value) -> Value:
    """One test of rows where they stand: what a node says is looked up, its branches too."""
    tables = {
        "feature": call.constant(forest.feature, "i32"),
        "split": call.constant(forest.split, x.dtype),
        "mode": call.constant(forest.mode, "i32"),
        "track": call.constant(forest.track, "bool"),
        "children": call.constant(forest.children, "i32"),
    }

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
