"""Some nodes of a graph, read as a graph of canonical ops of their own."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from rooftile.core.dtype import from_numpy
from rooftile.core.errors import InvalidModel
from rooftile.core.symbolic import Symbols
from rooftile.frontends.onnx.bodies import reads
from rooftile.frontends.onnx.context import Context
from rooftile.frontends.onnx.narrow import NARROW, code_of, widened
from rooftile.frontends.onnx.nodes import NodeReader, Scope
from rooftile.frontends.onnx.read import plain, settled, symbol_name
from rooftile.ir.graph import Array, Graph, Value
from rooftile.ops.builder import Builder


@dataclass(frozen=True)
class Part:
    """`nodes`: places in the graph of `context`, in order. Inputs and outputs are value names."""

    context: Context
    nodes: tuple[int, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]

    @property
    def name(self) -> str:
        """The graph's name."""
        return self.context.graph.name or "model"


def read_part(
    part: Part,
    arrays: Mapping[str, Array],
    bound: Container[str],
    open_dims: Container[tuple[str, int]] = (),
) -> tuple[Graph, dict[str, str]]:
    """The part as canonical ops, and the names of the types of outputs that are held in wider ones.

    `arrays`: inputs such as it will run on; those in `bound` are taken as constants. `open_dims`:
    dims of inputs, by name and number, that stay symbols.

    NeedsValue, NeedsHost and other UnsupportedOp tell in `at` which node stands in the way.
    """
    narrow: dict[str, str] = {}

    def read(symbols: Symbols | None) -> Graph:
        def shape(name: str) -> list[int]:
            extents = list(arrays[name].shape)
            for dim, extent in enumerate(extents):
                if symbols is not None and (name, dim) in open_dims:
                    # The number tells names apart that are cut, or differ in what is left out.
                    own = f"{part.inputs.index(name)}_{dim}_{name}"
                    extents[dim] = symbols.new(symbol_name(own), extent)
            return extents

        graph, found = _read(part, arrays, bound, shape)
        narrow.update(found)
        return graph

    return settled(read, Symbols() if open_dims else None), narrow


def _read(
    part: Part,
    arrays: Mapping[str, Array],
    bound: Container[str],
    shape: Callable[[str], Sequence[int]],
) -> tuple[Graph, dict[str, str]]:
    context, builder = part.context, Builder()
    nodes = NodeReader(builder, context.loaded.folder, context.functions)
    known: dict[str, Value] = {}
    for name in part.inputs:
        array = arrays[name]
        if name in bound:
            known[name] = nodes.constant(array, plain(name))
        else:
            dtype = from_numpy(widened(np.empty(0, array.dtype)).dtype)
            value = builder.input(name, shape(name), dtype)
            known[name] = nodes.stands_for(value, code_of(array))
    builder.reserve(part.outputs)
    own = {name for place in part.nodes for name in context.nodes[place].output}
    used = {name for place in part.nodes for name in reads(context.nodes[place])}
    for name in sorted(used - own - known.keys()):
        array = context.constant(name)
        if array is None:
            raise InvalidModel(f"value {name!r} is read, but nothing computes it")
        known[name] = nodes.constant(array, plain(name))
    nodes.model(context.nodes, Scope(known, context.loaded.opsets), part.nodes)
    narrow = {name: nodes.narrow.get(known[name].name, 0) for name in part.outputs}
    graph = builder.finish(part.name, {name: known[name] for name in part.outputs})
    return graph, {name: NARROW[code].name for name, code in narrow.items() if code}
