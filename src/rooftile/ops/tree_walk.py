"""tree_walk: where rows end in decision trees.

Inputs: data [rows, features], roots [trees] u32, words [2**bits] u32 or u64, splits [2**bits] of
the data's type. A node's word holds, from its low bits on: the number of the node to go to where
the test fails, an even one (`bits` of them; where it holds, the next one); a bit that
says that the node is no leaf; with `equal`, a bit that says that the test is `=` instead of `<=`;
the feature. A leaf leads to itself: its split is NaN, so that its test never holds. Output: the
leaf of each row in each tree, [rows, trees] u32, or where `depth` tests lead. Numbers of nodes and
features that are too large become smaller ones that exist.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rooftile.ir.graph import Array, Node, Value
from rooftile.ir.tile import Cast, Const, Iterate, Last, Map, Tile
from rooftile.ops.base import Body, Index, Op, Type, register
from rooftile.ops.rules import Attrs, arity, attribute, describe, integer, need, of_kind


def _infer(attrs: Attrs, inputs: Sequence[Value]) -> tuple[Type, ...]:
    data, roots, words, splits = arity("tree_walk", inputs, 4)
    of_kind("tree_walk", data, "float")
    bits, depth = integer("tree_walk", attrs, "bits"), integer("tree_walk", attrs, "depth")
    need(1 <= bits < 31, "tree_walk", f"bits {bits} must be within 1 and 30")
    need(depth >= 0, "tree_walk", f"depth {depth} must not be < 0")
    equal = attribute("tree_walk", attrs, "equal")
    need(isinstance(equal, bool), "tree_walk", "attribute equal must be true or false")
    fits = (
        data.rank == 2
        and roots.rank == words.rank == splits.rank == 1
        and words.dims[0] == splits.dims[0] == 1 << bits
        and roots.dtype == "u32"
        and words.dtype in ("u32", "u64")
        and splits.dtype == data.dtype
    )
    need(fits, "tree_walk", f"{', '.join(map(describe, inputs))} do not fit one another")
    need(data.dims[1] > 0, "tree_walk", "data without features")
    return (((data.shape[0], roots.shape[0]), "u32"),)


def _reference(attrs: Attrs, arrays: Sequence[Array]) -> tuple[Array, ...]:
    data, roots, words, splits = arrays
    bits, equal = attrs["bits"], int(attrs["equal"])
    most = (1 << bits) - 1
    place = np.broadcast_to(roots[None].astype(np.int64) & most, (len(data), len(roots)))
    for _ in range(attrs["depth"]):
        word = words[place]
        feature = np.minimum(word >> words.dtype.type(bits + 1 + equal), data.shape[1] - 1)
        value = np.take_along_axis(data, feature.astype(np.int64), 1)
        split = splits[place]
        holds = value <= split
        if equal:
            holds = np.where(word >> words.dtype.type(bits + 1) & 1, value == split, holds)
        inner = (word >> words.dtype.type(bits) & 1).astype(bool)
        if not inner.any():
            break
        place = np.where(inner, (word.astype(np.int64) & most) | holds, place)
    return (place.astype(np.uint32),)


def _flops(attrs: Attrs, inputs: Sequence[Value], outputs: Sequence[Value]) -> int:
    """Four for each test of a full path."""
    rows, trees = outputs[0].dims
    return 4 * int(attrs["depth"]) * rows * trees


def _body(node: Node, index: Index, build: Body) -> Tile:
    bits, kind = node.attr("bits"), build.inputs[2].dtype
    equal = node.attr("equal")
    place = Cast(Last("u32"), "i64")
    word = build.arg(2, (place,))
    last = Const(build.inputs[0].dims[1] - 1, kind)
    feature = Map("min", (Map("shr", (word, Const(bits + 1 + equal, kind))), last))
    value = build.arg(0, (index[0], Cast(feature, "i64")))
    split = build.arg(3, (place,))
    holds: Tile = Map("le", (value, split))
    if equal:
        flag = Map("bitand", (word, Const(2 << bits, kind)))
        holds = Map("where", (Map("eq", (flag, Const(0, kind))), holds, Map("eq", (value, split))))
    left = Map("bitand", (word, Const((1 << bits) - 1, kind)))
    after = Map("bitor", (Cast(left, "u32"), Cast(holds, "u32")))
    root = Map("bitand", (build.arg(1, (index[1],)), Const((1 << bits) - 1, "u32")))
    inner = Map("bitand", (word, Const(1 << bits, kind)))
    return Iterate(root, after, inner, node.attr("depth"))


register(Op("tree_walk", "gather", _infer, _reference, _flops, _body))
