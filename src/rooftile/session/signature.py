"""What a session says of its model: inputs, outputs, and what the file says about itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rooftile.frontends.onnx import Argument, Signature
    from rooftile.session.options import SessionOptions


@dataclass(frozen=True)
class NodeArg:
    """An input or output of a model. A dim is an int, a symbol's name, or None."""

    name: str
    shape: list[int | str | None]
    type: str

    def __str__(self) -> str:
        return f"NodeArg(name={self.name!r}, type={self.type!r}, shape={self.shape})"


@dataclass(frozen=True)
class ModelMetadata:
    """What a model file says about itself."""

    producer_name: str = ""
    graph_name: str = ""
    graph_description: str = ""
    domain: str = ""
    description: str = ""
    version: int = 0
    custom_metadata_map: dict[str, str] = field(default_factory=dict)


def metadata(found: Signature) -> ModelMetadata:
    """What a file says about itself."""
    return ModelMetadata(
        found.producer_name,
        found.graph_name,
        found.graph_description,
        found.domain,
        found.description,
        found.version,
        dict(found.custom_metadata_map),
    )


def fixed_dims(inputs: Sequence[Argument], options: SessionOptions) -> dict[str, int]:
    """The extents of symbols that the options fix, by name or by what the dim denotes."""
    known = dict(options.free_dimensions)
    for item in inputs:
        for dim, denotation in zip(item.shape, item.denotations, strict=True):
            if isinstance(dim, str) and denotation in options.denoted_dimensions:
                known[dim] = options.denoted_dimensions[denotation]
    return known


def node_arg(item: Argument, known: Mapping[str, int]) -> NodeArg:
    """An argument with the symbols replaced that are known."""
    shape = [known.get(dim, dim) if isinstance(dim, str) else dim for dim in item.shape]
    return NodeArg(item.name, shape, item.type)


def with_initializers(model: Any, options: SessionOptions) -> Any:
    """The model, with the contents that the options give to some of its initializers."""
    if not options.initializers:
        return model
    from rooftile.frontends.onnx import replaced

    return replaced(model, {name: value.numpy() for name, value in options.initializers.items()})
