"""RNN, GRU and LSTM: the input's product over all steps at once, then a scan over time.

Within a direction tensors keep ONNX's dim of directions, as 1: a state is [1, batch, hidden], so
that the results of one direction are the node's results as they stand.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from rooftile.frontends.onnx.call import Call
from rooftile.frontends.onnx.families.gates import Activation, activations
from rooftile.frontends.onnx.registry import reads
from rooftile.ir.graph import Value
from rooftile.ops.scan_builder import ScanBuilder

UNROLLED = 4
"""Up to so many steps are written out one after the other."""

Values = tuple[Value, ...]
Cell = Callable[[Call, "Layer", Value, Values, Values], Values]
"""One step: emits into a call, given the layer, the products with the input, the weights and the
states; gives the next states, the hidden one first."""


Times = Callable[[Call, Value, Values], Value]
"""The product of a state and the recurrent weights, the first of the weights in most nodes."""


def _times(call: Call, state: Value, weights: Values) -> Value:
    """[1, batch, hidden] x [hidden, gates * hidden]."""
    return _dot(call, state, weights[0])


@dataclass(frozen=True)
class Layer:
    """What all steps of one direction share. `size`: hidden units; `clip`: 0 where there is none.

    `peephole` and the flags are there for the cells that know them.
    """

    size: int
    functions: tuple[Activation, ...]
    clip: float
    flag: bool = False
    peephole: bool = False
    times: Times = _times

    def gate(self, call: Call, function: int, value: Value) -> Value:
        """An activation of a gate's sum, clipped before where the node says so."""
        if self.clip:
            value = call.elementwise("max", value, -self.clip)
            value = call.elementwise("min", value, self.clip)
        return self.functions[function](call, value)

    def part(self, call: Call, value: Value, number: int) -> Value:
        """Gate `number` of a tensor that holds several along its last dim."""
        rank = value.rank
        start = number * self.size
        starts, limits = [0] * rank, list(value.dims)
        starts[-1], limits[-1] = start, start + self.size
        return call.emit("slice", value, starts=starts, limits=limits, strides=[1] * rank)


@dataclass(frozen=True)
class Recurrent:
    """A kind of recurrent node: gates that it has, which of its inputs are states and peepholes."""

    gates: int
    states: int
    cell: Cell
    defaults: tuple[str, ...]
    flag: str = ""


def _rnn_cell(call: Call, layer: Layer, x: Value, weights: Values, states: Values) -> Values:
    """H' = f(x W + H R)."""
    (hidden,) = states
    return (layer.gate(call, 0, call.elementwise("add", x, layer.times(call, hidden, weights))),)


def _gru_cell(call: Call, layer: Layer, x: Value, weights: Values, states: Values) -> Values:
    """z, r = f(...), h = g(...), H' = (1 - z) h + z H; the flag says where r is multiplied."""
    (hidden,) = states
    parts = [layer.part(call, x, number) for number in range(3)]
    sums = layer.times(call, hidden, weights)
    update, reset = (layer.part(call, sums, number) for number in range(2))
    update = layer.gate(call, 0, call.elementwise("add", parts[0], update))
    reset = layer.gate(call, 0, call.elementwise("add", parts[1], reset))
    if layer.flag:
        own = call.elementwise("add", layer.part(call, sums, 2), weights[1])
        own = call.elementwise("mul", reset, own)
    else:
        own = _dot(call, call.elementwise("mul", reset, hidden), weights[1])
    new = layer.gate(call, 1, call.elementwise("add", parts[2], own))
    kept = call.elementwise("mul", update, hidden)
    taken = call.elementwise("mul", call.elementwise("sub", 1, update), new)
    return (call.elementwise("add", taken, kept),)


