"""tree_step: one test of decision trees, for many rows and trees at once.

Inputs: data [rows, features], places [rows, trees] i32 (the node where each tree stands for each
row), words [nodes] i32 or i64, splits [nodes] of the data's type. A node's word holds, from its
low bits on: the feature (`bits` of them), whether a missing value counts as a test that holds,
whether the test is `=` instead of `<=`, and the number of the node to go to where the test fails;
where it holds, the next one. Output: the places after the test.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rooftile.core.errors import InvalidInput
from rooftile.ir.graph import Array, Node, Value
from rooftile.ir.tile import Cast, Const, Map, Tile
from rooftile.ops.base import Body, Index, Op, Type, register
from rooftile.ops.rules import Attrs, arity, describe, integer, need, of_kind, per_element


def _infer(attrs: Attrs, inputs: Sequence[Value]) -> tuple[Type, ...]:
    data, places, words, splits = arity("tree_step", inputs, 4)
    of_kind("tree_step", data, "float")
    fits = (
        data.rank == places.rank == 2
        and data.shape[0] == places.shape[0]
        and words.rank == 1
        and words.shape == splits.shape
        and places.dtype == "i32"
        and words.dtype in ("i32", "i64")
        and splits.dtype == data.dtype
    )
    need(fits, "tree_step", f"{', '.join(map(describe, inputs))} do not fit one another")
    bits = integer("tree_step", attrs, "bits")
    need(0 <= bits < 29, "tree_step", f"bits {bits} must be within 0 and 28")
    return ((places.shape, "i32"),)


def _reference(attrs: Attrs, arrays: Sequence[Array]) -> tuple[Array, ...]:
    data, places, words, splits = arrays
    bits = attrs["bits"]
    _check(places, len(words), "place")
    word = words[places]
    feature = word & ((1 << bits) - 1)
    _check(feature, data.shape[1], "feature")
    value = np.take_along_axis(data, feature.astype(np.int64), 1)
    split = splits[places]
    holds = np.where(word >> (bits + 1) & 1, value == split, value <= split)
    holds = holds | (np.isnan(value) & (word >> bits & 1).astype(bool))
    return (((word >> (bits + 2)) + holds).astype(np.int32),)


def _check(numbers: Array, limit: int, what: str) -> None:
    if ((numbers < 0) | (numbers >= limit)).any():
        raise InvalidInput(f"tree_step: a {what} is outside 0..{limit - 1}")


def _body(node: Node, index: Index, build: Body) -> Tile:
    bits, kind = node.attr("bits"), build.inputs[2].dtype
    place = Cast(build.arg(1, index), "i64")
    word = build.arg(2, (place,))
    feature = Map("bitand", (word, Const((1 << bits) - 1, kind)))
    value = build.arg(0, (index[0], Cast(feature, "i64")))
    split = build.arg(3, (place,))
    holds: Tile = Map("le", (value, split))
    if node.attr("equal", False):
        holds = Map("where", (_flag(word, bits + 1, kind), Map("eq", (value, split)), holds))
    if node.attr("track", False):
        missing = Map("not", (Map("eq", (value, value)),))
        holds = Map("or", (holds, Map("and", (missing, _flag(word, bits, kind)))))
    left = Cast(Map("shr", (word, Const(bits + 2, kind))), "i32")
    return Map("add", (left, Cast(holds, "i32")))


def _flag(word: Tile, bit: int, kind: str) -> Tile:
    """Whether a bit of a word is set."""
    zero = Const(0, kind)
    return Map("not", (Map("eq", (Map("bitand", (word, Const(1 << bit, kind))), zero)),))


register(Op("tree_step", "gather", _infer, _reference, per_element(4), _body))
