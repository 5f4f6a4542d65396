"""Graphs and regions as text, which `reader.parse` reads back.

Arrays of up to 16 elements are printed, larger ones named by a digest of type, shape and bytes.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from rooftile.core.affine import Dim
from rooftile.core.dtype import from_numpy, kind
from rooftile.ir.graph.records import Array, Attr, Graph, Node, Region, Value

INLINE = 16
"""The most elements of a constant that is printed in full."""
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*\Z")


def to_text(graph: Graph) -> str:
    """The graph, one line for each input, constant and node; ends with a newline."""
    return "\n".join(_graph_lines(graph, "")) + "\n"


def regions_to_text(regions: Iterable[Region]) -> str:
    """The regions, one block each; ends with a newline if there is any."""
    return "".join("\n".join(_region_lines(region)) + "\n" for region in regions)


def digest(array: Array) -> str:
    """What stands for a large constant: `sha256:` and 16 hex digits."""
    head = f"{from_numpy(array.dtype)}{list(array.shape)}".encode()
    return "sha256:" + hashlib.sha256(head + array.tobytes()).hexdigest()[:16]


def _graph_lines(graph: Graph, indent: str) -> Iterator[str]:
    yield f"{indent}graph {_word(graph.name)}"
    inner = indent + "  "
    for value in graph.inputs:
        yield f"{inner}input {_typed(value)}"
    for name, array in graph.constants.items():
        value = Value(name, tuple(array.shape), from_numpy(array.dtype))
        yield f"{inner}const {_typed(value)} = {_contents(array)}"
    for node in graph.nodes:
        yield _node(node, inner)
    if graph.outputs:
        yield f"{inner}output {', '.join(map(_ref, graph.outputs))}"


def _region_lines(region: Region) -> Iterator[str]:
    yield f"region {_word(region.name)}{_attrs(region.choice, '')}"
    for value in region.inputs:
        yield f"  input {_typed(value)}"
    for node in region.nodes:
        yield _node(node, "  ")
    for value in region.outputs:
        yield f"  output {_typed(value)}"


def _node(node: Node, indent: str) -> str:
    outputs = ", ".join(map(_typed, node.outputs))
    inputs = ", ".join(map(_ref, node.inputs))
    origin = "".join(f" {json.dumps(name)}" for name in node.origin)
    return (
        f"{indent}{outputs} = {_word(node.op)}({inputs}){_attrs(node.attrs, indent)}"
        f"{' from' if origin else ''}{origin}"
    )


def _attrs(attrs: Iterable[tuple[str, Attr]], indent: str) -> str:
    shown = ", ".join(f"{_word(name)}={_attr(value, indent)}" for name, value in attrs)
    return f" {{{shown}}}" if shown else ""


def _attr(value: Attr, indent: str) -> str:
    if isinstance(value, Graph):
        # A body is a block of its own; what follows its attribute starts a new line.
        body = "\n".join(_graph_lines(value, indent + "    "))
        return f"\n{body}\n{indent}  "
    if isinstance(value, tuple):
        return "[" + ", ".join(_attr(item, indent) for item in value) + "]"
    if value is None or isinstance(value, (bool, str)):
        return json.dumps(value)
    if isinstance(value, (int, float)):
        return repr(value)
    raise TypeError(f"attribute value {value!r} is no int, float, bool, str, None, tuple or Graph")


def _typed(value: Value) -> str:
    return f"{_ref(value.name)}: {value.dtype}[{','.join(map(_dim, value.shape))}]"


def _dim(extent: Dim) -> str:
    if isinstance(extent, int):
        return str(extent)
    terms = [_word(name) if c == 1 else f"{c}*{_word(name)}" for name, c in extent.terms]
    if extent.const or not terms:
        terms.append(str(extent.const))
    return "".join(terms[:1] + [t if t.startswith("-") else f"+{t}" for t in terms[1:]])


def _ref(name: str) -> str:
    return "%" + _word(name)


def _word(name: str) -> str:
    return name if _PLAIN.match(name) else json.dumps(name)


def _contents(array: Array) -> str:
    if array.size > INLINE:
        return digest(array)
    return "[" + ", ".join(_element(item) for item in array.reshape(-1)) + "]"


def _element(item: Any) -> str:
    """One array element, exactly: the shortest decimal that reads back to the same bits."""
    group = kind(from_numpy(item.dtype))
    if group != "float":
        return str(bool(item)).lower() if group == "bool" else str(int(item))
    for shown in (str(item), repr(float(item))):
        if np.asarray(float(shown)).astype(item.dtype).tobytes() == item.tobytes():
            return shown
    if not math.isnan(float(item)):
        raise AssertionError(f"{item!r} has no exact decimal")
    return f"nan(0x{int.from_bytes(item.tobytes(), 'little'):x})"
