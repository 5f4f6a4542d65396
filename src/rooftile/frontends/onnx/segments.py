"""Cuts a model into parts that compile and steps between them that run on the host.

A step on the host is an op that no kernel computes (strings, sequences, sizes that depend on data)
or control flow around such ops or with a condition of the run. What is known when the model is
loaded is cut here at once; a part that turns out to need a value of the run is cut again later.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeAlias

from rooftile.core.errors import UnsupportedOp
from rooftile.core.signature import Argument
from rooftile.frontends.onnx.attributes import plain_attributes
from rooftile.frontends.onnx.bodies import reads
from rooftile.frontends.onnx.context import Context
from rooftile.frontends.onnx.functions import has_function
from rooftile.frontends.onnx.load import Loaded
from rooftile.frontends.onnx.part import Part
from rooftile.frontends.onnx.registry import find
from rooftile.frontends.onnx.signature import signature_of
from rooftile.host import find_body

TENSOR, STRING = "tensor", "string"
CONTROL = {"If": ("then_branch", "else_branch")} | dict.fromkeys(
    ("Loop", "Scan", "SequenceMap"), ("body",)
)
"""Ops that run graphs of their own, and the attributes that hold these."""
OF_THE_RUN = "its condition, trips or values are of the run"
BY_FORM = "its values are no plain tensors, or its form has no kernel"
"""Why control flow, and an op whose host body says nothing else, is on the host."""


@dataclass(frozen=True)
class HostStep:
    """An op that a function of the room `host` computes. "" stands for an input left out."""

    name: str
    op: str
    domain: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, Any]
    why: str


@dataclass(frozen=True)
class ControlStep:
    """If, Loop, Scan or SequenceMap; `bodies` by the name of the attribute."""

    name: str
    op: str
    opset: int
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, Any]
    bodies: Mapping[str, Outline]
    why: str

    @property
    def captured(self) -> tuple[str, ...]:
        """What the bodies read from around the node, each once."""
        names = (name for body in self.bodies.values() for name in body.context.captured)
        return tuple(dict.fromkeys(names))


Step: TypeAlias = "Part | HostStep | ControlStep"


@dataclass(frozen=True)
class Outline:
    """A graph as steps in order. `kinds`: what each value is, as the room `host` names it."""

    context: Context
    steps: tuple[Step, ...]
    kinds: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_native(self) -> bool:
        """Whether it may compile as a whole."""
        return all(isinstance(step, Part) for step in self.steps)

    @cached_property
    def readers(self) -> Mapping[str, set[int]]:
        """The places of the nodes that read each value; -1 stands for the graph's outputs."""
        found: dict[str, set[int]] = {name: {-1} for name in self.context.outputs}
        for place in self.context.order:
            for name in reads(self.context.nodes[place]):
                found.setdefault(name, set()).add(place)
        return found


def outline(loaded: Loaded) -> Outline:
    """The steps of a model; UnsupportedOp names an op that nobody knows."""
    context = Context(loaded, loaded.proto.graph)
    kinds = {item.name: kind_of(item) for item in signature_of(loaded.proto).inputs}
    return _outline(context, kinds)


def kind_of(item: Argument) -> str:
    """The kind of an input."""
    text = item.type.replace("tensor(string)", STRING)
    for wrapper in ("seq", "optional"):
        if text.startswith(f"{wrapper}("):
            inner = Argument("", (), text.removeprefix(f"{wrapper}(").removesuffix(")"))
            return f"{wrapper}({kind_of(inner)})"
    return "map" if text.startswith("map(") else STRING if text == STRING else TENSOR


def host_part(whole: Outline, part: Part, place: int) -> tuple[Step, ...]:
    """The part as steps, with the node at `place` on the host; UnsupportedOp if it cannot be."""
    step = _host_step(whole.context, place, whole.kinds)
    after = _followers(whole, part, place) - {place}
    before = [number for number in part.nodes if number not in after and number != place]
    return (*_parts(whole, before), step, *_parts(whole, sorted_in(whole, after)))


