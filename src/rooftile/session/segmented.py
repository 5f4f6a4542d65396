"""A model as steps: parts that are compiled, ops on the host between them, control flow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from rooftile.core.errors import InvalidInput, InvalidModel, RooftileError
from rooftile.host import find_body
from rooftile.session.control import RUNNERS
from rooftile.session.segment import Environment, Replaced, Segment, Shared

if TYPE_CHECKING:
    from rooftile.frontends.onnx import ControlStep, HostStep, Outline, Step


UNFIT = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""What numpy raises for values that do not fit."""


class Segmented:
    """A graph that runs step by step. Safe to run from several threads.

    Steps that turn out to need a value of the run are replaced by smaller ones as they run.
    """

    def __init__(self, whole: Outline, shared: Shared) -> None:
        self.whole, self.shared = whole, shared
        self.name = whole.context.loaded.proto.graph.name or "the model"
        self._steps = tuple(_Place(self._runner(step)) for step in whole.steps)

    def run(self, environment: Environment) -> list[Any]:
        """The outputs of the graph, from its inputs and what it captures, by name.

        Terminated where the run was asked to end.
        """
        stack = list(reversed(self._steps))
        cut = False
        environment.stop.check(self.name)
        while stack:
            environment.stop.check(self.name)
            place = stack.pop()
            if place.instead is None:
                try:
                    place.runner.run(environment)
                    continue
                except Replaced as replaced:
                    with self.shared.compiling:
                        if place.instead is None:
                            place.instead = [_Place(self._runner(s)) for s in replaced.steps]
            stack.extend(reversed(place.instead))
            cut = True
        if cut:
            self._steps = tuple(_flat(self._steps))
        return [value_of(self.whole, environment, name) for name in self.whole.context.outputs]

    @property
    def steps(self) -> list[Any]:
        """What runs now, in order: Segment, HostRunner or ControlRunner."""
        return [place.runner for place in _flat(self._steps)]

    def _runner(self, step: Step) -> Segment | HostRunner | ControlRunner:
        from rooftile.frontends.onnx import ControlStep, HostStep

        if not isinstance(step, (HostStep, ControlStep)):
            return Segment(self.shared, self.whole, step)
        runner: HostRunner | ControlRunner
        if isinstance(step, HostStep):
            runner = HostRunner(self.shared, self.whole, step)
        else:
            runner = ControlRunner(self.shared, self.whole, step)
        if self.shared.trace is not None:
            self.shared.trace.follow(runner)
        return runner


class _Place:
    """A step, or what runs instead of it since it was cut."""

    def __init__(self, runner: Segment | HostRunner | ControlRunner) -> None:
        self.runner = runner
        self.instead: list[_Place] | None = None


def _flat(places: Sequence[_Place]) -> list[_Place]:
    found: list[_Place] = []
    stack = list(reversed(places))
    while stack:
        place = stack.pop()
        if place.instead is None:
            found.append(place)
        else:
            stack.extend(reversed(place.instead))
    return found


def value_of(whole: Outline, environment: Environment, name: str) -> Any:
    """What a name stands for; None for one left out."""
    return environment[name] if name in environment else whole.context.constant(name)


def given(whole: Outline, environment: Environment, names: Sequence[str]) -> list[Any]:
    """The inputs of a step; None for each without a name."""
    return [value_of(whole, environment, name) if name else None for name in names]


class HostRunner:
    """Runs an op by its function of the room `host`."""

    def __init__(self, shared: Shared, whole: Outline, step: HostStep) -> None:
        self.whole, self.step = whole, step
        found = find_body(step.domain, step.op)
        if found is None:
            raise AssertionError(f"{step.op} was cut out without a body")
        self.function = found.function
        shared.journal.add("host", (step.name,), "host", step.why, op=step.op)

    def run(self, environment: Environment) -> None:
        """Compute the outputs into the environment; errors name the node."""
        step = self.step
        values = given(self.whole, environment, step.inputs)
        try:
            with np.errstate(all="ignore"):
                results = self.function(*values, **step.attributes)
        except RooftileError as error:
            raise type(error)(f"node {step.name} ({step.op}): {error}") from error
        except UNFIT as error:
            raise InvalidInput(_unfit(step, error)) from error
        store(environment, step, results if isinstance(results, tuple) else (results,))


class ControlRunner:
    """Runs If, Loop, Scan or SequenceMap, whose bodies run as steps of their own."""

    def __init__(self, shared: Shared, whole: Outline, step: ControlStep) -> None:
        self.whole, self.step = whole, step
        self.bodies = {name: Segmented(body, shared) for name, body in step.bodies.items()}
        self.function = RUNNERS[step.op]
        shared.journal.add("host", (step.name,), "host", step.why, op=step.op)

    def run(self, environment: Environment) -> None:
        """Compute the outputs into the environment; errors name the node."""
        try:
            results = self.function(self, environment)
        except RooftileError:
            raise
        except UNFIT as error:
            raise InvalidInput(_unfit(self.step, error)) from error
        store(environment, self.step, results)

    def inputs(self, environment: Environment) -> list[Any]:
        """What the node is given."""
        return given(self.whole, environment, self.step.inputs)

    def enter(self, name: str, environment: Environment, inputs: Sequence[Any]) -> list[Any]:
        """The outputs of a body on some inputs."""
        body = self.bodies[name]
        names = body.whole.context.inputs
        if len(names) != len(inputs):
            raise InvalidInput(
                f"node {self.step.name}: its body takes {len(names)} inputs, not {len(inputs)}"
            )
        captured = body.whole.context.captured
        inner = {item: environment[item] for item in captured if item in environment}
        inner.update(zip(names, inputs, strict=True))
        return body.run(Environment(inner, environment.stop))


def _unfit(step: HostStep | ControlStep, error: Exception) -> str:
    return f"node {step.name} ({step.op}) cannot be computed on what it is given: {error}"


def store(environment: Environment, step: HostStep | ControlStep, values: Sequence[Any]) -> None:
    """Results of a step under their names; numpy's scalars become arrays."""
    if any(step.outputs[len(values) :]):
        raise InvalidModel(
            f"node {step.name} ({step.op}) has {len(step.outputs)} outputs, but {len(values)} are "
            "computed"
        )
    for name, value in zip(step.outputs, values, strict=False):
        if name:
            environment[name] = np.asarray(value) if isinstance(value, np.generic) else value
