"""A part of a model that compiles when it first runs, for the shapes and values that it meets."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from rooftile.core.errors import (
    InvalidInput,
    NeedsValue,
    RooftileError,
    UnsupportedOp,
    UnsupportedType,
)
from rooftile.core.journal import Journal
from rooftile.core.options import CompileOptions
from rooftile.ir.graph import Graph
from rooftile.ir.program import Program
from rooftile.native import NEVER, Stop
from rooftile.native.locks import new_lock, new_rlock
from rooftile.runtime import Executable, Template
from rooftile.session.guard import check_memory
from rooftile.session.narrow import Boundary, type_name, widened

if TYPE_CHECKING:
    from rooftile.frontends.onnx import Outline, Part, Step
    from rooftile.session.trace import Trace

KEPT_PROGRAMS = 16
"""How many sets of shapes and values a part keeps compiled; the one used longest ago goes."""
MAX_CHANGES = 8
"""Values may change so often before the node that needs them goes to the host."""
MAX_COMPILATIONS = 24
"""After so many compilations what is met anew and small is computed in numpy instead."""
MAX_INTERPRETED = 1 << 18
"""How many elements all values of a graph may have to count as small."""
MAX_BOUND = 4096
"""Values of more elements are not taken as constants."""


class Environment(dict[str, Any]):
    """What the names of a graph stand for in a run, which ends early once `stop` is set."""

    def __init__(self, values: Mapping[str, Any], stop: Stop = NEVER) -> None:
        super().__init__(values)
        self.stop = stop


class Replaced(Exception):
    """A part has to be run as these steps instead."""

    def __init__(self, steps: Sequence[Step]) -> None:
        super().__init__()
        self.steps = steps


@dataclass
class Shared:
    """What the parts of a model have in common."""

    options: CompileOptions
    trace: Trace | None = None
    journal: Journal = field(default_factory=Journal)
    compiling: Any = field(default_factory=new_rlock)


@dataclass(frozen=True)
class Interpreted:
    """A graph computed op by op in numpy: for what changes its shape with every run."""

    graph: Graph

    def run(self, values: Sequence[Any], stop: Stop = NEVER) -> list[Any]:
        """The outputs for inputs in order; what is so small is not stopped."""
        from rooftile.ops.evaluate import evaluate

        names = [value.name for value in self.graph.inputs]
        found = evaluate(self.graph, dict(zip(names, values, strict=True)), "native")
        return [np.asarray(found[name]) for name in self.graph.outputs]


@dataclass(frozen=True)
class _Program:
    """`names` of the values that it is given, in order."""

    executable: Executable | Interpreted
    names: list[str]
    boundary: Boundary

    def values(self, environment: Environment) -> list[Any]:
        """Its inputs, in types that the program takes."""
        given = [environment[name] for name in self.names]
        return list(map(widened, given)) if self.boundary else given


class Segment:
    """One part. Safe to run from several threads."""

    def __init__(self, shared: Shared, whole: Outline, part: Part) -> None:
        self.shared, self.whole, self.part = shared, whole, part
        self.bound: tuple[str, ...] = ()
        self._needing: list[int] = []
        self._changes = self._compilations = 0
        self._kept: OrderedDict[Any, _Program] = OrderedDict()
        self._seen: dict[str, tuple[int, ...]] = {}
        self._open: set[tuple[str, int]] = set()
        self._opens = True
        self._templates: list[tuple[Any, Template, _Program]] = []
        self._lock = new_lock()

    def run(self, environment: Environment) -> None:
        """Compute the outputs into the environment; Replaced where that cannot be one program."""
        program = self.compiled(environment)
        trace, values = self.shared.trace, program.values(environment)
        if trace is None:
            outputs = program.executable.run(values, environment.stop)
        else:
            outputs = trace.execute(program.executable, values, environment.stop)
        if program.boundary:
            outputs = program.boundary.leave(outputs)
        environment.update(zip(self.part.outputs, outputs))  # noqa: B905 (one for each)

    def compiled(self, environment: Environment) -> _Program:
        """The program for these values."""
        found = self._find(self._key(environment))
        if found is not None:
            return found
        with self.shared.compiling:
            found = self._find(self._key(environment))
            if found is None:
                found = self._bound(environment) or self._compile_open(environment)
                found = found or self._compile(environment)
                with self._lock:
                    self._kept[self._key(environment)] = found
                    if len(self._kept) > KEPT_PROGRAMS:
                        self._kept.popitem(last=False)
            return found

    def profile(self, environment: Environment) -> tuple[Program, list[float]]:
        """The program for these values, and the seconds of each of its steps."""
        found = self.compiled(environment)
        executable = found.executable
        if isinstance(executable, Interpreted):
            executable = self._native(executable.graph)
        return executable.program, executable.profile(found.values(environment))

    @property
    def programs(self) -> list[Program]:
        """Every program that is kept."""
        with self._lock:
            every = [kept.executable for kept in self._kept.values()]
        return [one.program for one in every if isinstance(one, Executable)]

    def _key(self, environment: Environment) -> Any:
        try:
            shapes = [(environment[x].shape, environment[x].dtype) for x in self.part.inputs]
        except (KeyError, AttributeError):
            raise InvalidInput(self._unfit(environment)) from None
        bound = self.bound
        return (*shapes, *bound, *(environment[name].tobytes() for name in bound))

    def _bound(self, environment: Environment) -> _Program | None:
        """What was compiled with open dims, for these shapes and values."""
        for values, template, made in self._templates:
            if values != self._values(environment):
                continue
            executable = template.bind([environment[name].shape for name in made.names])
            if executable is not None:
                check_memory(executable.program)
                return replace(made, executable=executable)
        return None

    def _values(self, environment: Environment) -> Any:
        """What must be the same for a program to be used again, but for the shapes."""
        dtypes = [environment[name].dtype for name in self.part.inputs]
        return (*dtypes, *self.bound, *(environment[name].tobytes() for name in self.bound))

    def _note_shapes(self, environment: Environment) -> None:
        """Dims that are seen with another extent are open from then on."""
        for name in self.part.inputs:
            shape = environment[name].shape
            before = self._seen.setdefault(name, shape)
            if len(before) == len(shape):
                changed = [dim for dim, extent in enumerate(shape) if before[dim] != extent]
                self._open.update((name, dim) for dim in changed)

    def _find(self, key: Any) -> _Program | None:
        with self._lock:
            found = self._kept.get(key)
            if found is not None:
                self._kept.move_to_end(key)
            return found

    def _unfit(self, environment: Environment) -> str:
        for name in self.part.inputs:
            if not isinstance(environment.get(name), np.ndarray):
                kind = type(environment.get(name)).__name__
                return f"value {name!r} is a {kind} where a tensor is needed"
        return f"{self.part.name} cannot be run on these inputs"

    def _compile(self, environment: Environment) -> _Program:
        from rooftile.frontends.onnx import read_part

        if self.bound:
            self._changes += 1
            self._demote()
        while True:
            try:
                graph, narrow = read_part(self.part, environment, self.bound)
                break
            except NeedsValue as error:
                self._bind(error, environment)
            except (UnsupportedOp, UnsupportedType) as error:
                self._to_host(error.at, error)
        self._compilations += 1
        return _program(self._executable(graph), graph, narrow, environment)

    def _compile_open(self, environment: Environment) -> _Program | None:
        """A program in which the dims that were seen to change are open; None where that, or
        leaving them open, cannot be."""
        from rooftile.frontends.onnx import read_part
        from rooftile.pipeline import compile_graph

        self._note_shapes(environment)
        if not self._open or not self._opens:
            return None
        try:
            graph, narrow = read_part(self.part, environment, self.bound, self._open)
            made = compile_graph(graph, self.shared.options, self.shared.journal)
        except RooftileError:
            self._opens = False
            return None
        check_memory(made.executable.program)
        program = _program(made.executable, graph, narrow, environment)
        if made.template is not None:
            self._templates.insert(0, (self._values(environment), made.template, program))
            del self._templates[KEPT_PROGRAMS:]
        return program

    def _executable(self, graph: Graph) -> Executable | Interpreted:
        if self._compilations <= MAX_COMPILATIONS or _elements(graph) > MAX_INTERPRETED:
            return self._native(graph)
        if self._compilations == MAX_COMPILATIONS + 1:
            nodes = tuple(self.whole.context.names[place] for place in self.part.nodes)
            why = f"{MAX_COMPILATIONS} sets of shapes or values were met already"
            self.shared.journal.add("interpret", nodes, "interpreted", why)
        return Interpreted(graph)

    def _native(self, graph: Graph) -> Executable:
        from rooftile.pipeline import compile_graph

        made = compile_graph(graph, self.shared.options, self.shared.journal)
        check_memory(made.executable.program)
        return made.executable

    def _bind(self, error: NeedsValue, environment: Environment) -> None:
        """Take the values that a node needs as constants from now on, or cut the part there."""
        from rooftile.frontends.onnx import value_part

        wanted, place = error.inputs or error.values, error.at
        mine = [name for name in wanted if name in self.part.inputs and name not in self.bound]
        elements = sum(environment[name].size for name in mine)
        if mine and len(mine) == len([name for name in wanted if name not in self.bound]):
            if elements > MAX_BOUND or (not error.inputs and self._is_control(place)):
                self._to_host(place, error)
            self.bound += tuple(mine)
            self._needing.append(place)
            name = self.whole.context.names[place]
            self.shared.journal.add(
                "specialise", tuple(mine), "bound", f"node {name} must know what they hold"
            )
            return
        if not wanted or self._is_control(place):
            self._to_host(place, error)
        raise Replaced(value_part(self.whole, self.part, place))

    def _is_control(self, place: int) -> bool:
        from rooftile.frontends.onnx.segments import CONTROL

        return self.whole.context.nodes[place].op_type in CONTROL

    def _demote(self) -> None:
        """Values that change all the time: what needs them goes to the host where it can."""
        from rooftile.frontends.onnx import can_host, value_part

        if self._changes <= MAX_CHANGES:
            return
        for place in self._needing:
            if can_host(self.whole.context, place):
                self._to_host(place, None)
            parts = value_part(self.whole, self.part, place)
            if len(parts) == 2:  # what is nearer to the node may change less
                raise Replaced(parts)

    def _to_host(self, place: int, error: Exception | None) -> None:
        """Cut the part at a node; the error itself where the host cannot compute it either."""
        from rooftile.frontends.onnx import can_host, host_part

        if error is not None and (place < 0 or not can_host(self.whole.context, place)):
            raise error
        raise Replaced(host_part(self.whole, self.part, place)) from error


def _program(
    executable: Executable | Interpreted,
    graph: Graph,
    narrow: Mapping[str, str],
    environment: Environment,
) -> _Program:
    names = [value.name for value in graph.inputs]
    given = [type_name(environment[name].dtype) for name in names]
    boundary = Boundary(given, [narrow.get(name, "") for name in graph.outputs])
    return _Program(executable, names, boundary)


def _elements(graph: Graph) -> int:
    return sum(math.prod(value.dims) for value in graph.values.values())