def value_part(whole: Outline, part: Part, place: int) -> tuple[Part, ...]:
    """The part in two: the node at `place` and what follows from it come second."""
    after = _followers(whole, part, place)
    before = [number for number in part.nodes if number not in after]
    return (*_parts(whole, before), *_parts(whole, sorted_in(whole, after)))


def can_host(context: Context, place: int) -> bool:
    """Whether the node can be a step on the host."""
    node = context.nodes[place]
    return node.op_type in CONTROL or find_body(_domain(node), node.op_type) is not None


def sorted_in(whole: Outline, places: Iterable[int]) -> list[int]:
    """Places in the order of the graph."""
    wanted = set(places)
    return [place for place in whole.context.order if place in wanted]


def _outline(context: Context, kinds: Mapping[str, str]) -> Outline:
    """Stages alternate: parts that compile at even numbers, steps on the host at odd ones."""
    known = dict(kinds)
    stages: dict[int, int] = {}
    hosts: dict[int, Step] = {}
    for place in context.order:
        node = context.nodes[place]
        before = (context.makers[name] for name in reads(node) if name in context.makers)
        latest = max((stages[number] for number in before), default=0)
        if _is_native(context, place, known):
            stages[place] = latest + latest % 2
            known.update((name, TENSOR) for name in node.output if name)
        else:
            stages[place] = latest + 1 - latest % 2
            hosts[place] = _host_step(context, place, known)
            known.update(zip(node.output, _gives(context, place, hosts[place], known), strict=True))
    whole = Outline(context, (), known)
    steps: list[Step] = []
    for stage in sorted(set(stages.values())):
        places = [place for place in context.order if stages[place] == stage]
        steps += [hosts[place] for place in places] if stage % 2 else _parts(whole, places)
    return replace(whole, steps=tuple(steps))


def _parts(whole: Outline, places: Sequence[int]) -> tuple[Part, ...]:
    """The nodes as one part, or none where nobody reads what they compute."""
    context, mine = whole.context, set(places)
    made = [name for place in places for name in context.nodes[place].output if name]
    outputs = tuple(name for name in made if whole.readers.get(name, set()) - mine)
    used = dict.fromkeys(name for place in places for name in reads(context.nodes[place]))
    inputs = (name for name in used if name not in set(made) and context.constant(name) is None)
    return (Part(context, tuple(places), tuple(inputs), outputs),) if outputs else ()


def _followers(whole: Outline, part: Part, place: int) -> set[int]:
    """The node at `place` and all of the part that depends on it."""
    found, made = {place}, {name for name in whole.context.nodes[place].output if name}
    for number in part.nodes:
        node = whole.context.nodes[number]
        if number != place and made & set(reads(node)):
            found.add(number)
            made.update(name for name in node.output if name)
    return found


def _is_native(context: Context, place: int, kinds: Mapping[str, str]) -> bool:
    """Whether the node may be part of a kernel; UnsupportedOp if nobody knows it."""
    node, domain = context.nodes[place], _domain(context.nodes[place])
    found = [_kind(context, name, kinds) for name in reads(node)]
    plain = all(kind == TENSOR for kind in found) and not _casts_to_string(node)
    if node.op_type in CONTROL and not domain:
        bodies = _bodies(context, place, kinds)
        return plain and node.op_type != "SequenceMap" and all(b.is_native for b in bodies.values())
    if (domain, node.op_type, node.overload) in context.functions:
        return True
    opset = context.loaded.opsets.get(domain)
    reader = opset is not None and (
        find(domain, node.op_type, opset) is not None
        or (not find_body(domain, node.op_type) and has_function(domain, node.op_type, opset))
    )
    if reader and plain:
        return True
    if find_body(domain, node.op_type) is None:
        form = "" if plain else f" of {', '.join(kind for kind in found if kind != TENSOR)}"
        raise UnsupportedOp(
            f"node {context.names[place]}: op {node.op_type} of {domain or 'ai.onnx'} "
            f"opset {opset or '(not imported)'}{form} is not supported"
        )
    return False


