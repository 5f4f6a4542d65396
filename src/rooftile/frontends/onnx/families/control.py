"""Control flow that is known before the run: branches taken, loops and scans unrolled."""

from __future__ import annotations

from collections.abc import Sequence

from rooftile.frontends.onnx.call import Call
from rooftile.frontends.onnx.families.native import is_short, native_loop, native_scan
from rooftile.frontends.onnx.registry import reads
from rooftile.ir.graph import Value

MAX_TRIPS = 64
"""Loops of more trips are not unrolled."""
MAX_UNROLLED = 2048
"""Loops are unrolled to so many nodes at most."""


@reads("If")
def if_(call: Call) -> tuple[Value, ...]:
    """The nodes of the branch that a known condition takes."""
    branches = {name: call.body(name) for name in ("then_branch", "else_branch")}
    condition = call.array(0, "a condition")
    if condition.size != 1:
        call.invalid(f"the condition must be one element, not {list(condition.shape)}")
    name = "then_branch" if bool(condition.reshape(())) else "else_branch"
    return call.enter(branches[name], (), f"{call.name}/{name}")


@reads("Loop")
def loop(call: Call) -> tuple[Value, ...]:
    """The nodes of the body once for each trip; the last states, then the stacked scan outputs."""
    body = call.body("body")
    trips = int(call.array(0, "a trip count").reshape(())) if call.optional(0) else None
    goes_on = bool(call.array(1, "a condition").reshape(())) if call.optional(1) else True
    states = tuple(call.input(number) for number in range(2, len(call.inputs)))
    if goes_on and trips is not None and not is_short(trips, body):
        native = native_loop(call, states, trips)
        if native is not None:
            return native
    rows: list[Sequence[Value]] = []
    while goes_on and (trips is None or len(rows) < trips):
        _check_size(call, len(rows) + 1 if trips is None else trips, len(body.node))
        number, condition = call.constant(len(rows), "i64"), call.constant(goes_on, "bool")
        found = call.enter(body, (number, condition, *states), f"{call.name}/{len(rows)}")
        if len(found) <= len(states):
            call.invalid(f"its body gives {len(found)} outputs, fewer than 1 and its states")
        states = found[1 : 1 + len(states)]
        rows.append(found[1 + len(states) :])
        last = call.builder.array(found[0])
        if last is None:
            call.on_host("whether its loop goes on is computed at run time")
        goes_on = bool(last.reshape(()))
    if not rows and len(body.output) > 1 + len(states):
        call.on_host("a loop without trips has scan outputs of unknown shape")
    stacked = (_stacked(call, column, 0) for column in zip(*rows, strict=True))
    return (*states, *stacked)


@reads("Scan", since=9)
def scan(call: Call) -> tuple[Value, ...]:
    """The nodes of the body once for each slice of the scanned inputs."""
    body, scanned = call.body("body"), call.integer("num_scan_inputs")
    if not 0 < scanned <= len(call.inputs):
        call.invalid(f"num_scan_inputs {scanned} is not among its {len(call.inputs)} inputs")
    values = call.every()
    states, inputs = values[: len(values) - scanned], values[len(values) - scanned :]
    rows = len(body.output) - len(states)
    axes = call.ints("scan_input_axes", (0,) * scanned)
    backward = call.ints("scan_input_directions", (0,) * scanned)
    out_axes = call.ints("scan_output_axes", (0,) * rows)
    out_backward = call.ints("scan_output_directions", (0,) * rows)
    if not len(axes) == len(backward) == scanned or not len(out_axes) == len(out_backward) == rows:
        call.invalid("axes and directions must be given for each scan input and output")
    front = [_front(call, value, axis) for value, axis in zip(inputs, axes, strict=True)]
    lengths = {value.dims[0] for value in front}
    if len(lengths) == 1 and not is_short(max(lengths), body):
        native = native_scan(call, states, front, backward, out_backward)
        if native is not None:
            stacks = zip(native[len(states) :], out_axes, strict=True)
            return (*native[: len(states)], *(_back(call, x, axis) for x, axis in stacks))
    states, columns = _scanned(call, states, front, backward)
    found = []
    for column, axis, flip in zip(columns, out_axes, out_backward, strict=True):
        stacked = _stacked(call, column[::-1] if flip else column, axis)
        found.append(stacked)
    return (*states, *found)


