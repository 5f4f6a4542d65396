"""What a model takes and gives, without reading its nodes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from rooftile.frontends.onnx.load import Model, load

_TYPE_NAMES = {
    1: "float",
    2: "uint8",
    3: "int8",
    4: "uint16",
    5: "int16",
    6: "int32",
    7: "int64",
    8: "string",
    9: "bool",
    10: "float16",
    11: "double",
    12: "uint32",
    13: "uint64",
    14: "complex64",
    15: "complex128",
    16: "bfloat16",
    17: "float8e4m3fn",
    18: "float8e4m3fnuz",
    19: "float8e5m2",
    20: "float8e5m2fnuz",
    21: "uint4",
    22: "int4",
    23: "float4e2m1",
    24: "float8e8m0",
    25: "uint2",
    26: "int2",
}
NO_VERSION = (1 << 63) - 1
"""The version of a model that has none, as for onnxruntime."""
MAX_NESTING = 8
"""How deep sequences, maps and optionals may hold one another."""


@dataclass(frozen=True)
class Argument:
    """An input or output. A dim is an int, the name of a symbol, or None where nothing is known.

    `type` is written as onnxruntime writes it: "tensor(float)". `denotations`: what the dims mean,
    such as "DATA_BATCH"; empty where the file does not say. `ranked`: False where the file gives no
    shape at all, which then is () here.
    """

    name: str
    shape: tuple[int | str | None, ...]
    type: str
    denotations: tuple[str, ...] = ()
    ranked: bool = True


@dataclass(frozen=True)
class Signature:
    """Inputs and outputs in the order of the file, and what the file says about itself."""

    inputs: tuple[Argument, ...]
    outputs: tuple[Argument, ...]
    graph_name: str = ""
    graph_description: str = ""
    description: str = ""
    domain: str = ""
    producer_name: str = ""
    version: int = NO_VERSION
    custom_metadata_map: dict[str, str] = field(default_factory=dict)


def signature(model: Model) -> Signature:
    """The signature of a model; initializers that older files list as inputs are left out."""
    return signature_of(load(model).proto)


def signature_of(proto: Any) -> Signature:
    """The signature of a parsed model."""
    graph = proto.graph
    weights = {tensor.name for tensor in graph.initializer}
    weights.update(sparse.values.name for sparse in graph.sparse_initializer)
    return Signature(
        tuple(argument_of(item) for item in graph.input if item.name not in weights),
        tuple(argument_of(item) for item in graph.output),
        graph.name,
        graph.doc_string,
        proto.doc_string,
        proto.domain,
        proto.producer_name,
        int(proto.model_version) if proto.HasField("model_version") else NO_VERSION,
        {item.key: item.value for item in proto.metadata_props},
    )


def argument_of(info: Any) -> Argument:
    """What a ValueInfoProto says."""
    tensor = info.type.tensor_type
    dims = tensor.shape.dim
    denotations = tuple(str(dim.denotation) for dim in dims)
    ranked = not info.type.HasField("tensor_type") or tensor.HasField("shape")
    return Argument(info.name, tuple(map(_dim, dims)), _type_name(info.type), denotations, ranked)


def _type_name(proto: Any, depth: int = 0) -> str:
    kind = proto.WhichOneof("value")
    if kind == "tensor_type":
        return f"tensor({_TYPE_NAMES.get(proto.tensor_type.elem_type, 'unknown')})"
    if kind in ("sequence_type", "optional_type") and depth < MAX_NESTING:
        inner = _type_name(getattr(proto, kind).elem_type, depth + 1)
        return f"{'seq' if kind == 'sequence_type' else 'optional'}({inner})"
    if kind == "map_type" and depth < MAX_NESTING:
        key = _TYPE_NAMES.get(proto.map_type.key_type, "unknown")
        return f"map({key},{_type_name(proto.map_type.value_type, depth + 1)})"
    return f"{(kind or 'unknown').removesuffix('_type')}(...)"


def _dim(extent: Any) -> int | str | None:
    if extent.WhichOneof("value") == "dim_value" and extent.dim_value >= 0:
        return int(extent.dim_value)
    return extent.dim_param or None
