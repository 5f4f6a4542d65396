"""A scan under construction: its body is emitted op by op, then the whole becomes one node."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rooftile.ir.graph import Node, Value, attrs
from rooftile.ops.base import OPS
from rooftile.ops.builder import Builder


class ScanBuilder:
    """`body` is the builder of the body's nodes; what they read comes from the methods here.

    States, slices and captured values may be asked for in any order.
    """

    def __init__(self, outer: Builder, trip: int) -> None:
        """A scan of `trip` iterations whose node will be added to `outer`."""
        self.outer = outer
        self.trip = trip
        self.body = Builder()
        self.body.origin = outer.origin
        self._states: list[tuple[Value, Value]] = []
        self._slices: list[tuple[Value, Value, bool]] = []
        self._captured: dict[str, tuple[Value, Value]] = {}
        self._constants: dict[str, Value] = {}

    def state(self, initial: Value) -> Value:
        """What the body sees of a state that starts as `initial`."""
        inner = self._input("state", initial.dims, initial.dtype)
        self._states.append((initial, inner))
        return inner

    def slice(self, operand: Value, backward: bool = False) -> Value:
        """The part of an operand along axis 0 that belongs to an iteration."""
        inner = self._input("slice", operand.dims[1:], operand.dtype)
        self._slices.append((operand, inner, backward))
        return inner

    def capture(self, value: Value) -> Value:
        """A value from outside, seen whole by each iteration; a constant is one inside too."""
        array = self.outer.array(value)
        if array is not None and value.name not in self._constants:
            self._constants[value.name] = self.body.constant(array, "weight")
        if array is not None:
            return self._constants[value.name]
        if value.name not in self._captured:
            inner = self._input("captured", value.dims, value.dtype)
            self._captured[value.name] = (value, inner)
        return self._captured[value.name][1]

    def finish(
        self, states: Sequence[Value], stacked: Sequence[Value], backward: Sequence[bool] = ()
    ) -> tuple[Value, ...]:
        """The last states and the stacks: `states` are those of the next iteration, in the order
        in which they were asked for; `backward` says which stacks are filled from the end.
        """
        results = [*states, *stacked]
        named = {f"next_{number}": value for number, value in enumerate(_distinct(results))}
        body = self.body.finish("body", named)
        name_of = {value.name: name for name, value in named.items()}
        inputs = [inner for _, inner in self._states]
        inputs += [inner for _, inner, _ in self._slices]
        inputs += [inner for _, inner in self._captured.values()]
        body = replace(
            body,
            inputs=tuple(inputs),
            outputs=tuple(name_of[value.name] for value in results),
        )
        operands = [outer for outer, _ in self._states]
        operands += [outer for outer, _, _ in self._slices]
        operands += [outer for outer, _ in self._captured.values()]
        frozen = attrs(
            body=body,
            trip=self.trip,
            carried=len(self._states),
            sliced=tuple(flag for _, _, flag in self._slices),
            stacked=tuple(backward) or (False,) * len(stacked),
        )
        types = OPS["scan"].infer(dict(frozen), operands)
        values = tuple(Value(self.outer.fresh("scan"), shape, dtype) for shape, dtype in types)
        names = tuple(value.name for value in operands)
        self.outer.append(Node("scan", names, values, frozen, self.outer.origin))
        return values

    def _input(self, hint: str, shape: Sequence[int], dtype: str) -> Value:
        return self.body.input(self.body.fresh(hint), shape, dtype)


def _distinct(values: Sequence[Value]) -> list[Value]:
    return list({value.name: value for value in values}.values())
