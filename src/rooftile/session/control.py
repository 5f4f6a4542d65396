"""Control flow whose conditions, trips or values are of the run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from rooftile.core.dtype import to_numpy
from rooftile.core.errors import InvalidInput
from rooftile.core.limits import machine_bytes

if TYPE_CHECKING:
    from rooftile.session.segment import Environment
    from rooftile.session.segmented import ControlRunner

MAX_TRIPS = 1 << 40
"""A loop without a trip count goes on as long as its condition holds."""


def _if(node: ControlRunner, environment: Environment) -> list[Any]:
    (condition,) = node.inputs(environment)
    name = "then_branch" if _truth(node, condition) else "else_branch"
    return node.enter(name, environment, ())


def _loop(node: ControlRunner, environment: Environment) -> list[Any]:
    trips, condition, *states = node.inputs(environment)
    limit = MAX_TRIPS if trips is None else int(np.asarray(trips).reshape(()))
    goes_on = condition is None or _truth(node, condition)
    rows = _Rows(node)
    trip = 0
    while goes_on and trip < limit:
        found = node.enter(
            "body", environment, (np.asarray(trip, np.int64), np.asarray(goes_on), *states)
        )
        goes_on = _truth(node, found[0])
        states = found[1 : 1 + len(states)]
        rows.append(found[1 + len(states) :])
        trip += 1
        if trip & (trip - 1) == 0:  # at powers of two: to sum them up takes time
            rows.check(sum(map(_nbytes, states)))
    return [*states, *_stacked(node, rows.rows, len(states) + 1)]


def _scan(node: ControlRunner, environment: Environment) -> list[Any]:
    if node.step.opset < 9:
        return _scan_batches(node, environment)
    given, attributes = node.inputs(environment), node.step.attributes
    scanned = attributes["num_scan_inputs"]
    states, inputs = given[: len(given) - scanned], given[len(given) - scanned :]
    axes = attributes.get("scan_input_axes", [0] * scanned)
    front = [np.moveaxis(x, axis, 0) for x, axis in zip(inputs, axes, strict=True)]
    backward = attributes.get("scan_input_directions", [0] * scanned)
    states, rows = _scanned(node, environment, states, front, backward)
    columns = _stacked(node, rows, len(states))
    axes = attributes.get("scan_output_axes", [0] * len(columns))
    flips = attributes.get("scan_output_directions", [0] * len(columns))
    for number, (axis, flip) in enumerate(zip(axes, flips, strict=True)):
        column = columns[number][::-1] if flip else columns[number]
        columns[number] = np.ascontiguousarray(np.moveaxis(column, 0, axis))
    return [*states, *columns]


def _scan_batches(node: ControlRunner, environment: Environment) -> list[Any]:
    """Opset 8: lengths first, then states and inputs whose first dim is a batch."""
    lengths, *given = node.inputs(environment)
    scanned = node.step.attributes["num_scan_inputs"]
    backward = node.step.attributes.get("directions", [0] * scanned)
    split = len(given) - scanned
    results = []
    for batch in range(len(given[0])):
        stop = None if lengths is None else int(lengths[batch])
        inputs = [value[batch][:stop] for value in given[split:]]
        states = [value[batch] for value in given[:split]]
        states, rows = _scanned(node, environment, states, inputs, backward)
        results.append([*states, *_stacked(node, rows, len(states))])
    return [np.stack(column) for column in zip(*results, strict=True)]


def _scanned(
    node: ControlRunner,
    environment: Environment,
    states: list[Any],
    inputs: Sequence[Any],
    backward: Sequence[int],
) -> tuple[list[Any], list[list[Any]]]:
    lengths = {len(value) for value in inputs}
    if len(lengths) != 1:
        raise InvalidInput(
            f"node {node.step.name}: its scan inputs have different lengths: {sorted(lengths)}"
        )
    length, rows = lengths.pop(), _Rows(node)
    for step in range(length):
        places = [length - 1 - step if flip else step for flip in backward]
        own = [np.asarray(x[place]) for x, place in zip(inputs, places, strict=True)]
        found = node.enter("body", environment, (*states, *own))
        states = found[: len(states)]
        rows.append(found[len(states) :])
    return states, rows.rows


def _sequence_map(node: ControlRunner, environment: Environment) -> list[Any]:
    first, *others = node.inputs(environment)
    columns: list[list[Any]] = [[] for _ in node.step.outputs]
    for place, item in enumerate(first):
        own = [other[place] if isinstance(other, list) else other for other in others]
        found = node.enter("body", environment, (item, *own))
        for column, value in zip(columns, found, strict=False):
            column.append(value)
    return list(columns)


class _Rows:
    """What the trips of a loop give to be stacked; InvalidInput where that outgrows the machine."""

    def __init__(self, node: ControlRunner) -> None:
        self.node = node
        self.rows: list[list[Any]] = []
        self._nbytes = 0
        self._most = machine_bytes() // 2  # stacked, they are there twice

    def append(self, row: list[Any]) -> None:
        """One trip more."""
        self.rows.append(row)
        self._nbytes += sum(map(_nbytes, row))
        self.check()

    def check(self, more: int = 0) -> None:
        """Whether the rows, and `more` bytes beside them, fit."""
        if self._nbytes + more > self._most:
            raise InvalidInput(
                f"node {self.node.step.name} ({self.node.step.op}): after {len(self.rows)} trips "
                f"its states and scan outputs take {self._nbytes + more} bytes, and this machine "
                f"can give them {self._most}; give it fewer trips"
            )


def _nbytes(value: Any) -> int:
    """The bytes of a tensor, or of all in a sequence."""
    if isinstance(value, list):
        return sum(map(_nbytes, value))
    return value.nbytes if isinstance(value, np.ndarray) else 0


def _truth(node: ControlRunner, value: Any) -> bool:
    array = np.asarray(value)
    if array.size != 1 or array.dtype == object:
        raise InvalidInput(
            f"node {node.step.name}: its condition must be one element, "
            f"not {array.dtype} {list(array.shape)}"
        )
    return bool(array.reshape(()))


def _stacked(node: ControlRunner, rows: Sequence[Sequence[Any]], skipped: int) -> list[Any]:
    """The scan outputs; without any trip their shape is what the body says, 0 where it is open."""
    if rows:
        return [np.stack(column) for column in zip(*rows, strict=True)]
    found = []
    for item in node.step.bodies["body"].context.results[skipped:]:
        shape = [extent if isinstance(extent, int) else 0 for extent in item.shape]
        found.append(np.zeros((0, *shape), to_numpy(item.dtype)))
    return found


Run = Callable[["ControlRunner", "Environment"], "list[Any]"]
RUNNERS: dict[str, Run] = {"If": _if, "Loop": _loop, "Scan": _scan, "SequenceMap": _sequence_map}