def _lstm_cell(call: Call, layer: Layer, x: Value, weights: Values, states: Values) -> Values:
    """i, f = f(...), C' = f C + i g(...), H' = f(o) h(C'); the flag couples f = 1 - i."""
    hidden, cell = states
    sums = call.elementwise("add", x, layer.times(call, hidden, weights))
    enter, leave, forget, new = (layer.part(call, sums, number) for number in range(4))
    if layer.peephole:
        enter = call.elementwise("add", enter, call.elementwise("mul", weights[1], cell))
        forget = call.elementwise("add", forget, call.elementwise("mul", weights[3], cell))
    enter = layer.gate(call, 0, enter)
    if layer.flag:
        forget = call.elementwise("sub", 1, enter)
    else:
        forget = layer.gate(call, 0, forget)
    new = call.elementwise("mul", enter, layer.gate(call, 1, new))
    cell = call.elementwise("add", call.elementwise("mul", forget, cell), new)
    if layer.peephole:
        leave = call.elementwise("add", leave, call.elementwise("mul", weights[2], cell))
    leave = layer.gate(call, 0, leave)
    return call.elementwise("mul", leave, layer.functions[2](call, cell)), cell


RNN = Recurrent(1, 1, _rnn_cell, ("Tanh",))
GRU = Recurrent(3, 1, _gru_cell, ("Sigmoid", "Tanh"), "linear_before_reset")
LSTM = Recurrent(4, 2, _lstm_cell, ("Sigmoid", "Tanh", "Tanh"), "input_forget")


@reads("RNN")
def rnn(call: Call) -> Values:
    """A layer of simple units."""
    return RecurrentNode(call, RNN).results()


@reads("GRU")
def gru(call: Call) -> Values:
    """A layer of gated recurrent units."""
    return RecurrentNode(call, GRU).results()


@reads("LSTM")
def lstm(call: Call) -> Values:
    """A layer of long short-term memory units."""
    return RecurrentNode(call, LSTM).results()


