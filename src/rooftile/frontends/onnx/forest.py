"""Decision trees as flat arrays, as the attributes of ai.onnx.ml give them in two forms.

Nodes are numbered over all trees, those with a test first, then the leaves. A leaf's children are
itself, so that a walk of a fixed number of steps ends at the leaf of each tree.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rooftile.frontends.onnx.call import Call
from rooftile.ir.graph import Array

MODES = (
    "BRANCH_LEQ",
    "BRANCH_LT",
    "BRANCH_GTE",
    "BRANCH_GT",
    "BRANCH_EQ",
    "BRANCH_NEQ",
    "BRANCH_MEMBER",
)
MEMBER = 6
MAX_FEATURES = 1 << 28
MAX_TABLE = 1 << 28
"""Most elements of a table of leaves by targets."""


@dataclass(frozen=True)
class Forest:
    """Arrays over nodes: `feature` and `children` (where the test fails, where it holds) i32,
    `split` float, `mode` an index into MODES, `track` whether a missing value counts as a test
    that holds. `roots` is over trees; `weights` [leaves, targets] with NaN where a leaf says
    nothing about a target; `depth` the most tests on a path.
    """

    feature: Array
    split: Array
    mode: Array
    track: Array
    children: Array
    roots: Array
    weights: Array
    depth: int

    @property
    def tests(self) -> int:
        """How many nodes have a test."""
        return len(self.feature) - len(self.weights)


@dataclass
class Draft:
    """A forest being put together: tests in lists, targets of branches as (is a leaf, number)."""

    feature: list[int]
    split: list[float]
    mode: list[int]
    track: list[bool]
    holds: list[tuple[bool, int]]
    fails: list[tuple[bool, int]]
    roots: list[tuple[bool, int]]


def numbers(call: Call, name: str) -> Array:
    """Numbers from a list attribute, or from its tensor form, which may be of doubles."""
    if call.has(f"{name}_as_tensor"):
        return call.tensor(f"{name}_as_tensor").ravel()
    return np.array(call.floats(name, ()), np.float32)


def finished(call: Call, draft: Draft, weights: Array, dtype: np.dtype[np.generic]) -> Forest:
    """The forest of a draft; InvalidModel where a branch leads nowhere or in a circle."""
    count, leaves = len(draft.feature), len(weights)
    if any(not 0 <= feature < MAX_FEATURES for feature in draft.feature):
        call.invalid("a test asks for a feature that cannot be there")
    numbered = []
    for branches in (draft.fails, draft.holds, draft.roots):
        places = np.array([number + count * leaf for leaf, number in branches], np.int64)
        limit = [leaves if leaf else count for leaf, _ in branches]
        if any(not 0 <= number < most for (_, number), most in zip(branches, limit, strict=True)):
            call.invalid("a branch leads to a node that is not there")
        numbered.append(places)
    fails, holds, roots = numbered
    own = np.arange(count, count + leaves)
    children = np.stack(
        [np.concatenate([fails, own]), np.concatenate([holds, own])], axis=1
    ).astype(np.int32)
    padding = np.zeros(leaves)
    return Forest(
        np.concatenate([draft.feature, padding]).astype(np.int32),
        np.concatenate([draft.split, padding]).astype(dtype),
        np.concatenate([draft.mode, padding]).astype(np.int32),
        np.concatenate([draft.track, padding]).astype(np.bool_),
        children.ravel(),
        roots.astype(np.int32),
        weights.astype(dtype),
        _depth(call, children, roots, count),
    )


def _depth(call: Call, children: Array, roots: Array, tests: int) -> int:
    """The most tests on a path from a root to a leaf."""
    level = np.unique(roots[roots < tests])
    depth = 0
    while level.size:
        depth += 1
        if depth > tests:
            call.invalid("the branches of its trees go in a circle")
        level = np.unique(children[level])
        level = level[level < tests]
    return depth


def by_node_ids(call: Call, what: str, targets: int, dtype: np.dtype[np.generic]) -> Forest:
    """A forest in the form of opset 1 and 3: nodes and votes named by (tree, node) numbers.

    `what`: "target" or "class", the prefix of the votes' attributes.
    """
    call.ignore("nodes_hitrates", "nodes_hitrates_as_tensor")
    trees, nodes = call.ints("nodes_treeids"), call.ints("nodes_nodeids")
    modes = call.texts("nodes_modes")
    lists = {
        "feature": call.ints("nodes_featureids"),
        "split": numbers(call, "nodes_values").tolist(),
        "holds": call.ints("nodes_truenodeids"),
        "fails": call.ints("nodes_falsenodeids"),
        "track": call.ints("nodes_missing_value_tracks_true", ()) or (0,) * len(nodes),
    }
    if any(len(item) != len(nodes) for item in (trees, modes, *lists.values())):
        call.invalid("its attributes nodes_... must have equal lengths")
    place: dict[tuple[int, int], tuple[bool, int]] = {}
    counts = [0, 0]
    for key, mode in zip(zip(trees, nodes, strict=True), modes, strict=True):
        if key in place or mode not in (*MODES[:MEMBER], "LEAF"):
            call.invalid(f"node {key[1]} of tree {key[0]} is there twice, or of mode {mode!r}")
        leaf = mode == "LEAF"
        place[key] = (leaf, counts[leaf])
        counts[leaf] += 1
    draft = Draft([], [], [], [], [], [], [])
    nowhere = (True, -1)
    for number, mode in enumerate(modes):
        if mode == "LEAF":
            continue
        draft.feature.append(lists["feature"][number])
        draft.split.append(lists["split"][number])
        draft.mode.append(MODES.index(mode))
        draft.track.append(bool(lists["track"][number]))
        draft.holds.append(place.get((trees[number], lists["holds"][number]), nowhere))
        draft.fails.append(place.get((trees[number], lists["fails"][number]), nowhere))
    first: dict[int, tuple[bool, int]] = {}
    for key in zip(trees, nodes, strict=True):
        first.setdefault(key[0], place[key])  # the first node listed of a tree is its root
    draft.roots.extend(first.values())
    return finished(call, draft, _votes(call, what, place, counts[1], targets), dtype)


def _votes(
    call: Call,
    what: str,
    place: dict[tuple[int, int], tuple[bool, int]],
    leaves: int,
    targets: int,
) -> Array:
    """What each leaf says about each target: [leaves, targets]."""
    weights = numbers(call, f"{what}_weights")
    keys = zip(call.ints(f"{what}_treeids"), call.ints(f"{what}_nodeids"), strict=False)
    found = [place.get(key, (False, -1)) for key in keys]
    ids = call.ints(f"{what}_ids")
    if not len(found) == len(ids) == len(weights):
        call.invalid(f"its attributes {what}_... must have equal lengths")
    return _table(call, found, ids, weights, (leaves, targets))


def _table(
    call: Call,
    places: Sequence[tuple[bool, int]],
    ids: Sequence[int],
    weights: Array,
    shape: tuple[int, int],
) -> Array:
    if shape[0] * shape[1] > MAX_TABLE:
        call.unsupported(f"a table of {shape[0]} leaves by {shape[1]} targets")
    table = np.full(shape, np.nan)
    for (leaf, number), target, weight in zip(places, ids, weights.tolist(), strict=True):
        if not leaf or not 0 <= number < shape[0] or not 0 <= target < shape[1]:
            call.invalid("a weight belongs to a leaf or target that is not there")
        before = table[number, target]
        table[number, target] = weight if np.isnan(before) else before + weight
    return table


def by_arrays(call: Call, targets: int, dtype: np.dtype[np.generic]) -> Forest:
    """A forest in the form of opset 5: tests and leaves apart, branches as numbers of either."""
    call.ignore("nodes_hitrates")
    features = call.ints("nodes_featureids")
    count = len(features)
    modes = call.tensor("nodes_modes").ravel().tolist()
    splits = call.tensor("nodes_splits").ravel().tolist()
    holds = list(zip(_flags(call, "nodes_trueleafs"), call.ints("nodes_truenodeids"), strict=False))
    fails = list(
        zip(_flags(call, "nodes_falseleafs"), call.ints("nodes_falsenodeids"), strict=False)
    )
    track = _flags(call, "nodes_missing_value_tracks_true") or [False] * count
    if any(len(item) != count for item in (modes, splits, holds, fails, track)):
        call.invalid("its attributes nodes_... must have equal lengths")
    if any(not 0 <= mode <= MEMBER for mode in modes):
        call.invalid("nodes_modes holds a mode that does not exist")
    roots = [(False, root) for root in call.ints("tree_roots")]
    draft = Draft(list(features), splits, modes, track, holds, fails, roots)
    _spell_out_members(call, draft)
    weights = call.tensor("leaf_weights").ravel()
    ids = call.ints("leaf_targetids")
    if len(ids) != len(weights):
        call.invalid("leaf_targetids and leaf_weights must have equal lengths")
    leaves = [(True, number) for number in range(len(ids))]
    table = _table(call, leaves, ids, weights, (len(ids), targets))
    return finished(call, draft, table, dtype)


def _flags(call: Call, name: str) -> list[bool]:
    return [bool(item) for item in call.ints(name, ())]


def _spell_out_members(call: Call, draft: Draft) -> None:
    """Tests of membership become chains of tests of equality, one for each member."""
    if MEMBER not in draft.mode:
        return
    sets: list[list[float]] = [[]]
    for value in call.tensor("membership_values").ravel().tolist():
        if np.isnan(value):
            sets.append([])
        else:
            sets[-1].append(value)
    nodes = [number for number, mode in enumerate(draft.mode) if mode == MEMBER]
    if len(sets) < len(nodes) or any(not members for members in sets[: len(nodes)]):
        call.invalid("membership_values does not hold a set for each BRANCH_MEMBER node")
    for number, members in zip(nodes, sets, strict=False):
        equal = MODES.index("BRANCH_EQ")
        draft.mode[number], draft.split[number] = equal, members[0]
        last = number
        for member in members[1:]:
            draft.feature.append(draft.feature[number])
            draft.split.append(member)
            draft.mode.append(equal)
            draft.track.append(draft.track[number])
            draft.holds.append(draft.holds[number])
            draft.fails.append(draft.fails[last])
            draft.fails[last] = (False, len(draft.feature) - 1)
            last = len(draft.feature) - 1