@reads("Scan", since=8)
def scan_batches(call: Call) -> tuple[Value, ...]:
    """Opset 8: the first input gives lengths, the first dim of the others is a batch."""
    call.body("body")
    scanned = call.integer("num_scan_inputs")
    backward = call.ints("directions", (0,) * scanned)
    if call.optional(0) is not None:
        call.unsupported("sequence_lens")
    values = tuple(call.input(number) for number in range(1, len(call.inputs)))
    batches = {value.dims[0] for value in values if value.rank}
    if len(batches) != 1 or not 0 < scanned <= len(values) or len(backward) != scanned:
        call.invalid("its inputs differ in their first dim, or num_scan_inputs does not fit")
    rows: list[Sequence[Value]] = []
    for number in range(batches.pop()):
        own = [_picked(call, value, number) for value in values]
        states, columns = _scanned(
            call, own[: len(own) - scanned], own[len(own) - scanned :], backward
        )
        rows.append([*states, *(_stacked(call, column, 0) for column in columns)])
    return tuple(_stacked(call, column, 0) for column in zip(*rows, strict=True))


def _scanned(
    call: Call, states: Sequence[Value], inputs: Sequence[Value], backward: Sequence[int]
) -> tuple[tuple[Value, ...], list[tuple[Value, ...]]]:
    """The last states, and what the body gives at each step for each scan output."""
    body = call.body("body")
    lengths = {value.dims[0] for value in inputs}
    if len(lengths) != 1:
        call.invalid(f"its scan inputs have different lengths: {sorted(lengths)}")
    length = lengths.pop()
    _check_size(call, length, len(body.node))
    if not length:
        call.on_host("a scan of no steps has outputs of unknown shape")
    carried, rows = tuple(states), []
    for step in range(length):
        places = [length - 1 - step if flip else step for flip in backward]
        own = [_picked(call, x, place) for x, place in zip(inputs, places, strict=True)]
        found = call.enter(body, (*carried, *own), f"{call.name}/{step}")
        carried = found[: len(carried)]
        rows.append(found[len(carried) :])
    return carried, list(zip(*rows, strict=True))


def _check_size(call: Call, trips: int, nodes: int) -> None:
    if trips > MAX_TRIPS or trips * nodes > MAX_UNROLLED:
        call.on_host(f"{trips} trips through {nodes} nodes are too many to unroll")


def _front(call: Call, value: Value, axis: int) -> Value:
    axis = call.axis(axis, value.rank)
    order = (axis, *(dim for dim in range(value.rank) if dim != axis))
    return call.transpose(value, order)


def _back(call: Call, value: Value, axis: int) -> Value:
    """The value with its first dim moved to `axis`."""
    axis = call.axis(axis, value.rank)
    order = [dim for dim in range(value.rank) if dim]
    order.insert(axis, 0)
    return call.transpose(value, order)


def _picked(call: Call, value: Value, place: int) -> Value:
    """One element of the first dim, without that dim."""
    if not value.rank:
        call.invalid("a scalar cannot be scanned")
    limits = (place + 1, *value.dims[1:])
    starts = (place, *(0 for _ in value.dims[1:]))
    strides = (1,) * value.rank
    part = call.emit("slice", value, starts=starts, limits=limits, strides=strides)
    return call.reshape(part, value.dims[1:])


def _stacked(call: Call, values: Sequence[Value], axis: int) -> Value:
    """Values of one shape along a new axis."""
    if len({(value.shape, value.dtype) for value in values}) != 1:
        call.on_host("its scan outputs change their shape from trip to trip")
    shape = values[0].dims
    axis = call.axis(axis, len(shape) + 1)
    rows = [call.reshape(value, (*shape[:axis], 1, *shape[axis:])) for value in values]
    return call.emit("concat", *rows, axis=axis) if len(rows) > 1 else rows[0]