class RecurrentNode:
    """One node: its inputs in their order, its directions one by one."""

    def __init__(self, call: Call, kind: Recurrent) -> None:
        self.call, self.kind = call, kind
        self.directions = _directions(call)
        call.ignore("output_sequence")  # of opset 1; what is asked for shows in the outputs
        self.by_batch = call.integer("layout", 0) == 1
        x, (self.w, self.r) = call.input(0), self.matrices()
        self.x = call.transpose(x, (1, 0, 2)) if self.by_batch and x.rank == 3 else x
        self._check_shapes()
        self.trip, self.batch, _ = self.x.dims
        self.size = self.r.dims[2]
        if call.integer("hidden_size", self.size) != self.size:
            call.invalid(f"hidden_size must be {self.size}, as R {list(self.r.shape)} has it")
        self.wants_all = bool(call.node.output) and bool(call.node.output[0])
        self.clip = call.number("clip", 0.0)
        self.flag = bool(kind.flag) and bool(call.integer(kind.flag, 0))
        self.functions = activations(call, kind.defaults, len(self.directions))
        self.lengths = self._lengths()

    def results(self) -> Values:
        """Y, and the last states."""
        found = [self._direction(number) for number in range(len(self.directions))]
        call = self.call
        results: list[Value] = []
        for number, parts in enumerate(zip(*found, strict=True)):
            axis = 0 if number else 1
            joined = parts[0] if len(parts) == 1 else call.emit("concat", *parts, axis=axis)
            if self.by_batch:
                joined = call.transpose(joined, (1, 0, 2) if number else (2, 0, 1, 3))
            results.append(joined)
        return tuple(results)

    def matrices(self) -> tuple[Value, Value]:
        """W and R: [directions, gates * hidden, input or hidden]."""
        return self.call.input(1), self.call.input(2)

    def layer(self, number: int) -> Layer:
        """What the steps of a direction share."""
        return Layer(self.size, self.functions[number], self.clip, self.flag, self._peepholes())

    def product(self, x: Value, weight: Value, number: int) -> Value:
        """All of the input, [time, 1, batch, input], times the weights of a direction."""
        return _dot(self.call, x, weight)

    def _check_shapes(self) -> None:
        call, count = self.call, len(self.directions)
        shown = ", ".join(str(list(value.shape)) for value in (self.x, self.w, self.r))
        fits = all(value.rank == 3 for value in (self.x, self.w, self.r))
        if fits:
            size = self.r.dims[2]
            rows = self.kind.gates * size
            fits = self.r.dims == (count, rows, size)
            fits = fits and self.w.dims == (count, rows, self.x.dims[2])
        if not fits:
            call.invalid(f"X, W, R of shapes {shown} do not fit {count} direction(s)")

    def _lengths(self) -> Value | None:
        """The sequences' lengths as [1, batch, 1]; None where all go to the end."""
        found = self.call.optional(4)
        if found is None:
            return None
        if found.dims != (self.batch,):
            self.call.invalid(f"sequence_lens {list(found.shape)} must be [{self.batch}]")
        known = self.call.builder.array(found)
        if known is not None and bool(np.all(known == self.trip)):
            return None
        return self.call.reshape(self.call.cast(found, "i32"), (1, self.batch, 1))

    # -- one direction

    def _direction(self, number: int) -> Values:
        call, kind = self.call, self.kind
        layer = self.layer(number)
        backward = self.directions[number]
        weights = self.weights(number)
        x = self._products(number)
        states = [self._initial(5 + state, number) for state in range(kind.states)]
        if self.trip <= UNROLLED:
            return self._unrolled(layer, x, weights, states, backward)
        scan = ScanBuilder(call.builder, self.trip)
        inner = call.within(scan.body)
        before = tuple(scan.state(state) for state in states)
        seen = tuple(scan.capture(value) for value in weights)
        alive = None
        if self.lengths is not None:
            time = call.constant(np.arange(self.trip), "i32")
            now = inner.reshape(scan.slice(time, backward), (1, 1, 1))
            alive = inner.emit("lt", now, scan.capture(self.lengths))
        after = kind.cell(inner, layer, scan.slice(x, backward), seen, before)
        row, after = self._masked(inner, alive, before, after)
        rows = [row] if self.wants_all else []
        results = scan.finish(after, rows, [backward] * len(rows))
        last, stacked = results[: kind.states], results[kind.states :]
        return (stacked[0] if stacked else last[0], *last)

    def _unrolled(
        self, layer: Layer, x: Value, weights: Values, states: Sequence[Value], backward: bool
    ) -> Values:
        call, now = self.call, tuple(states)
        rows: list[Value] = []
        order = range(self.trip)
        for time in reversed(order) if backward else order:
            alive = None
            if self.lengths is not None:
                alive = call.elementwise("lt", time, self.lengths)
            after = self.kind.cell(call, layer, _row(call, x, time), weights, now)
            row, now = self._masked(call, alive, now, after)
            rows.append(call.reshape(row, (1, *row.dims)))
        rows = rows[::-1] if backward else rows
        if not rows:
            empty = call.constant(np.zeros((0, 1, self.batch, self.size)), self.x.dtype)
            return (empty, *now)
        stacked = rows[0] if len(rows) == 1 else call.emit("concat", *rows, axis=0)
        return (stacked, *now)

    def _masked(
        self, call: Call, alive: Value | None, before: Values, after: Values
    ) -> tuple[Value, Values]:
        """The row of Y, and the states: behind its end a sequence gives zeros and keeps them."""
        if alive is None:
            return after[0], after
        pairs = zip(after, before, strict=True)
        states = tuple(call.elementwise("where", alive, new, old) for new, old in pairs)
        return call.elementwise("where", alive, after[0], 0), states

    def _initial(self, number: int, direction: int) -> Value:
        """An initial state as [1, batch, hidden], zero by default."""
        call, found = self.call, self.call.optional(number)
        count = len(self.directions)
        if found is None:
            return call.constant(np.zeros((1, self.batch, self.size)), self.x.dtype)
        if self.by_batch and found.rank == 3:
            found = call.transpose(found, (1, 0, 2))
        if found.dims != (count, self.batch, self.size):
            call.invalid(f"the initial state {list(found.shape)} does not fit the node")
        return _one(call, found, direction)

    def _products(self, number: int) -> Value:
        """The products with the input and the biases: [time, 1, batch, gates * hidden]."""
        call = self.call
        weight = call.transpose(_row(call, self.w, number), (1, 0))
        x = call.reshape(self.x, (self.trip, 1, *self.x.dims[1:]))
        product = self.product(x, weight, number)
        bias = self._bias(number)
        if bias is None:
            return product
        split = self.kind.gates * self.size
        own, recurrent = (_columns(call, bias, start, start + split) for start in (0, split))
        if self.kind is GRU and self.flag:  # that part of the bias is multiplied by a gate
            head = _columns(call, recurrent, 0, 2 * self.size)
            zero = call.constant(np.zeros((1, self.size)), bias.dtype)
            recurrent = call.emit("concat", head, zero, axis=1)
        return call.elementwise("add", product, call.elementwise("add", own, recurrent))

    def _bias(self, number: int) -> Value | None:
        """Both biases of a direction: [1, 2 * gates * hidden]."""
        found = self.call.optional(3)
        if found is None:
            return None
        wanted = (len(self.directions), 2 * self.kind.gates * self.size)
        if found.dims != wanted:
            self.call.invalid(f"B {list(found.shape)} must be {list(wanted)}")
        return _one(self.call, found, number)

    def _peepholes(self) -> bool:
        return self.kind is LSTM and self.call.optional(7) is not None

    def weights(self, number: int) -> Values:
        """What the cell reads beside the states: recurrent weights, and what belongs to them."""
        call, size = self.call, self.size
        r = call.transpose(_row(call, self.r, number), (1, 0))
        if self.kind is GRU:
            if not self.flag:
                return _columns(call, r, 0, 2 * size), _columns(call, r, 2 * size, 3 * size)
            bias = self._bias(number)
            if bias is None:
                return r, call.constant(np.zeros((1, size)), r.dtype)
            return r, _columns(call, bias, 5 * size, 6 * size)
        if self._peepholes():
            found = call.input(7)
            if found.dims != (len(self.directions), 3 * size):
                call.invalid(f"P {list(found.shape)} does not fit the node")
            own = _one(call, found, number)
            parts = (_columns(call, own, gate * size, (gate + 1) * size) for gate in range(3))
            return r, *parts
        return (r,)


