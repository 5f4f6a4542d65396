"""The reader's driver: inputs bound, weights taken, nodes read, outputs named."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

import rooftile.frontends.onnx.families  # noqa: F401  (registers every reader)
from rooftile.core.errors import InvalidModel, RooftileError, UnsupportedOp
from rooftile.core.symbolic import Symbols
from rooftile.frontends.onnx.functions import local_functions
from rooftile.frontends.onnx.load import Loaded, Model, load
from rooftile.frontends.onnx.nodes import NodeReader, Scope
from rooftile.frontends.onnx.signature import Argument, signature_of
from rooftile.frontends.onnx.tensors import held_type
from rooftile.frontends.onnx.weights import array_of_weight, weights_of
from rooftile.ir.graph import Graph, Value
from rooftile.ops.builder import Builder

Shapes = Mapping[str, Sequence[int]]


def read(model: Model, shapes: Shapes | None = None, symbols: Symbols | None = None) -> Graph:
    """The model as canonical ops.

    `shapes` gives whole shapes of inputs by name, needed where the file leaves dims open. With
    `symbols` open dims stay symbols, of which `shapes` gives the values at hand. Inputs
    keep their names, outputs are computed by nodes of their names, in the order of the file; one
    that the file lists twice is there once. Symbols that a node must know as numbers are left out.
    """
    loaded = load(model)
    return settled(lambda known: _Reader(loaded, shapes or {}, known).read(), symbols)


def settled(make: Callable[[Symbols | None], Graph], symbols: Symbols | None) -> Graph:
    """What `make` reads with symbols, once nothing is learned of them that would read better."""
    while True:
        try:
            graph = make(symbols)
        except RooftileError:
            better = symbols.again() if symbols else None
            if better is None:
                raise
        else:
            better = symbols.again() if symbols else None
            if better is None:
                return graph
        symbols = better


class _Reader:
    def __init__(self, loaded: Loaded, shapes: Shapes, open_dims: Symbols | None = None) -> None:
        self.open_dims = open_dims
        self.taken: dict[str, int] = {}
        """The extents that symbols' names stand for."""
        self.loaded = loaded
        self.graph = loaded.proto.graph
        self.shapes = shapes
        self.builder = Builder()
        self.known: dict[str, Value] = {}
        functions = local_functions(loaded.proto)
        self.nodes = NodeReader(self.builder, loaded.folder, functions)

    def read(self) -> Graph:
        """The whole graph."""
        self._inputs()
        self.builder.reserve(item.name for item in self.graph.output)
        self._weights()
        self.nodes.model(self.graph.node, Scope(self.known, self.loaded.opsets))
        return self.builder.finish(self.graph.name or "model", self._outputs())

    def _inputs(self) -> None:
        found = signature_of(self.loaded.proto).inputs
        unknown = sorted(set(self.shapes) - {item.name for item in found})
        if unknown:
            raise InvalidModel(
                f"shapes are given for {', '.join(unknown)}; "
                f"the inputs are {', '.join(item.name for item in found)}"
            )
        symbols = _symbols(found, self.shapes)
        bound = {item.name: _bound(item, self.shapes, symbols) for item in found}
        open_dims = {name: shape for name, shape in bound.items() if None in shape}
        if open_dims:
            raise InvalidModel(_ask(found, open_dims))
        codes = {item.name: item.type.tensor_type.elem_type for item in self.graph.input}
        for item in found:
            if item.name in self.known:
                raise InvalidModel(f"input {item.name!r} is declared twice; rename one")
            if not item.type.startswith("tensor("):
                raise UnsupportedOp(f"input {item.name} is a {item.type}; only tensors can be read")
            dtype = held_type(codes[item.name], f"input {item.name}")
            shape = [extent for extent in bound[item.name] if extent is not None]
            shape = self._opened(item, shape)
            value = self.builder.input(item.name, shape, dtype)
            self.known[item.name] = self.nodes.stands_for(value, codes[item.name])

    def _opened(self, item: Argument, shape: Sequence[int]) -> list[int]:
        """The shape with a symbol for each dim that the file leaves open."""
        if self.open_dims is None:
            return list(shape)
        found = []
        declared = _declared(item, len(shape))
        for number, (dim, extent) in enumerate(zip(declared, shape, strict=True)):
            if isinstance(dim, int) and dim:
                found.append(extent)
                continue
            name = symbol_name(dim if isinstance(dim, str) else f"{item.name}_{number}")
            known = self.taken
            while known.setdefault(name, extent) != extent:
                name += "_"
            found.append(self.open_dims.new(name, extent))
        return found

    def _weights(self) -> None:
        for name, proto in weights_of(self.graph).items():
            array = array_of_weight(proto, self.loaded.folder)
            self.known[name] = self.nodes.constant(array, plain(name))

    def _outputs(self) -> dict[str, Value]:
        found: dict[str, Value] = {}
        for item in self.graph.output:
            if item.name not in self.known:
                raise InvalidModel(f"output {item.name!r} is not computed by any node")
            found[item.name] = self.known[item.name]
        return found


def plain(name: str) -> str:
    """A name without characters that would be hard to read in a printed graph."""
    return re.sub(r"[^\w.:/-]", "_", name)[:200] or "const"


def symbol_name(text: str) -> str:
    """A symbol's name as kernels can hold it; its first letter tells it from axes."""
    return "N" + re.sub(r"\W", "_", text, flags=re.ASCII)[:40]


def _symbols(inputs: Sequence[Argument], shapes: Shapes) -> dict[str, int]:
    """Values of symbols that the given shapes fix; a symbol with two values fixes nothing."""
    found: dict[str, set[int]] = {}
    for item in inputs:
        for dim, extent in zip(item.shape, shapes.get(item.name, ()), strict=False):
            if isinstance(dim, str):
                found.setdefault(dim, set()).add(int(extent))
    return {name: min(values) for name, values in found.items() if len(values) == 1}


def _bound(item: Argument, shapes: Shapes, symbols: Mapping[str, int]) -> list[int | None]:
    given = shapes.get(item.name)
    if given is None:
        return [symbols.get(dim) if isinstance(dim, str) else dim for dim in item.shape]
    declared = _declared(item, len(given))
    fits = len(given) == len(declared) and all(
        int(extent) >= 0 and (not isinstance(dim, int) or dim in (0, int(extent)))
        for dim, extent in zip(declared, given, strict=True)
    )
    if not fits:
        raise InvalidModel(
            f"shape {list(given)} does not fit input {item.name}, which is {_shown(item.shape)}"
        )
    return [int(extent) for extent in given]


def _declared(item: Argument, rank: int) -> Sequence[int | str | None]:
    """The declared shape; open in all dims where the file gives not even the rank."""
    return item.shape if item.ranked else [None] * rank


def _ask(inputs: Sequence[Argument], missing: Mapping[str, Sequence[int | None]]) -> str:
    shown = [f"{item.name} {_shown(item.shape)}" for item in inputs if item.name in missing]
    return (
        f"the model leaves dims open: give `shapes` for {'; '.join(shown)}, "
        f"for example shapes={{{next(iter(missing))!r}: (...)}}"
    )


def _shown(shape: Sequence[object]) -> str:
    return "[" + ", ".join("?" if dim is None else str(dim) for dim in shape) + "]"