def _host_step(context: Context, place: int, kinds: Mapping[str, str]) -> Step:
    node, domain = context.nodes[place], _domain(context.nodes[place])
    attributes = plain_attributes(node, context.loaded.folder)
    inputs, outputs = tuple(node.input), tuple(node.output)
    opset = context.loaded.opsets.get(domain, 0)
    name = context.names[place]
    if node.op_type in CONTROL and not domain:
        bodies = _bodies(context, place, kinds)
        return ControlStep(
            name, node.op_type, opset, inputs, outputs, attributes, bodies, OF_THE_RUN
        )
    found = find_body(domain, node.op_type)
    if found is None:
        raise UnsupportedOp(f"node {name}: op {node.op_type} cannot run on the host")
    return HostStep(name, node.op_type, domain, inputs, outputs, attributes, found.why or BY_FORM)


def _bodies(context: Context, place: int, kinds: Mapping[str, str]) -> Mapping[str, Outline]:
    if place not in context.inner:  # kept, for nested bodies would be cut again and again
        context.inner[place] = _new_bodies(context, place, kinds)
    found: Mapping[str, Outline] = context.inner[place]
    return found


def _new_bodies(context: Context, place: int, kinds: Mapping[str, str]) -> Mapping[str, Outline]:
    node = context.nodes[place]
    graphs = {item.name: item.g for item in node.attribute if item.name in CONTROL[node.op_type]}
    missing = [name for name in CONTROL[node.op_type] if name not in graphs]
    if missing:
        raise UnsupportedOp(f"node {context.names[place]} has no graph {missing[0]}")
    given = [_kind(context, name, kinds) if name else "" for name in node.input]
    inner: dict[str, Outline] = {}
    for name, graph in graphs.items():
        label = f"{context.names[place]}/{name}" if len(graphs) > 1 else context.names[place]
        body = Context(context.loaded, graph, context, label)
        known = {item: _kind(context, item, kinds) for item in body.captured}
        known.update(zip(body.inputs, _entering(node.op_type, given), strict=False))
        inner[name] = _outline(body, known)
    return inner


def _entering(op: str, given: Sequence[str]) -> list[str]:
    """What the inputs of a body are."""
    if op == "Loop":
        return [TENSOR, TENSOR, *given[2:]]
    if op == "SequenceMap":
        return [_inside(kind) for kind in given]
    return list(given)


def _gives(context: Context, place: int, step: Step, kinds: Mapping[str, str]) -> tuple[str, ...]:
    """What the outputs of a step on the host are."""
    node = context.nodes[place]
    if isinstance(step, ControlStep):
        branches = [_results(body) for body in step.bodies.values()]
        columns = zip(*branches, strict=False)
        found = [max(column, key=lambda kind: kind != TENSOR) for column in columns]
        if step.op == "Loop":
            found = found[1:]
        if step.op == "SequenceMap":
            found = [f"seq({kind})" for kind in found]
    else:
        body = find_body(_domain(node), node.op_type)
        given = [_kind(context, name, kinds) if name else "" for name in node.input]
        attributes = step.attributes if isinstance(step, HostStep) else {}
        found = list(body.gives(given, attributes)) if body else []
    found += found[-1:] * (len(node.output) - len(found))
    return tuple(found[: len(node.output)])


def _results(body: Outline) -> list[str]:
    return [_kind(body.context, name, body.kinds) for name in body.context.outputs]


def _kind(context: Context, name: str, kinds: Mapping[str, str]) -> str:
    if name in kinds:
        return kinds[name]
    found = context.constant(name)
    return STRING if found is not None and found.dtype == object else TENSOR


def _inside(kind: str) -> str:
    return kind.removeprefix("seq(").removesuffix(")") if kind.startswith("seq(") else kind


def _casts_to_string(node: Any) -> bool:
    return node.op_type == "Cast" and any(
        item.name == "to" and item.i == 8 for item in node.attribute
    )


def _domain(node: Any) -> str:
    return "" if node.domain == "ai.onnx" else str(node.domain)