def _directions(call: Call) -> tuple[bool, ...]:
    """For each direction whether it goes from the end to the start."""
    name = call.text("direction", "forward")
    known = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}
    if name not in known:
        call.invalid(f"direction must be one of {', '.join(known)}, not {name!r}")
    return known[name]


def _dot(call: Call, x: Value, weight: Value) -> Value:
    """The last dim of `x` with the first dim of a matrix."""
    return call.emit(
        "dot", x, weight, lhs_contract=(x.rank - 1,), rhs_contract=(0,), lhs_batch=(), rhs_batch=()
    )


def _one(call: Call, value: Value, number: int) -> Value:
    """One place along axis 0, which stays as a dim of 1."""
    return _rows(call, value, number, number + 1)


def _row(call: Call, value: Value, number: int) -> Value:
    """One place along axis 0, without that dim."""
    return call.reshape(_one(call, value, number), value.dims[1:])


def _rows(call: Call, value: Value, start: int, stop: int) -> Value:
    return _slice(call, value, 0, start, stop)


def _columns(call: Call, value: Value, start: int, stop: int) -> Value:
    return _slice(call, value, value.rank - 1, start, stop)


def _slice(call: Call, value: Value, axis: int, start: int, stop: int) -> Value:
    if (start, stop) == (0, value.dims[axis]):
        return value
    starts, limits = [0] * value.rank, list(value.dims)
    starts[axis], limits[axis] = start, stop
    return call.emit("slice", value, starts=starts, limits=limits, strides=[1] * value.rank)
