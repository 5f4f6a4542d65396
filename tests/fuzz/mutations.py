"""Damage done to model files: bits, lengths and fields, all from the number of the mutation."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import onnx

EXTREMES = (0, 1, -1, -2, 2, 7, 255, 1 << 16, 1 << 31, (1 << 31) - 1, (1 << 62) - 1, -(1 << 63))


def mutated(seeds: Sequence[bytes], number: int) -> bytes:
    """Mutation `number`: a seed, damaged once or a few times."""
    generator = random.Random(number)
    content = generator.choice(seeds)
    for _ in range(generator.choice((1, 1, 1, 2, 4))):
        content = generator.choice(_KINDS)(content, generator)
    return content


def _flip_bits(content: bytes, generator: random.Random) -> bytes:
    found = bytearray(content)
    for _ in range(generator.choice((1, 1, 2, 8)) if found else 0):
        found[generator.randrange(len(found))] ^= 1 << generator.randrange(8)
    return bytes(found)


def _truncate(content: bytes, generator: random.Random) -> bytes:
    return content[: generator.randrange(len(content) + 1)]


def _splice(content: bytes, generator: random.Random) -> bytes:
    start, end = sorted(generator.randrange(len(content) + 1) for _ in range(2))
    at = generator.randrange(len(content) + 1)
    return content[:at] + content[start : min(end, start + 64)] + content[at:]


def _change_fields(content: bytes, generator: random.Random) -> bytes:
    model = onnx.ModelProto()
    try:
        model.ParseFromString(content)
    except Exception:  # damaged before: whatever protobuf raises
        return content
    if model.graph.node:
        with suppress(UnicodeDecodeError, TypeError):  # a name was damaged before
            generator.choice(_FIELDS)(_graph_of(model, generator), generator)
    return bytes(model.SerializeToString())


@dataclass(frozen=True)
class _Damaged:
    """The model, and a graph to damage: its own, or a body of a node or of a function inside it."""

    model: Any
    graph: Any

    @property
    def opset_import(self) -> Any:
        return self.model.opset_import


def _graph_of(model: Any, generator: random.Random) -> _Damaged:
    graph = model.graph
    if model.functions and generator.random() < 0.5:
        graph = _Body(generator.choice(model.functions))
    while True:
        items = [item for node in graph.node for item in node.attribute]
        inner = [body for item in items for body in (item.g, *item.graphs) if body.node]
        if not inner or generator.random() < 0.5:
            return _Damaged(model, graph)
        graph = generator.choice(inner)


class _Body:
    """A function, as far as it looks like a graph."""

    def __init__(self, function: Any) -> None:
        self.node = function.node
        self.input = self.output = self.initializer = ()


def _swap_inputs(model: Any, generator: random.Random) -> None:
    a, b = (generator.choice(model.graph.node) for _ in range(2))
    if a.input and b.input:
        i, j = generator.randrange(len(a.input)), generator.randrange(len(b.input))
        a.input[i], b.input[j] = b.input[j], a.input[i]


def _swap_ops(model: Any, generator: random.Random) -> None:
    a, b = (generator.choice(model.graph.node) for _ in range(2))
    a.op_type, b.op_type = b.op_type, a.op_type


def _feed_back(model: Any, generator: random.Random) -> None:
    a, b = (generator.choice(model.graph.node) for _ in range(2))
    if a.output and b.input:
        b.input[generator.randrange(len(b.input))] = generator.choice(a.output)


def _rename(model: Any, generator: random.Random) -> None:
    node = generator.choice(model.graph.node)
    if node.output:
        node.output[0] = generator.choice(("", node.output[0] * 2, "x", *node.input))


def _drop(model: Any, generator: random.Random) -> None:
    del model.graph.node[generator.randrange(len(model.graph.node))]


def _repeat(model: Any, generator: random.Random) -> None:
    model.graph.node.add().CopyFrom(generator.choice(model.graph.node))


def _change_attribute(model: Any, generator: random.Random) -> None:
    owners = [node for node in model.graph.node if node.attribute]
    if not owners:
        return
    item = generator.choice(generator.choice(owners).attribute)
    choice = generator.randrange(4)
    if choice == 0:
        item.i = generator.choice(EXTREMES)
    elif choice == 1 and item.ints:
        item.ints[generator.randrange(len(item.ints))] = generator.choice(EXTREMES)
    elif choice == 2:
        item.f = generator.choice((0.0, -1.0, float("nan"), float("inf"), 1e38))
    else:
        item.type = generator.randrange(15)


def _change_shape(model: Any, generator: random.Random) -> None:
    infos = [*model.graph.input, *model.graph.output]
    dims = generator.choice(infos).type.tensor_type.shape.dim if infos else ()
    if dims:
        generator.choice(dims).dim_value = generator.choice(EXTREMES)


def _change_type(model: Any, generator: random.Random) -> None:
    infos = [*model.graph.input, *model.graph.output]
    if infos:
        generator.choice(infos).type.tensor_type.elem_type = generator.randrange(28)


def _change_weight(model: Any, generator: random.Random) -> None:
    if not model.graph.initializer:
        return
    tensor = generator.choice(model.graph.initializer)
    choice = generator.randrange(4)
    if choice == 0:
        tensor.dims.append(generator.choice(EXTREMES))
    elif choice == 1 and tensor.dims:
        tensor.dims[0] = generator.choice(EXTREMES)
    elif choice == 2:
        tensor.data_type = generator.randrange(28)
    else:
        tensor.data_location = 1
        location = generator.choice(("../../etc/passwd", "/etc/passwd", "weights", ""))
        tensor.external_data.add(key="location", value=location)
        tensor.external_data.add(key="offset", value=str(generator.choice(EXTREMES)))


def _change_opset(model: Any, generator: random.Random) -> None:
    version = generator.choice((*EXTREMES, *range(1, 30)))
    for entry in list(model.opset_import)[:1]:  # an earlier change may have left none
        entry.version = version


def _lose_data(model: Any, generator: random.Random) -> None:
    """Raw data too short or too long for its tensor, or a tensor that most is missing of."""
    tensors = [*model.graph.initializer]
    tensors += [
        item.t for node in model.graph.node for item in node.attribute if item.HasField("t")
    ]
    if tensors:
        tensor = generator.choice(tensors)
        raw = tensor.raw_data
        tensor.raw_data = generator.choice((raw[:-1], raw + b"\0", raw * 3, b""))


def _make_sparse(model: Any, generator: random.Random) -> None:
    """A weight as a sparse one, whose places are damaged."""
    if model.graph.initializer:
        tensor = generator.choice(model.graph.initializer)
        sparse = model.graph.sparse_initializer.add()
        sparse.values.CopyFrom(tensor)
        sparse.dims.extend(generator.choice((tensor.dims, EXTREMES[:2], (1 << 40,))))
        places = [generator.choice(EXTREMES) for _ in range(generator.randrange(4))]
        sparse.indices.dims.append(len(places))
        sparse.indices.data_type = 7
        sparse.indices.int64_data.extend(places)


def _list_as_input(model: Any, generator: random.Random) -> None:
    """An initializer that may be overridden, or an input declared twice."""
    names = [item.name for item in (*model.graph.initializer, *model.graph.input)]
    if names:
        model.graph.input.add().name = generator.choice(names)


def _repeat_output(model: Any, generator: random.Random) -> None:
    if model.graph.output:
        model.graph.output.add().CopyFrom(generator.choice(model.graph.output))


def _nest(model: Any, generator: random.Random) -> None:
    """A node becomes the body of an If that takes its own input for a condition."""
    node = generator.choice(model.graph.node)
    copy = onnx.NodeProto()
    copy.CopyFrom(node)
    body = onnx.GraphProto(name="nested", node=[copy])
    body.output.extend(onnx.ValueInfoProto(name=name) for name in copy.output)
    node.op_type, node.domain = "If", ""
    del node.attribute[:], node.input[1:]
    for name in ("then_branch", "else_branch"):
        node.attribute.add(name=name, type=5).g.CopyFrom(body)


_FIELDS: tuple[Callable[[Any, random.Random], None], ...] = (
    _swap_inputs,
    _swap_ops,
    _feed_back,
    _rename,
    _drop,
    _repeat,
    _change_attribute,
    _change_attribute,
    _change_shape,
    _change_type,
    _change_weight,
    _change_opset,
    _lose_data,
    _make_sparse,
    _list_as_input,
    _repeat_output,
    _nest,
)
_KINDS: tuple[Callable[[bytes, random.Random], bytes], ...] = (
    _flip_bits,
    _truncate,
    _splice,
    *[_change_fields] * 7,
)
"""What damages single bytes mostly ends in the parser, so most of it is done to fields."""
