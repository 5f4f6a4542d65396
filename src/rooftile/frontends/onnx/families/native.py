"""Bodies read once for all iterations: constant trips become a scan that runs natively."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rooftile.core.errors import UnsupportedOp
from rooftile.frontends.onnx.bodies import bodies
from rooftile.frontends.onnx.call import Call
from rooftile.ir.graph import Value
from rooftile.ops.scan_builder import ScanBuilder

Values = tuple[Value, ...]
MOST_TRIPS = 1 << 24
"""The counter of a native loop lies in memory."""
UNROLLED_TRIPS = 4
UNROLLED_NODES = 32
"""Loops of no more trips, or trips times nodes, are better written out than run as loops."""


def is_short(trips: int, body: Any) -> bool:
    """Whether a loop is better written out."""
    inner = any(graph for node in body.node for graph in bodies(node))
    small = trips * len(body.node) <= UNROLLED_NODES and not inner
    return trips <= UNROLLED_TRIPS or small


def native_scan(
    call: Call,
    states: Sequence[Value],
    inputs: Sequence[Value],
    backward: Sequence[int],
    flipped: Sequence[int],
) -> Values | None:
    """The last states and the stacks of a Scan over axis 0 of `inputs`.

    None where the body cannot be read once for all iterations: it needs to know values that
    differ, or its states change their types.
    """
    scan = ScanBuilder(call.builder, inputs[0].dims[0])
    before = [scan.state(state) for state in states]
    slices = [scan.slice(x, bool(flip)) for x, flip in zip(inputs, backward, strict=True)]
    found = _entered(call, scan, (*before, *slices))
    if found is None or not _keeps_types(before, found):
        return None
    count = len(states)
    return scan.finish(found[:count], found[count:], [bool(flip) for flip in flipped])


def native_loop(call: Call, states: Sequence[Value], trips: int) -> Values | None:
    """The last states and the stacks of a Loop that runs `trips` times, whatever its body says.

    None as for `native_scan`, where the body may end the loop before, and where there are so many
    trips that this is what the body is for: exporters write the largest number for "while".
    """
    if trips > MOST_TRIPS:
        return None
    scan = ScanBuilder(call.builder, trips)
    before = [scan.state(state) for state in states]
    counter = call.emit("iota", shape=(trips,), axis=0, dtype="i64")
    number = scan.slice(counter)
    goes_on = call.within(scan.body).constant(True, "bool")
    found = _entered(call, scan, (number, goes_on, *before))
    if found is None or len(found) <= len(states) or not _keeps_types(before, found[1:]):
        return None
    last = scan.body.array(found[0])
    if last is None or not bool(last.all()):
        return None
    count = 1 + len(states)
    return scan.finish(found[1:count], found[count:])


def _entered(call: Call, scan: ScanBuilder, inputs: Values) -> Values | None:
    try:
        return call.enter(call.body("body"), inputs, call.name, scan)
    except UnsupportedOp:
        return None


def _keeps_types(before: Sequence[Value], after: Sequence[Value]) -> bool:
    return len(before) <= len(after) and all(
        (old.shape, old.dtype) == (new.shape, new.dtype)
        for old, new in zip(before, after, strict=False)
    )
