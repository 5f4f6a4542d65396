"""Forests in the form that `rooftile.ops.tree_walk` takes: one word and one split a node."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rooftile.frontends.onnx.forest import MODES, Forest
from rooftile.ir.graph import Array

_SWAPPED = ("BRANCH_GTE", "BRANCH_GT", "BRANCH_NEQ")


@dataclass(frozen=True)
class Packed:
    """`words`, `splits`, `roots`, `bits` and `equal` as `tree_walk` takes them; `leaf` over
    places: the leaf's number among the leaves, -1 where there is none.

    The tests in which a missing value holds read the feature from a copy of the data in which
    missing values are -inf. With `plain` the others read it from the data itself, in front of the
    copy; without, there are none.
    """

    words: Array
    splits: Array
    roots: Array
    leaf: Array
    bits: int
    equal: bool
    plain: bool
    copied: bool


def packed(forest: Forest, features: int) -> Packed | None:
    """The forest for `tree_walk`, of data with so many features; None where a node has two
    parents, or the words would not do.

    Every test becomes `<=` or `=`: for `>=`, `>` and `!=` the branches change places, `x < t`
    is `x <= ` the number before t. A leaf's test never holds: its split is NaN.
    """
    tests, count = forest.tests, len(forest.feature)
    pairs = forest.children.reshape(-1, 2).astype(np.int64)
    reached = np.concatenate([pairs[:tests].ravel(), forest.roots])
    bits = max(1, (count + len(forest.roots) - 1).bit_length())
    if len(np.unique(reached)) != len(reached) or len(reached) != count or bits > 30:
        return None
    is_test = np.arange(count) < tests
    swapped = _of_modes(forest, *_SWAPPED) & is_test
    equal = _of_modes(forest, "BRANCH_EQ", "BRANCH_NEQ") & is_test
    split = _splits(forest)
    # A missing value fails each of the six tests but `!=`; where branches changed places, that
    # has to be told.
    track = np.where(swapped, ~forest.track, forest.track) & is_test
    track &= ~_of_modes(forest, "BRANCH_NEQ")
    if (track & (equal | np.isnan(split))).any():
        return None  # -inf in place of a missing value would not hold
    copied = bool(track.any())
    plain = not copied or bool((is_test & ~track).any())
    first = np.where(swapped, pairs[:, 1], pairs[:, 0])
    second = np.where(swapped, pairs[:, 0], pairs[:, 1])
    place = _places(forest, first, second)
    column = np.where(is_test, forest.feature + features * (track & plain), 0).astype(np.uint64)
    any_equal = bool(equal.any())
    words = np.zeros(1 << bits, np.uint64)
    words[place] = place[first].astype(np.uint64) | column << np.uint64(bits + 1 + any_equal)
    words[place] |= is_test.astype(np.uint64) << np.uint64(bits)
    words[place] |= equal.astype(np.uint64) << np.uint64(bits + 1)
    if int(words.max(initial=0)) < 1 << 32:
        words = words.astype(np.uint32)
    splits = np.full(1 << bits, np.nan, split.dtype)
    splits[place] = split
    leaf = np.full(1 << bits, -1, np.int64)
    leaf[place[tests:]] = np.arange(count - tests)
    roots = place[forest.roots].astype(np.uint32)
    return Packed(words, splits, roots, leaf, bits, any_equal, plain, copied)


def _of_modes(forest: Forest, *names: str) -> Array:
    found: Array = np.isin(forest.mode, [MODES.index(name) for name in names])
    return found


def _splits(forest: Forest) -> Array:
    """The splits for `<=` and `=`; NaN where nothing is to hold."""
    split: Array = forest.split.copy()
    below = _of_modes(forest, "BRANCH_LT", "BRANCH_GTE")
    with np.errstate(all="ignore"):
        split[below] = np.nextafter(split[below], split.dtype.type(-np.inf))
    split[below & np.isneginf(forest.split)] = np.nan
    split[forest.tests :] = np.nan
    return split


def _places(forest: Forest, first: Array, second: Array) -> Array:
    """Where each node goes: tree by tree, in it level by level, children as pairs at even places.
    A root has a pair's place to itself."""
    nodes = forest.roots.astype(np.int64)
    trees = np.arange(len(nodes))
    levels, owners = [nodes], [trees]
    while True:
        inner = nodes < forest.tests
        if not inner.any():
            break
        parents, trees = nodes[inner], np.repeat(trees[inner], 2)
        nodes = np.stack([first[parents], second[parents]], axis=1).ravel()
        levels.append(nodes)
        owners.append(trees)
    order, owner = np.concatenate(levels), np.concatenate(owners)
    sequence = np.argsort(owner, kind="stable")
    is_root = sequence < len(forest.roots)
    place = np.zeros(len(forest.feature), np.int64)
    place[order[sequence]] = np.arange(len(order)) + owner[sequence] + ~is_root
    return place
