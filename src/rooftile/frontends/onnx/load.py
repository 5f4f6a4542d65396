"""A path, bytes or a ModelProto becomes a ModelProto that has been looked over."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import onnx
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]

from rooftile.core.errors import InvalidModel, MissingFile, NotAModel, WrongKind

Model: TypeAlias = "str | Path | bytes | onnx.ModelProto | Loaded"
MAX_FILE_BYTES = 1 << 31
"""Protobuf's own limit."""


@dataclass(frozen=True)
class Loaded:
    """`proto` is the ModelProto, `folder` where its external data may lie (None: nowhere)."""

    proto: Any
    folder: Path | None

    @property
    def opsets(self) -> dict[str, int]:
        """The version of each operator domain that the model imports; "" is ONNX's own."""
        return {_domain(item.domain): int(item.version) for item in self.proto.opset_import}


def load(model: Model) -> Loaded:
    """The model, parsed but not read; InvalidModel for what is no ONNX model."""
    if isinstance(model, Loaded):
        return model
    if isinstance(model, (str, Path)):
        path = Path(model)
        return _looked_over(Loaded(_parse(_content(path), str(path)), path.parent), str(path))
    if isinstance(model, (bytes, bytearray, memoryview)):
        return _looked_over(
            Loaded(_parse(bytes(model), "the bytes given"), None), "the bytes given"
        )
    if isinstance(model, onnx.ModelProto):
        return _looked_over(Loaded(model, None), "the ModelProto given")
    raise WrongKind(f"a model is a path, bytes or an onnx.ModelProto, not {type(model).__name__}")


def _content(path: Path) -> bytes:
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            raise InvalidModel(
                f"{path} is larger than 2 GiB, protobuf's limit; keep its weights as external data"
            )
        return path.read_bytes()
    except FileNotFoundError as error:
        raise MissingFile(f"{path} cannot be read: {error}") from error
    except (OSError, ValueError) as error:
        raise InvalidModel(f"{path} cannot be read: {error}") from error


def _parse(content: bytes, name: str) -> Any:
    proto = onnx.ModelProto()
    try:
        proto.ParseFromString(content)
    except (DecodeError, RecursionError) as error:
        raise NotAModel(
            f"{name} is not an ONNX model, or is truncated ({len(content)} bytes): {error}"
        ) from error
    return proto


def _looked_over(loaded: Loaded, name: str) -> Loaded:
    proto = loaded.proto
    if not proto.HasField("graph") or not proto.graph.output:
        raise NotAModel(f"{name} is not an ONNX model: it has no graph with outputs")
    if not proto.opset_import:
        raise InvalidModel(f"{name} imports no opset; give opset_import a version")
    if not all(isinstance(text, str) for text in _texts(proto)):
        raise InvalidModel(f"{name} has a name that is not UTF-8; the file is damaged")
    return loaded


def _texts(proto: Any) -> Iterator[Any]:
    """Every string that the reader uses; protobuf gives bytes for those that are not UTF-8."""
    graph = proto.graph
    yield from (proto.domain, proto.producer_name, proto.doc_string, graph.name, graph.doc_string)
    yield from (item.domain for item in proto.opset_import)
    yield from (text for item in proto.metadata_props for text in (item.key, item.value))
    for function in proto.functions:
        yield from (function.domain, function.name, function.overload)
        yield from (*function.input, *function.output)
        yield from (item.name for item in function.attribute_proto)
        yield from (item.domain for item in function.opset_import)
    for node in (*graph.node, *(node for function in proto.functions for node in function.node)):
        yield from _node_texts(node)
    for info in (*graph.input, *graph.output):
        yield info.name
        yield from (dim.dim_param for dim in info.type.tensor_type.shape.dim)
    sparse = [part for item in graph.sparse_initializer for part in (item.values, item.indices)]
    for tensor in (*graph.initializer, *sparse):
        yield tensor.name
        yield from (text for item in tensor.external_data for text in (item.key, item.value))


def _node_texts(node: Any) -> Iterator[Any]:
    yield from (node.name, node.op_type, node.domain, node.overload, *node.input, *node.output)
    for item in node.attribute:
        yield from (item.name, item.ref_attr_name)
        for graph in (item.g, *item.graphs):
            yield from (name for inner in graph.node for name in _node_texts(inner))
            yield from (info.name for info in (*graph.input, *graph.output, *graph.initializer))


def _domain(name: str) -> str:
    return "" if name == "ai.onnx" else name
