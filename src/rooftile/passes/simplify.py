"""The passes in their order, repeated until nothing changes."""

from __future__ import annotations

from collections.abc import Callable

from rooftile.core.errors import InvalidOption
from rooftile.ir.graph import Graph
from rooftile.passes.affine import fold_affine
from rooftile.passes.broadcast import drop_broadcasts
from rooftile.passes.cse import share_common
from rooftile.passes.dead import remove_dead
from rooftile.passes.empty import fold_empty
from rooftile.passes.fold import fold_constants
from rooftile.passes.grouped import keep_groups_apart
from rooftile.passes.identity import remove_identities
from rooftile.passes.onehot import one_hot_to_gather
from rooftile.passes.operands import constants_right
from rooftile.passes.padding import zero_blocks_to_pad
from rooftile.passes.scales import fold_scales
from rooftile.passes.sink import sink_transposes
from rooftile.passes.softmax import divide_once
from rooftile.passes.views import merge_views

Pass = Callable[[Graph], Graph]

_EXACT: tuple[Pass, ...] = (
    remove_dead,
    fold_empty,
    fold_constants,
    constants_right,
    remove_identities,
    merge_views,
    drop_broadcasts,
    zero_blocks_to_pad,
    one_hot_to_gather,
    sink_transposes,
    share_common,
)
_ROUNDING: tuple[Pass, ...] = (keep_groups_apart, divide_once, fold_affine, fold_scales)
LEVELS: tuple[tuple[Pass, ...], ...] = (_EXACT, (*_EXACT, *_ROUNDING))
"""The passes of each level: 0 keeps every value (but the sign of zero), 1 may change rounding."""
MAX_ROUNDS = 20


def simplify(graph: Graph, level: int = 1) -> Graph:
    """The graph after the passes of a level, repeated to a fixpoint, at most MAX_ROUNDS times."""
    if level not in range(len(LEVELS)):
        raise InvalidOption(f"level {level} must be one of 0..{len(LEVELS) - 1}")
    for _ in range(MAX_ROUNDS):
        before = graph
        for run in LEVELS[level]:
            graph = run(graph)
        if graph is before:
            break
    return graph
